"""Reading one fragment: deleted rows are skipped, and columns that no file has are null.

Rows are counted in two ways. *Physical* rows are those of the data files; *live* rows are the physical rows that are
not deleted.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format import masks
from lance_format.arrow_rows import take_rows
from lance_format.datatypes import Field, Schema
from lance_format.file import BlobFile, SearchCache
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ReadCounter, map_together
from lance_format.table.format.base_paths import BasePath
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.fragments.batch_rows import BATCH_BYTES
from lance_format.table.fragments.deletion_file import RowOffsets, read_deleted_rows
from lance_format.table.fragments.open_files import FragmentFiles, empty_columns_batch

OffsetsFunction: TypeAlias = Callable[[], RowOffsets]
"""Offsets of rows that are computed once somebody asks."""


@dataclass(frozen=True, slots=True)
class Consecutive:
    """The rows `start <= row < stop`; an `OffsetsFunction`."""

    start: int
    stop: int

    def __call__(self) -> RowOffsets:
        """Return the rows."""
        return np.arange(self.start, self.stop, dtype=np.int64)

    def __len__(self) -> int:
        return self.stop - self.start

    def slice(self, start: int, num_rows: int) -> Consecutive:
        """Return a range of the rows."""
        return Consecutive(self.start + start, min(self.start + start + num_rows, self.stop))


@dataclass(frozen=True, slots=True)
class FragmentReader:
    """Some columns of one fragment.

    Parameters
    ----------
    directory : TableDirectory
    fragment : FragmentMetadata
    schema : Schema
        The columns, in output order.
    cache : SearchCache
        Of the table.
    table : Schema
        All columns of the table.
    bases : mapping of int to BasePath
        Directories of files that the parents of a branch wrote; see `Manifest.bases`.
    memory : dict
        Facts about the fragment, cached for its scans.
    """

    directory: TableDirectory
    fragment: FragmentMetadata
    schema: Schema
    cache: SearchCache
    table: Schema
    bases: Mapping[int, BasePath] = dataclasses.field(default_factory=dict)
    memory: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def physical_rows(self) -> int:
        """Return the number of rows of the data files."""
        if self.fragment.physical_rows:
            return self.fragment.physical_rows
        if "physical_rows" not in self.memory:
            with self.open() as files:
                self.memory["physical_rows"] = files.reader(self.fragment.files[0]).num_rows
        num_rows: int = self.memory["physical_rows"]
        return num_rows

    def num_deletions(self) -> int:
        """Return the number of deleted rows."""
        deletion = self.fragment.deletion_file
        if deletion is None or deletion.num_deleted_rows:
            return 0 if deletion is None else deletion.num_deleted_rows
        return self.deleted_rows().size

    def num_rows(self) -> int:
        """Return the number of live rows."""
        return self.physical_rows() - self.num_deletions()

    def deleted_rows(self) -> RowOffsets:
        """Return the offsets of the deleted rows, ascending. They are read once, and cached: the file never changes."""
        deletion = self.fragment.deletion_file
        if deletion is None:
            return np.zeros(0, dtype=np.int64)
        if "deleted_rows" not in self.memory:
            holding = self.directory.holding(deletion, self.bases)
            key = (holding.path(deletion.path(self.fragment.id)), "deleted rows")
            found = self.cache.get(key)
            if not isinstance(found, np.ndarray):
                found = read_deleted_rows(holding, self.fragment, self.physical_rows())
                self.cache.put(key, found, found.nbytes)
            self.memory["deleted_rows"] = found
        rows: RowOffsets = self.memory["deleted_rows"]
        return rows

    def path_of(self, column: Field) -> str | None:
        """Return the path of a data file that holds a column or fields below it; None if there is none."""
        ids = {field.id for field in column.walk()}
        for file in self.fragment.files:
            if not ids.isdisjoint(file.fields):
                return self.directory.holding(file, self.bases).path(file.relative_path)
        return None

    def open(self, counter: ReadCounter | None = None) -> FragmentFiles:
        """Return the data files, which are opened on demand; a counter can measure their reads."""
        ahead: FragmentFiles | None = self.memory.pop("files", None)
        return self._files(counter) if ahead is None else ahead

    def _files(self, counter: ReadCounter | None = None, *, recovers: bool = False) -> FragmentFiles:
        return FragmentFiles(
            self.directory, self.fragment, self.cache, self.bases, self.table, counter, recovers=recovers
        )

    def open_recovering(self) -> FragmentFiles:
        """Return the data files for a repair, which computes damaged checksums again where the data proves right."""
        return self._files(recovers=True)

    def open_ahead(self, schema: Schema, counter: ReadCounter) -> FragmentFiles:
        """Open the data files that have some columns, for the next call of `open`; return them."""
        files = self._files(counter)
        for file in files.parts(schema):
            files.reader(file)
        self.memory["files"] = files
        return files

    def forget_ahead(self) -> None:
        """Close what was opened ahead, if anything."""
        ahead: FragmentFiles | None = self.memory.pop("files", None)
        if ahead is not None:
            ahead.close()

    def read(self, start: int, stop: int, *, batch_size: int) -> Iterator[tuple[pa.RecordBatch, OffsetsFunction]]:
        """Read a range of live rows, in order.

        Parameters
        ----------
        start, stop : int
            Half-open; within the live rows.
        batch_size : int
            Maximum number of rows per batch; deleted and large rows make some smaller.

        Yields
        ------
        batch : pa.RecordBatch
        offsets : function that returns int64[num_rows]
            The physical rows of the batch.
        """
        if start >= stop:
            return
        first, last = to_physical(np.array([start, stop - 1], dtype=np.int64), self.deleted_rows())
        with self.open() as files:
            yield from self.read_range(files, self.schema, int(first), int(last) + 1, batch_size=batch_size)

    def read_range(
        self,
        files: FragmentFiles,
        schema: Schema,
        start: int,
        stop: int,
        *,
        batch_size: int,
        batch_bytes: int | None = BATCH_BYTES,
    ) -> Iterator[tuple[pa.RecordBatch, OffsetsFunction]]:
        """Read the live rows of a range of physical rows, in order.

        Parameters
        ----------
        files : FragmentFiles
            The data files of this fragment.
        schema : Schema
            The columns, in output order.
        start, stop : int
            Half-open; within the physical rows.
        batch_size : int
            See `read`.
        batch_bytes : int or None
            Approximate maximum size of a batch in memory; None for any.
        """
        deleted = self.deleted_rows()
        row = start
        for batch in files.read(schema, start, stop, batch_size=batch_size, batch_bytes=batch_bytes):
            first, row = row, row + batch.num_rows
            offsets: OffsetsFunction = Consecutive(first, row)
            gone = deleted[slice(*np.searchsorted(deleted, [first, row]))] - first if deleted.size else deleted
            if gone.size:
                kept = np.ones(batch.num_rows, dtype=np.bool_)
                kept[gone] = False
                batch, offsets = filter_rows(batch, pa.array(kept)), partial(_offsets_of, first, kept)
            if batch.num_rows:
                yield batch, offsets

    def take(self, rows: RowOffsets) -> pa.RecordBatch:
        """Read live rows by offset, in the given order; offsets may repeat."""
        return self.take_physical(to_physical(rows, self.deleted_rows()))

    def take_physical(self, physical: RowOffsets) -> pa.RecordBatch:
        """Read physical rows, deleted or not, in the order given; they may repeat."""
        if not self.schema.fields:
            return empty_columns_batch(physical.size)
        order = np.argsort(physical, kind="stable")
        with self.open() as files:
            batch = files.take(self.schema, physical[order])
        if (order[:-1] < order[1:]).all():
            return batch
        inverse = np.empty_like(order)
        inverse[order] = np.arange(order.size)
        return take_rows(batch, pa.array(inverse))

    def take_blobs(self, physical: RowOffsets) -> list[BlobFile | None]:
        """Open the blobs of the only column in physical rows, deleted or not, which ascend; they may repeat."""
        with self.open() as files:
            for file, (part,) in files.parts(self.schema).items():
                locations = files.reader(file).locate_blobs(part, physical)
                return [None if location is None else BlobFile(location) for location in locations]
        return [None] * physical.size


def _offsets_of(first: int, kept: npt.NDArray[np.bool_]) -> RowOffsets:
    return first + np.flatnonzero(kept)


def to_physical(live: npt.NDArray[np.int64], deleted: RowOffsets) -> RowOffsets:
    """Return the physical rows of live rows, given by offset."""
    # Deleted row number i has deleted[i] - i live rows before it.
    return live + np.searchsorted(deleted - np.arange(deleted.size), live, side="right")


def to_live(physical: RowOffsets, deleted: RowOffsets) -> RowOffsets:
    """Return the number of live rows before each of some ascending physical rows."""
    return physical - np.searchsorted(deleted, physical) if deleted.size else physical


def load_deleted_rows(scans: Iterable[FragmentReader]) -> None:
    """Let fragments read and remember their deleted rows, several at the same time where a request takes long."""
    wanted = [scan for scan in scans if scan.fragment.deletion_file is not None]
    if wanted:
        deque(map_together(wanted[0].directory.store, FragmentReader.deleted_rows, wanted), maxlen=0)


def filter_rows(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows of a batch for which a mask without nulls is true; the batch may have no columns."""
    if not batch.num_columns:
        return empty_columns_batch(mask.true_count)
    return masks.filter_rows(batch, mask)
