"""Changes of rows as Spark writes: a frame of (operation, columns, address) goes to the writer of deltas.

The uuid of the delta is chosen here; it identifies the version that the write made. If another writer has
changed the same rows, the change is computed again on the latest version, with its source read again. A change that
the options `txnAppId` and `txnVersion` number does nothing if the table has it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pyspark.errors import AnalysisException

from connector.active_session import active
from connector.dml.delta_form import DELETED, NEW, REPLACED, DeltaForm
from connector.jobs import retrying
from connector.jobs.failures import find_library_error
from connector.jobs.labels import labelled
from connector.protocol import DELTA, NEW_COLUMNS, SNAPSHOT
from connector.table_api.target import ADDRESS, UNREAD, Reads, Snapshot, Target
from connector.types.new_columns import read_new_columns, write_new_columns
from connector.write.writer import plan_marker
from lance_format import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

OPERATION = "__lance_operation"
DELETE, UPDATE, INSERT = DELETED, REPLACED, NEW[0]
T = TypeVar("T")
_ATTEMPTS = "spark.lance.commit.attempts"
_PLACE = "__lance_place"
_PLACE_BITS = 17
"""Rows of one place have addresses that agree except for these bits."""


@dataclass(frozen=True, slots=True)
class RowChangeResult:
    """Outcome of a change of rows.

    Parameters
    ----------
    version : int
        The version that the change made, or the one that it read if it changed no row and added no column.
    num_updated_rows, num_inserted_rows, num_deleted_rows : int
    """

    version: int
    num_updated_rows: int = 0
    num_inserted_rows: int = 0
    num_deleted_rows: int = 0


@dataclass(frozen=True)
class Delta:
    """Rows of a delta.

    Parameters
    ----------
    rows : DataFrame
        `OPERATION`, columns of the table, and `ADDRESS`. Inserted rows have all columns.
    changed : tuple of str
        The columns whose values may change in rows that are replaced.
    kept : tuple of str
        The columns whose values replaced rows keep, whatever `rows` has; see `connector.dml.delta_form`.
    partly : tuple of str
        Those of `changed` that some replaced rows may keep, as a whole or in part.
    new_columns : tuple of StructField
        The columns that the table lacks.
    """

    rows: DataFrame
    changed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    partly: tuple[str, ...] = ()
    new_columns: tuple[StructField, ...] = ()


def operation(kind: int) -> Column:
    """Return the first column of rows of a delta."""
    from pyspark.sql import functions as f

    return f.lit(kind).alias(OPERATION)


def change_rows(
    target: Target, command: str, plan: Callable[[Snapshot], Delta], reads: Reads | None = None
) -> RowChangeResult:
    """Change rows of a table in one version.

    Parameters
    ----------
    target : Target
        Its options may number the change.
    command : {"DELETE", "UPDATE", "MERGE"}
    plan : callable
        Computes the change on a snapshot of the table; again on another one after a conflict.
    reads : callable, optional
        See `Target.snapshot`. If the change needs another column, it is computed again on all columns.

    Raises
    ------
    RetryableCommitConflictError
        If other writers kept changing the same rows; see `retry`.
    CommitConflictError
        If another writer has committed a change with this number, or a later one, concurrently.
    LanceError
        If the change is refused or fails. No file and no version is left, unless it is unclear whether the commit
        landed.
    """
    return retry(target, lambda: _attempt_twice(target, command, plan, reads))


def gather(rows: DataFrame) -> DataFrame:
    """Bring replaced rows that are close to each other in the table to one task, in the order of their addresses.

    A join scatters rows over all tasks. If each task took what its rows keep, all of them would read the same pages.
    Rows without an address stay with those of their task.
    """
    from pyspark.sql import functions as f

    place = f.coalesce(f.shiftright(f.col(ADDRESS), _PLACE_BITS), -1 - f.spark_partition_id())
    return rows.withColumn(_PLACE, place).repartition(_PLACE).sortWithinPartitions(ADDRESS).drop(_PLACE)


def retry(target: Target, attempt: Callable[[], T]) -> T:
    """Repeat a change until no other writer has changed the same rows; at most as often as the session allows.

    Parameters
    ----------
    target : Target
    attempt : callable
        Plans the change on the latest version, and commits it.

    Raises
    ------
    RetryableCommitConflictError
        If it has failed `spark.lance.commit.attempts` times.
    """
    return retrying.retry(attempt, _attempts(target))


def _attempts(target: Target) -> int:
    given = target.spark.conf.get(_ATTEMPTS, "10") or ""
    if re.fullmatch("[1-9][0-9]{0,4}", given) is None:
        raise InvalidInputError(f"{_ATTEMPTS} must be a whole number from 1 to 99999, not {given!r}")
    return int(given)


def _attempt_twice(
    target: Target, command: str, plan: Callable[[Snapshot], Delta], reads: Reads | None
) -> RowChangeResult:
    try:
        return _attempt(target, command, plan, reads)
    except Exception as error:
        if reads is None or not _is_of_unread_column(error):
            raise
    return _attempt(target, command, plan, None)


def _is_of_unread_column(error: Exception) -> bool:
    """Return whether tasks needed a column that was not read, or an error of analysis shows one to the user."""
    text = str(error)
    return f"[USER_RAISED_EXCEPTION] {UNREAD}" in text or (isinstance(error, AnalysisException) and UNREAD in text)


def _attempt(target: Target, command: str, plan: Callable[[Snapshot], Delta], reads: Reads | None) -> RowChangeResult:
    snapshot = target.snapshot(command, reads)
    dataset, marker = snapshot.dataset, plan_marker(target.parsed, snapshot.dataset.config())
    if marker is not None and marker.is_committed:
        return RowChangeResult(dataset.version)
    delta = plan(snapshot)
    new_columns = write_new_columns(delta.new_columns)
    planned = dataset.plan_row_delta(
        list(delta.changed), description=f"{command} of Spark", new_columns=read_new_columns(new_columns)
    )
    names = tuple(name for name in delta.rows.columns if name not in (OPERATION, ADDRESS))
    row = tuple(range(1, len(names) + 1))
    notes = {} if marker is None else marker.properties
    form = DeltaForm(
        command, row, len(names) + 1, names, planned.columns, planned.uuid, notes, delta.kept, delta.partly
    )
    writer = delta.rows.write.format("lance").mode("append").options(**target.storage).option(DELTA, form.to_json())
    if new_columns:
        writer = writer.option(NEW_COLUMNS, json.dumps(new_columns))
    try:
        label = f"{command} {target.path}", f"lance-{planned.uuid}"
        with active(target.spark), labelled(target.spark, *label):
            writer.option(SNAPSHOT, json.dumps([dataset.absolute_uri, dataset.version])).save(dataset.absolute_uri)
    except Exception as error:
        found = find_library_error(error)
        if found is None:
            raise
        raise found from error
    counts = planned.find(dataset)
    return RowChangeResult(dataset.version, **{} if counts is None else _counts(counts))


def _counts(counts: object) -> dict[str, int]:
    names = (field.name for field in dataclasses.fields(RowChangeResult))
    return {name: getattr(counts, name) for name in names if name != "version"}
