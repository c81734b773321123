"""Adding columns by address: an engine that computes them elsewhere gives each row its values.

The caller decides on the number of tasks; each has a writer. All rows of a fragment go to one task, in the order of
their addresses. Rows without values get null. A fragment without any values gets no file.

>>> backfill = dataset.plan_column_backfill(pa.schema({"size": pa.int64()}))  # doctest: +SKIP
>>> writer = backfill.open_writer(dataset, number=0)  # doctest: +SKIP
>>> writer.write(addresses, batch)  # doctest: +SKIP
>>> backfill.commit(dataset, [writer.finish()])  # doctest: +SKIP
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.changes.columns.add import merge_schemas, with_new_file
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.writer import DataFileOptions, FragmentWriter
from lance_format.table.row_ids.index import split_addresses
from lance_format.table.transaction.operations import Merge
from lance_format.table.versions.checkout import check_out
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import WriterPlan
from lance_format.table.versions.table_version import Draft, TableVersion

_HEADER = struct.Struct("<QQ")
_FILL_ROWS = 65_536
_MAX_ROWS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class BackfilledFragments:
    """Result of a task. Can be pickled, or sent as bytes.

    Parameters
    ----------
    number : int
    uuid : str
        The uuid of the plan.
    num_rows : int
        Number of rows that got values.
    fragments : tuple of FragmentMetadata
        The fragments with their new data files alone.
    """

    number: int
    uuid: str
    num_rows: int
    fragments: tuple[FragmentMetadata, ...]

    def to_bytes(self) -> bytes:
        """Return the number and the rows (two uint64, little-endian), and the rest as JSON."""
        fragments = [fragment.to_json() for fragment in self.fragments]
        return _HEADER.pack(self.number, self.num_rows) + json.dumps([self.uuid, fragments]).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Rebuild the result from the bytes that `to_bytes` returned.

        Raises
        ------
        InvalidInputError
            If the bytes are malformed.
        """
        try:
            number, num_rows = _HEADER.unpack_from(data)
            identity, fragments = json.loads(data[_HEADER.size :])
            made = tuple(FragmentMetadata.from_json(fragment) for fragment in fragments)
        except (struct.error, ValueError, TypeError, RecursionError) as error:
            raise InvalidInputError(f"these bytes are no result of a column backfill: {error}") from error
        return cls(number, str(identity), num_rows, made)


