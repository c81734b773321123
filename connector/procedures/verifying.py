"""`verify`: every byte of a table is read and compared with its checksum, as a Spark job."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType

from connector.procedures.declaring import Result, Target, columns
from lance_format import VerificationReport

SCHEMA = columns(
    path=StringType(),
    type=StringType(),
    status=StringType(),
    fragment_id=LongType(),
    size_bytes=LongType(),
    verified_bytes=LongType(),
    offset=LongType(),
    detail=StringType(),
)


def verify(target: Target, *, repair: bool, all_files: bool) -> Result:
    """Verify the latest version, and list what is wrong, or all files; see `LanceDataset.verify`.

    The first row is a summary: its `size_bytes` and `verified_bytes` are those of all files.
    """
    report: VerificationReport
    _, report = target.change(lambda dataset: dataset.plan_verification(repair=repair), lambda _: "verify")
    problems = report.problems
    detail = f"{len(report.findings)} findings, {len(problems)} problems"
    if report.dropped_indices:
        detail += f"; dropped the indices {', '.join(report.dropped_indices)}"
    status = "damaged" if problems else "intact"
    rows: list[tuple[object, ...]] = [
        (None, "table", status, None, report.size_bytes, report.verified_bytes, None, detail)
    ]
    names = SCHEMA.names
    listed = report.findings if all_files else problems
    return Result(SCHEMA, rows + [tuple(getattr(finding, name) for name in names) for finding in listed])
