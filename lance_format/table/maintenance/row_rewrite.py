"""Rewriting fragments with their rows in another order, as an engine that sorts them finds it.

The caller reads the rows of the fragments with their addresses, and gives them to writers, a writer per task. The
commit replaces the fragments by those that the writers made. It refuses anything but each live row once.

>>> rewrite = dataset.optimize.plan_row_rewrite([3, 4, 5])  # doctest: +SKIP
>>> writer = rewrite.open_writer(dataset, number=0)  # doctest: +SKIP
>>> writer.write(addresses, batch)  # doctest: +SKIP
>>> rewrite.commit(dataset, [writer.finish()])  # doctest: +SKIP
CompactionMetrics(fragments_removed=3, fragments_added=1, files_removed=3, files_added=1)

Rows keep their ids and versions if the table has stable row ids. Indices cover the new fragments only after an update,
as after a compaction.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lance_format.errors import InvalidInputError, VersionNotFoundError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.changes.rows.claimed_rows import Addresses, ClaimedRows, Lineage
from lance_format.table.changes.rows.row_delta_writer import RowDeltaChanges
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.column_parts import held_columns
from lance_format.table.fragments.writer import DEFAULT_MAX_BYTES_PER_FILE, DataFileOptions, FragmentWriter
from lance_format.table.maintenance.compaction import CompactionMetrics
from lance_format.table.maintenance.kept_lineage import named_as
from lance_format.table.row_ids.row_id_sequence import RowIdSequence
from lance_format.table.row_ids.row_version_sequence import RowVersionSequence
from lance_format.table.transaction.operations import Rewrite, RewriteGroup
from lance_format.table.versions.checkout import check_out
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import WriterPlan
from lance_format.table.versions.table_version import Draft, TableVersion


class RowRewriter:
    """Writer of the rows of one task. Nothing of them is seen before the commit.

    Parameters
    ----------
    table : TableVersion
        The version that the rewrite was planned on.
    plan : RowRewrite
    number : int
        Number of the task.
    """

    def __init__(self, table: TableVersion, plan: RowRewrite, number: int) -> None:
        self._table = table
        self._uuid = plan.uuid
        self._number = number
        self._claimed = ClaimedRows(table)
        self._lineages: list[Lineage] = []
        version = table.manifest.file_version
        options = DataFileOptions(version, max_bytes_per_file=plan.max_bytes_per_file)
        schema = table.manifest.schema
        self._written = schema.select(held_columns(schema, plan.fragments).names)
        self._writer = FragmentWriter(table.directory, self._written, options, job=plan.uuid)

    def write(self, addresses: Addresses, rows: pa.RecordBatch) -> None:
        """Write rows.

        Parameters
        ----------
        addresses : uint64[num_rows]
            Their addresses in the version that the rewrite was planned on.
        rows : pyarrow.RecordBatch
            Their values of all columns, in the same order.

        Raises
        ------
        InvalidInputError
            If there is no such row, or it was written before.
        SchemaMismatchError
            If the values do not fit the table.
        """
        if addresses.size != rows.num_rows:
            raise InvalidInputError(f"there are {addresses.size} addresses of {rows.num_rows} rows")
        if not rows.num_rows:
            return
        lineage = self._claimed.claim(addresses)
        if self._table.manifest.stable_row_ids:
            self._lineages.append(lineage)
        self._writer.write_batch(self._with_values(rows))

    def _with_values(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that are written: others, which no fragment has values of, stay without files."""
        if sorted(rows.schema.names) != sorted(self._table.manifest.schema.names):
            return rows  # The writer says what is wrong.
        return rows.select(self._written.names)

    def finish(self) -> RowDeltaChanges:
        """Close the files, and return the result of the task."""
        written = self._writer.finish()
        if self._table.manifest.stable_row_ids:
            ids = RowIdSequence.concatenate(RowIdSequence.from_array(each.ids) for each in self._lineages)
            created, changed = (
                RowVersionSequence.concatenate(map(RowVersionSequence.from_array, versions))
                for versions in (
                    [each.created_at for each in self._lineages],
                    [each.last_updated_at for each in self._lineages],
                )
            )
            written = named_as(written, ids, created, changed)
        return RowDeltaChanges(self._number, self._uuid, self._claimed.rows, tuple(written))

    def __enter__(self) -> RowRewriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Delete the files after an exception."""
        if kind is not None:
            self._writer.discard()


@dataclass(frozen=True, slots=True)
class RowRewrite(WriterPlan[RowDeltaChanges, CompactionMetrics]):
    """Planned rewrite of fragments in another order. Made by `plan_row_rewrite`. Tasks have the order of their rows.

    Parameters
    ----------
    read_version : int
    uuid : str
    fragments : tuple of FragmentMetadata
        The fragments to replace.
    max_bytes_per_file : int
    """

    read_version: int
    uuid: str
    fragments: tuple[FragmentMetadata, ...]
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE

    def open_writer(self, dataset: OpenTable, number: int) -> RowRewriter:
        """Return the writer of a task.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.
        number : int
            Number of the task, from 0.
        """
        return RowRewriter(check_out(dataset._table, self.read_version), self, number)

    def operation(self, draft: Draft, results: Sequence[RowDeltaChanges]) -> Rewrite | None:
        """Replace the fragments, if the tasks have written each live row once.

        Raises
        ------
        InvalidInputError
            If a row was not written, or rows of other fragments were.
        """
        if not self.fragments:
            return None
        for fragment in self.fragments:
            scan = draft.table.scan(fragment, draft.table.manifest.schema.select([]))
            found = sum(result.removed.offsets(fragment.id).size for result in results)
            if found != scan.num_rows():
                raise InvalidInputError(
                    f"fragment {fragment.id} has {scan.num_rows()} rows, and {found} were written; nothing was changed"
                )
        num_written = sum(result.num_written for result in results)
        if num_written != sum(result.removed.offsets(each.id).size for result in results for each in self.fragments):
            raise InvalidInputError(f"{num_written} rows were written, some of other fragments; nothing was changed")
        return Rewrite((self._group(results),))

    def outcome(self, results: Sequence[RowDeltaChanges]) -> CompactionMetrics:
        """Count fragments and files."""
        return CompactionMetrics.of([self._group(results)])

    def find_outcome(self, dataset: OpenTable) -> CompactionMetrics:
        """Return the outcome of a commit that another process made, and move the dataset to its version.

        Raises
        ------
        VersionNotFoundError
            If there is no such commit.
        """
        table = check_out(dataset._table, self.read_version)
        history = table.history()
        landed = history.find_transaction(self.uuid, self.read_version)
        if landed is None:
            raise VersionNotFoundError(f"no version of {table.root} was made by the rewrite {self.uuid}")
        operation = history.load_transaction(landed.version).operation
        dataset._table = table.latest()
        groups = operation.groups if isinstance(operation, Rewrite) else ()
        return CompactionMetrics.of(groups)

    def _group(self, results: Sequence[RowDeltaChanges]) -> RewriteGroup:
        return RewriteGroup(self.fragments, tuple(fragment for result in results for fragment in result.written))


def plan_row_rewrite(
    table: TableVersion,
    fragment_ids: Sequence[int] | None = None,
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
    identity: str | None = None,
) -> RowRewrite:
    """Plan to rewrite fragments in another order.

    Parameters
    ----------
    table : TableVersion
    fragment_ids : sequence of int, optional
        The fragments, by default all.
    max_bytes_per_file : int
        A data file is closed when it reaches this size.
    identity : str, optional
        The uuid of the plan, by default a new one. Plans of one uuid, version and fragments are the same plan.

    Raises
    ------
    InvalidInputError
        If there is no such fragment.
    """
    table.manifest.file_version.require_changeable()
    known = {fragment.id: fragment for fragment in table.manifest.fragments}
    given = list(known if fragment_ids is None else fragment_ids)
    unknown = [number for number in given if not isinstance(number, int) or number not in known]
    if unknown:
        raise InvalidInputError(f"version {table.manifest.version} of {table.root} has no fragment {unknown[0]!r}")
    chosen = sorted(set(given))
    fragments = tuple(known[number] for number in chosen)
    return RowRewrite(table.manifest.version, identity or str(uuid.uuid4()), fragments, max_bytes_per_file)