class ColumnBackfillWriter:
    """Writer of the new columns of some fragments. No reader sees them before the commit.

    Parameters
    ----------
    table : TableVersion
        The version that the backfill was planned on.
    plan : ColumnBackfill
    number : int
        Number of the task.
    """

    def __init__(self, table: TableVersion, plan: ColumnBackfill, number: int) -> None:
        self._table = table
        self._plan = plan
        self._number = number
        self._num_rows = 0
        self._made: list[FragmentMetadata] = []
        self._fragment: FragmentMetadata | None = None
        self._physical_rows = 0
        self._row = 0
        self._writer: FragmentWriter | None = None

    def write(self, addresses: npt.NDArray[np.uint64], values: pa.RecordBatch) -> None:
        """Write the new columns of some rows.

        Parameters
        ----------
        addresses : uint64[num_rows]
            Ascending, within and across calls. All rows of a fragment go to one task.
        values : pyarrow.RecordBatch
            The new columns, in the same order.

        Raises
        ------
        InvalidInputError
            If there is no such row, or an address is not larger than the one before.
        SchemaMismatchError
            If the values do not fit the columns.
        """
        if addresses.size != values.num_rows:
            raise InvalidInputError(f"there are {addresses.size} addresses of {values.num_rows} rows")
        fragment_ids, offsets = split_addresses(addresses)
        starts = [0, *(np.flatnonzero(np.diff(fragment_ids)) + 1).tolist(), addresses.size]
        for start, stop in itertools.pairwise(starts):
            if stop > start:
                part = values.slice(start, stop - start)
                self._write_part(int(fragment_ids[start]), offsets[start:stop], part)
        self._num_rows += values.num_rows

    def finish(self) -> BackfilledFragments:
        """Close the files, and return the result of the task."""
        self._close()
        return BackfilledFragments(self._number, self._plan.uuid, self._num_rows, tuple(self._made))

    def __enter__(self) -> ColumnBackfillWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Delete the open file after an exception; the abort of the plan deletes the others."""
        if kind is not None and self._writer is not None:
            self._writer.discard()

    def _write_part(self, fragment_id: int, offsets: npt.NDArray[np.int64], values: pa.RecordBatch) -> None:
        if self._fragment is None or self._fragment.id != fragment_id:
            if self._fragment is not None and fragment_id < self._fragment.id:
                raise InvalidInputError("the addresses of a column backfill must be ascending; sort the rows by them")
            self._close()
            self._open(fragment_id)
        where = f"fragment {fragment_id} of {self._table.root}"
        steps = np.diff(offsets, prepend=self._row - 1)
        if steps.min() < 1:
            place = offsets[int(np.argmin(steps))]
            raise InvalidInputError(f"row {place} of {where} has several values, or the rows are not sorted by address")
        last = int(offsets[-1])
        if last >= self._physical_rows:
            raise InvalidInputError(f"there is no row {last} in {where}, which has {self._physical_rows}")
        places = np.full(last + 1 - self._row, -1, np.int64)
        places[offsets - self._row] = np.arange(offsets.size)
        self._write(values if places.size == offsets.size else take_rows(values, pa.array(places, mask=places < 0)))

    def _open(self, fragment_id: int) -> None:
        manifest = self._table.manifest
        fragment = manifest.fragment(fragment_id)
        if fragment is None:
            raise InvalidInputError(f"version {manifest.version} of {self._table.root} has no fragment {fragment_id}")
        self._fragment = fragment
        self._physical_rows = self._table.scan(fragment, manifest.schema.select([])).physical_rows()
        self._row = 0
        options = DataFileOptions(manifest.file_version, _MAX_ROWS, 2**63 - 1)
        self._writer = FragmentWriter(self._table.directory, self._plan.added, options, job=self._plan.uuid)

    def _write(self, values: pa.RecordBatch) -> None:
        if self._writer is not None:
            self._writer.write_batch(values)
        self._row += values.num_rows

    def _close(self) -> None:
        """Fill the rest of the open fragment with nulls, and close its file."""
        if self._fragment is None or self._writer is None:
            return
        arrow = self._plan.added.to_storage()
        while self._row < self._physical_rows:
            num_rows = min(_FILL_ROWS, self._physical_rows - self._row)
            self._write(pa.RecordBatch.from_arrays([pa.nulls(num_rows, field.type) for field in arrow], schema=arrow))
        files = tuple(file for part in self._writer.finish() for file in part.files)
        self._made.append(FragmentMetadata(self._fragment.id, files, self._physical_rows))
        self._fragment = self._writer = None


@dataclass(frozen=True, slots=True)
class ColumnBackfill(WriterPlan[BackfilledFragments, int]):
    """Planned columns. Made by `plan_column_backfill`.

    Parameters
    ----------
    read_version : int
    uuid : str
    added : Schema
        The new columns with field ids.
    schema : Schema
        Of the table with the new columns.
    """

    read_version: int
    uuid: str
    added: Schema
    schema: Schema

    def open_writer(self, dataset: OpenTable, number: int) -> ColumnBackfillWriter:
        """Return the writer of a task.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.
        number : int
            Number of the task, from 0.
        """
        return ColumnBackfillWriter(check_out(dataset._table, self.read_version), self, number)

    def checked(self, results: Iterable[BackfilledFragments]) -> list[BackfilledFragments]:
        """Return results in order; check that each task has one, and that no fragment has two.

        Raises
        ------
        InvalidInputError
            If a result is missing or of another plan, or if two results have the same fragment.
        """
        given = WriterPlan.checked(self, results)
        ids = [fragment.id for fragment in _fragments(given)]
        if len(set(ids)) < len(ids):
            raise InvalidInputError("two tasks wrote columns of one fragment; give all rows of a fragment to one task")
        return given

    def operation(self, draft: Draft, results: Sequence[BackfilledFragments]) -> Merge:
        """Add the new files to the existing ones."""
        made = {fragment.id: fragment for fragment in _fragments(results)}
        table = draft.table.manifest
        fragments = tuple(_widened(old, made.get(old.id), table.schema) for old in table.fragments)
        return Merge(fragments, self.schema, preserves_nullability=True)

    def outcome(self, results: Sequence[BackfilledFragments]) -> int:
        """Count the rows that got values."""
        return sum(result.num_rows for result in results)


def plan_column_backfill(table: TableVersion, columns: pa.Schema, identity: str | None = None) -> ColumnBackfill:
    """Plan to add columns whose values the caller has by address.

    Parameters
    ----------
    table : TableVersion
    columns : pa.Schema
        The new columns, which may be null in any case.
    identity : str, optional
        The uuid of the plan, by default a new one. Plans of one uuid, version and schema are the same plan.

    Raises
    ------
    InvalidInputError
        If a column exists already, or there is none.
    """
    table.manifest.file_version.require_changeable()
    added, merged = merge_schemas(table, pa.schema([field.with_nullable(True) for field in columns]))
    return ColumnBackfill(table.manifest.version, identity or str(uuid.uuid4()), added, merged)


def _widened(old: FragmentMetadata, new: FragmentMetadata | None, schema: Schema) -> FragmentMetadata:
    if new is None:
        return old
    return with_new_file(dataclasses.replace(old, physical_rows=new.physical_rows), new.files[0], schema)


def _fragments(results: Sequence[BackfilledFragments]) -> Iterator[FragmentMetadata]:
    for result in results:
        yield from result.fragments
