"""The write side of DELETE, UPDATE and MERGE: tasks stream rows into data files, the driver commits one version.

The delta is planned, and its uuid chosen, in the constructor; see `connector.write.plan_writer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connector.dml.delta_form import DELETED, NEW, REPLACED, DeltaForm
from connector.options.options import LanceOptions
from connector.options.snapshot import open_at
from connector.types.batches import to_stored
from connector.write.plan_writer import PlanWriter
from lance_format import LanceDataset, RowDelta, RowDeltaChanges


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
        self._schema = dataset.read_schema("all_binary")
        description = f"{form.command} of Spark"
        self._delta = dataset.plan_row_delta(list(form.changed), description=description, uuid=form.uuid)

    def _open(self) -> LanceDataset:
        return open_at(self._options, *self._snapshot)

    def _plan(self, dataset: LanceDataset) -> RowDelta:  # noqa: ARG002
        return self._delta

    def _fill(self, writer: Any, dataset: LanceDataset, batches: Iterator[pa.RecordBatch]) -> None:  # noqa: ARG002
        for batch in batches:
            operations = batch.column(0)
            writer.delete(self._addresses(_those(batch, operations, (DELETED,))))
            replaced = _those(batch, operations, (REPLACED,))
            if replaced.num_rows:
                writer.update(self._addresses(replaced), self._rows(replaced))
            new = _those(batch, operations, NEW)
            if new.num_rows:
                writer.insert(self._rows(new))

    def _addresses(self, batch: pa.RecordBatch) -> npt.NDArray[np.uint64]:
        """Return the addresses of rows; Spark has no unsigned numbers, but none of these is negative."""
        addresses: npt.NDArray[np.int64] = batch.column(self._form.address).to_numpy(zero_copy_only=False)
        return addresses.astype(np.uint64)

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values of rows, as the table stores them."""
        columns = [batch.column(position) for position in self._form.row]
        return to_stored(pa.RecordBatch.from_arrays(columns, names=list(self._form.names)), self._schema)


def _those(batch: pa.RecordBatch, operations: pa.Array, wanted: Sequence[int]) -> pa.RecordBatch:
    return batch.filter(pc.is_in(operations, pa.array(wanted, operations.type)))
