"""The write side of DELETE, UPDATE and MERGE: tasks stream rows into data files, the driver commits one version.

The delta is planned, and its uuid chosen, in the constructor; see `connector.write.plan_writer`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connector.dml.delta_form import DELETED, NEW, REPLACED, DeltaForm
from connector.options.options import LanceOptions
from connector.options.snapshot import open_committed
from connector.types.arrays import is_rounded
from connector.types.batches import to_stored
from connector.types.unseen_parts import keep_unseen
from connector.write.plan_writer import PlanWriter
from lance_format import LanceDataset, RowDelta, RowDeltaChanges, storage_schema
from lance_format.arrow_rows import keep_rows

_KEPT_BYTES = 64 * 1024 * 1024
"""Approximate size of the values that are read from the table at a time, and of those that wait for them."""

_FIRST_ROWS = 64
_GROWTH = 256
"""Sizes of files tell little of those of values: they are compressed, and averages. So few rows are read at first, a
chunk of a page of each column, and then most of the others at once: where steps are near each other, an object store is
asked for the same bytes again.
"""


class DeltaWriter(PlanWriter):
    """Writes rows that are deleted, replaced or new.

    Replaced rows have their own values of unchanged columns whose values Spark has seen rounded, and of others where it
    returns what it has seen.

    Parameters
    ----------
    options : LanceOptions
    form : DeltaForm
    snapshot : tuple of str and int
        The location of the table, and the version from which the rows were read.
    """

    def __init__(self, options: LanceOptions, form: DeltaForm, snapshot: tuple[str, int]) -> None:
        super().__init__(options.path, RowDeltaChanges)
        self._form = form
        self._snapshot = snapshot
        self._options = options
        dataset = self._open()
        self._schema = self._with_new_columns(dataset).read_schema("all_binary")
        self._kept = [
            field.name
            for field in storage_schema(self._schema)
            if field.name in form.kept or (field.name not in form.changed and is_rounded(field.type))
        ]
        description = f"{form.command} of Spark"
        self._compared = [
            field.name for field in storage_schema(self._schema) if field.name in form.partly and is_rounded(field.type)
        ]
        self._read = [*self._kept, *self._compared]
        delta = dataset.plan_row_delta(
            list(form.changed), description=description, uuid=form.uuid, new_columns=options.new_columns
        )
        self._delta = dataclasses.replace(delta, notes=form.notes, deletes_again=form.repeats)

    def _open(self) -> LanceDataset:
        return open_committed(self._options, *self._snapshot)

    def _with_new_columns(self, dataset: LanceDataset) -> LanceDataset:
        columns = self._options.new_columns
        return dataset if columns is None else dataset.with_new_columns(columns)

    def _plan(self, dataset: LanceDataset) -> RowDelta:  # noqa: ARG002
        return self._delta

    def _fill(self, writer: Any, dataset: LanceDataset, batches: Iterator[pa.RecordBatch]) -> None:
        dataset = self._with_new_columns(dataset)
        waiting = _WaitingRows(self._rows_at_a_time(dataset))
        kept = _KeptRows(dataset, self._read)
        for batch in batches:
            operations = batch.column(0)
            writer.delete(self._addresses(_those(batch, operations, (DELETED,))))
            self._update(writer, kept, waiting.add(_those(batch, operations, (REPLACED,))))
            new = _those(batch, operations, NEW)
            if new.num_rows:
                writer.insert(self._stored(self._given(new), self._schema.names))
        self._update(writer, kept, waiting.take())

    def _update(self, writer: Any, kept: _KeptRows, batches: Iterator[pa.RecordBatch]) -> None:
        for batch in batches:
            first = 0
            for old in kept.read(self._addresses(batch)) if self._read else [batch.select([])]:
                rows = batch.slice(first, old.num_rows)
                writer.update(self._addresses(rows), self._new_rows(rows, old))
                first += old.num_rows

    def _addresses(self, batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
        """Return the addresses of rows; Spark has no unsigned numbers, but none of these is negative."""
        addresses: npt.NDArray[np.int64] = batch.column(self._form.address).to_numpy(zero_copy_only=False)
        return addresses.astype(np.uint64)

    def _given(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the table that rows have."""
        columns = [batch.column(position) for position in self._form.row]
        return pa.RecordBatch.from_arrays(columns, names=list(self._form.names))

    def _stored(self, given: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Return the values of some columns, as the table stores them."""
        return to_stored(given, pa.schema([self._schema.field(name) for name in names]))

    def _new_rows(self, batch: pa.RecordBatch, kept: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that replace others, with what they keep of these."""
        given = self._given(batch)
        rows = self._stored(given, [name for name in self._schema.names if name not in self._kept])
        old = {name: kept.column(name) for name in self._read}
        new = {name: keep_unseen(rows[name], given[name], old[name], name) for name in self._compared}
        arrays = [new[name] if name in new else old[name] if name in old else rows[name] for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _rows_at_a_time(self, dataset: LanceDataset) -> int | None:
        """Return for how many rows what they keep fits into memory, or None if they keep nothing."""
        if not self._read:
            return None
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        size = sum(fragment.known_bytes for fragment in fragments)
        width = size // max(sum(fragment.physical_rows for fragment in fragments), 1)
        return max(_KEPT_BYTES // max(width, 1), 1)


class _KeptRows:
    """Reads what replaced rows keep.

    Parameters
    ----------
    dataset : LanceDataset
    columns : sequence of str
    """

    def __init__(self, dataset: LanceDataset, columns: Sequence[str]) -> None:
        self._dataset = dataset
        self._columns = columns
        self._num_rows = _FIRST_ROWS

    def read(self, addresses: npt.NDArray[np.uint64]) -> Iterator[pa.RecordBatch]:
        """Yield the columns of rows, in their order, in batches that fit into memory, except a single larger row."""
        ends = np.cumsum(self._dataset.payload_sizes(addresses, self._columns))
        start = 0
        while start < addresses.size:
            before = ends[start - 1] if start else 0
            stop = max(int(np.searchsorted(ends, before + _KEPT_BYTES, side="right")), start + 1)
            some = addresses[start : min(stop, start + self._num_rows)]
            table = self._dataset.take_addresses(some, self._columns, blob_handling="all_binary")
            fitting = max(_KEPT_BYTES * some.size // max(table.nbytes, 1), 1)
            self._num_rows = min(fitting, self._num_rows * _GROWTH)
            yield from table.combine_chunks().to_batches()
            start += some.size


class _WaitingRows:
    """Replaced rows that wait until there are enough of them to read what they keep at once.

    Reads of many rows that are close to each other take few requests, and decode each part of a page once.

    Parameters
    ----------
    num_rows : int, optional
        Rows at a time. Without it, batches are returned as they are.
    """

    def __init__(self, num_rows: int | None) -> None:
        self._num_rows = num_rows
        self._batches: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add rows, and yield those that wait no longer."""
        if batch.num_rows:
            self._batches.append(batch)
        count = sum(some.num_rows for some in self._batches)
        size = sum(some.nbytes for some in self._batches)
        if self._num_rows is None or count >= self._num_rows or size >= _KEPT_BYTES:
            yield from self.take()

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows that wait."""
        batches, self._batches = self._batches, []
        if self._num_rows is None or not batches:
            yield from batches
            return
        whole = pa.concat_batches(batches)
        for start in range(0, whole.num_rows, self._num_rows):
            yield whole.slice(start, self._num_rows)


def _those(batch: pa.RecordBatch, operations: pa.Array, wanted: Sequence[int]) -> pa.RecordBatch:
    return keep_rows(batch, pc.is_in(operations, pa.array(wanted, operations.type)))
