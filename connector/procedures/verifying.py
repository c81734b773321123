"""`verify`: every byte of a table is read and compared with its checksum, as a Spark job; repairs are further jobs."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import ArrayType, LongType, StringType

from connector.procedures.declaring import Result, Target, columns
from lance_format import LostRows, VerificationReport

SCHEMA = columns(
    path=StringType(),
    type=StringType(),
    status=StringType(),
    fragment_id=LongType(),
    size_bytes=LongType(),
    verified_bytes=LongType(),
    offset=LongType(),
    detail=StringType(),
    repair=StringType(),
    columns=ArrayType(StringType()),
    start=LongType(),
    stop=LongType(),
    num_rows=LongType(),
    version=LongType(),
)
_FINDING = SCHEMA.names[:9]


def verify(target: Target, *, repair: bool, all_files: bool) -> Result:
    """Verify the latest version, and list what is wrong and what is lost, or all files; see `LanceDataset.verify`.

    The first row is a summary: its `size_bytes` and `verified_bytes` are those of all files.
    """
    report: VerificationReport
    _, report = target.change(lambda dataset: dataset.plan_verification(), lambda _: "verify")
    if repair:
        report = _repair(target, report)
    status = "damaged" if report.problems else "intact"
    rows = [_row((None, "table", status, None, report.size_bytes, report.verified_bytes, None, report.summary, ""))]
    listed = report.findings if all_files else report.problems
    rows += [_row(tuple(getattr(finding, name) for name in _FINDING)) for finding in listed]
    return Result(SCHEMA, rows + [_lost_row(rows) for rows in report.lost])


def _repair(target: Target, report: VerificationReport) -> VerificationReport:
    rewritten: tuple[int, ...] = ()
    indices: Any = None
    if report.recoverable:
        _, rewritten = target.change(
            lambda dataset: dataset.plan_fragment_repairs(report), lambda _: "repair fragments"
        )
    if report.damaged_indices:
        _, indices = target.change(lambda dataset: dataset.plan_index_repairs(report), lambda _: "repair indices")
    return report.repaired(rewritten, indices, target.open().restore_transaction_files(report))


def _row(finding: tuple[object, ...]) -> tuple[object, ...]:
    return (*finding, None, None, None, None, None)


def _lost_row(rows: LostRows) -> tuple[object, ...]:
    detail = rows.condition if rows.columns else f"it is unknown which {rows.num_rows} rows are deleted"
    finding = (None, rows.type, "lost", rows.fragment_id, None, None, None, detail, "")
    return (*finding, list(rows.columns), rows.start, rows.stop, rows.num_rows, rows.version)
