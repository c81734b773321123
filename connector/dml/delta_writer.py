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
from connector.types.batches import to_stored
from connector.write.plan_writer import PlanWriter
from lance_format import LanceDataset, RowDelta, RowDeltaChanges

_KEPT_BYTES = 64 * 1024 * 1024
"""Approximate size of the values that are read from the table at a time."""


class DeltaWriter(PlanWriter):
    """Writes rows that are deleted, replaced or new.

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
        self._kept = [name for name in self._schema.names if form.names and name not in form.names]
        description = f"{form.command} of Spark"
        delta = dataset.plan_row_delta(
            list(form.changed), description=description, uuid=form.uuid, new_columns=options.new_columns
        )
        self._delta = dataclasses.replace(delta, notes=form.notes)

    def _open(self) -> LanceDataset:
        return open_committed(self._options, *self._snapshot)

    def _with_new_columns(self, dataset: LanceDataset) -> LanceDataset:
        columns = self._options.new_columns
        return dataset if columns is None else dataset.with_new_columns(columns)

    def _plan(self, dataset: LanceDataset) -> RowDelta:  # noqa: ARG002
        return self._delta

    def _fill(self, writer: Any, dataset: LanceDataset, batches: Iterator[pa.RecordBatch]) -> None:
        dataset = self._with_new_columns(dataset)
        for batch in batches:
            operations = batch.column(0)
            writer.delete(self._addresses(_those(batch, operations, (DELETED,))))
            replaced = _those(batch, operations, (REPLACED,))
            if replaced.num_rows:
                for some in self._divide(replaced, dataset):
                    writer.update(self._addresses(some), self._new_rows(some, dataset))
            new = _those(batch, operations, NEW)
            if new.num_rows:
                writer.insert(self._rows(new))

    def _addresses(self, batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
        """Return the addresses of rows; Spark has no unsigned numbers, but none of these is negative."""
        addresses: npt.NDArray[np.int64] = batch.column(self._form.address).to_numpy(zero_copy_only=False)
        return addresses.astype(np.uint64)

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values of rows that the form has, as the table stores them."""
        columns = [batch.column(position) for position in self._form.row]
        given = [field for field in self._schema if field.name not in self._kept]
        return to_stored(pa.RecordBatch.from_arrays(columns, names=list(self._form.names)), pa.schema(given))

    def _new_rows(self, batch: pa.RecordBatch, dataset: LanceDataset) -> pa.RecordBatch:
        """Return the rows that replace others, with the columns that they keep."""
        rows = self._rows(batch)
        if not self._kept:
            return rows
        kept = dataset.take_addresses(self._addresses(batch), self._kept, blob_handling="all_binary").combine_chunks()
        arrays = [_only_chunk(kept[name]) if name in self._kept else rows[name] for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _divide(self, batch: pa.RecordBatch, dataset: LanceDataset) -> Iterator[pa.RecordBatch]:
        """Divide rows so that what they keep fits into memory."""
        if not self._kept:
            yield batch
            return
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        size = sum(fragment.known_bytes for fragment in fragments)
        width = size // max(sum(fragment.physical_rows for fragment in fragments), 1)
        num_rows = max(_KEPT_BYTES // max(width, 1), 1)
        for start in range(0, batch.num_rows, num_rows):
            yield batch.slice(start, num_rows)


def _those(batch: pa.RecordBatch, operations: pa.Array, wanted: Sequence[int]) -> pa.RecordBatch:
    return batch.filter(pc.is_in(operations, pa.array(wanted, operations.type)))


def _only_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
