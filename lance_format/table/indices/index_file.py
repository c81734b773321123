"""Files of indices that are read in parts. Such files never change: small parts are kept in the cache of the table."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.data_block import Counts
from lance_format.datatypes import Field, Schema
from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.file import ColumnProjection, FileReader, column_indices
from lance_format.lazy_dataclasses import dataclass
from lance_format.structural.row_index import expand_ranges
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.opening import opening
from lance_format.table.indices.row_finder import UnusableError
from lance_format.table.indices.single_rows import check_single_rows
from lance_format.table.versions.table_version import TableVersion
from lance_format.version import FileVersion

_Kept = TypeVar("_Kept")
_BATCH_ROWS = 4096
_BYTES_AT_ONCE = 1 << 20
"""Of rows of average size; one alone may have more."""
_MOST_ROWS_PER_BYTE = 4096
"""A small damaged file may seem to hold any number of rows."""
_KEPT_BYTES = 4 << 20
"""Of parts that are kept, by the average size of a row in the file."""
_KEPT_ROWS = 64
"""Single rows that are kept."""


@dataclass(frozen=True, slots=True)
class _Description:
    """Of a file.

    Parameters
    ----------
    path : str
    size_bytes, num_rows : int
    metadata : mapping of bytes to bytes
        Of the schema.
    columns : tuple of ColumnProjection
    """

    path: str
    size_bytes: int
    num_rows: int
    metadata: Mapping[bytes, bytes]
    columns: tuple[ColumnProjection, ...]


@functools.lru_cache(maxsize=64)
def _projections_of(fields: tuple[Field, ...], version: FileVersion) -> tuple[ColumnProjection, ...]:
    """Return the columns of a file; files of a kind have the same."""
    indices = column_indices(Schema(fields), version)
    return tuple(ColumnProjection(field, indices) for field in fields)


class IndexFile:
    """A file of an index; a context manager. It is opened once something is read that is not kept.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata
    name : str
    expected : sequence of pa.Field
        Its columns.

    Attributes
    ----------
    path : str
    size_bytes, num_rows : int
    metadata : mapping of bytes to bytes
        Of the schema.

    Raises
    ------
    UnusableError
        If it has other columns, or the index has no such file.
    DatasetNotFoundError
        If it is missing.
    """

    def __init__(self, table: TableVersion, index: IndexMetadata, name: str, expected: Sequence[pa.Field]) -> None:
        files = [file.path for file in index.message.files]
        if files and name not in files:
            raise UnusableError(f"it has no file {name}")
        self._table, self._index, self._name = table, index, name
        self._reader: FileReader | None = None
        try:
            described = self._kept("description", self._describe, lambda _: 0)
            found = [(column.field.name, column.field.to_arrow_type()) for column in described.columns]
            wanted = [(field.name, field.type) for field in expected]
            if found != wanted:
                raise UnusableError(f"{name} has the columns {found} instead of {wanted}")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.path, self.size_bytes, self.num_rows = described.path, described.size_bytes, described.num_rows
        self.metadata, self._columns = described.metadata, described.columns

    def __enter__(self) -> IndexFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reader is not None:
            self._reader.close()

    def read(self, start: int, stop: int, names: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield a range of rows, some thousands at a time.

        Parameters
        ----------
        start, stop : int
        names : sequence of str
            The columns; by default all.
        """
        columns = self._chosen(names)

        def read() -> Iterator[pa.RecordBatch]:
            return self._open().read(columns, start, stop, batch_size=_BATCH_ROWS)

        if not self._is_small(stop - start):
            return read()
        kept: list[pa.RecordBatch] = self._kept((start, stop, *names), lambda: list(read()), _size_of)
        return iter(kept)

    def read_column(self, name: str) -> pa.ChunkedArray:
        """Return all values of a column of few bytes, such as the keys of the other columns."""
        chosen = self._chosen([name])

        def read() -> pa.ChunkedArray:
            batches = self._open().read(chosen, 0, self.num_rows, batch_size=_BATCH_ROWS)
            return pa.chunked_array((batch.column(0) for batch in batches), chosen[0].field.to_arrow_type())

        return self._kept(("all", name), read, pa.ChunkedArray.get_total_buffer_size)

    def read_ranges(self, starts: Counts, stops: Counts) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ranges, which ascend and are disjoint, some thousands at a time.

        Parameters
        ----------
        starts, stops : int64[num_ranges]
        """
        if starts.size == 0:
            return iter(())
        if starts.size == 1:
            return self.read(int(starts[0]), int(stops[0]))
        if not self._is_small(int((stops - starts).sum())):
            return self._open().take_batches(self._columns, expand_ranges(starts, stops), batch_size=16 * _BATCH_ROWS)
        return self._small_ranges(list(zip(starts.tolist(), stops.tolist(), strict=True)))

    def _small_ranges(self, ranges: Sequence[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ranges together."""
        cache = self._table.cache.of_indices
        known: dict[tuple[int, int], Any] = {bounds: cache.get((*self._key, bounds)) for bounds in ranges}
        missing = [bounds for bounds in ranges if known[bounds] is None]
        if missing:
            starts, stops = np.array(missing).T
            rows = expand_ranges(starts, stops)
            table = pa.Table.from_batches(self._open().take_batches(self._columns, rows, batch_size=rows.size))
            ends = itertools.accumulate(stop - start for start, stop in missing)
            for bounds, end in zip(missing, ends, strict=True):
                length = bounds[1] - bounds[0]
                # Taken rows are a copy: a slice would keep all others.
                part = table.slice(end - length, length).take(pa.array(np.arange(length))).to_batches()
                known[bounds] = part
                cache.put((*self._key, bounds), part, _size_of(part))
        return iter(pa.Table.from_batches(itertools.chain(*known.values())).combine_chunks().to_batches())

    def read_all(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, about a megabyte at a time, which are also read one by one.

        Raises
        ------
        CorruptFileError
            If there are too many to be true, or they are malformed.
        """
        if self.num_rows > _MOST_ROWS_PER_BYTE * self.size_bytes:
            raise CorruptFileError(f"{self.num_rows} rows in {self.size_bytes} bytes", path=self.path)
        average = max(self.size_bytes // max(self.num_rows, 1), 1)
        at_once = min(max(_BYTES_AT_ONCE // average, 1), _BATCH_ROWS)
        start, reader = 0, self._open()
        for batch in reader.read(self._columns, 0, self.num_rows, batch_size=at_once):
            check_single_rows(reader, self._columns, start, batch, self.path)
            yield batch
            start += batch.num_rows

    def read_buffer(self, key: bytes) -> bytes | None:
        """Return the global buffer whose number the metadata has; None if it has none.

        Parameters
        ----------
        key : bytes
            Of the metadata.

        Raises
        ------
        CorruptFileError
            If there is no such buffer.
        """
        number = self.metadata.get(key)
        if number is None:
            return None
        if not number.isdigit() or len(number) > 18:
            raise CorruptFileError(f"{number[:40]!r} is no number of a global buffer", path=self.path)
        try:
            return self._open().read_global_buffer(int(number))
        except InvalidInputError as error:
            raise CorruptFileError(str(error), path=self.path) from error

    def take(self, rows: npt.NDArray[np.int64], name: str) -> pa.Array:
        """Return the values of a column in some rows, `int64[num_rows]`, ascending."""

        def take() -> pa.Array:
            return self._open().take(self._chosen([name]), rows).column(name)

        if rows.size > _KEPT_ROWS or not self._is_small(rows.size):
            return take()
        return self._kept((name, rows.tobytes()), take, pa.Array.get_total_buffer_size)

    def _chosen(self, names: Sequence[str]) -> list[ColumnProjection]:
        return [column for column in self._columns if not names or column.field.name in names]

    def _is_small(self, num_rows: int) -> bool:
        return num_rows * self.size_bytes <= _KEPT_BYTES * self.num_rows

    @property
    def _key(self) -> tuple[Hashable, ...]:
        return self._index.uuid, self._name

    def _kept(self, what: Hashable, read: Callable[[], _Kept], size_of: Callable[[_Kept], int]) -> _Kept:
        """Return a part of the file from the cache, or read it."""
        key = (*self._key, what)
        kept = self._table.cache.of_indices.get(key)
        if kept is not None:
            return cast("_Kept", kept)
        found = read()
        self._table.cache.of_indices.put(key, found, size_of(found))
        return found

    def _open(self) -> FileReader:
        if self._reader is None:
            with opening(self._table, self._index, self._name) as (source, verification):
                self._reader = FileReader(source, self._table.cache.of_indices, verification=verification)
                self.path, self.size_bytes = source.path, source.size_bytes
        return self._reader

    def _describe(self) -> _Description:
        reader = self._open()
        columns = _projections_of(reader.schema.fields, reader.version)
        metadata = dict(reader.schema.metadata)
        return _Description(self.path, self.size_bytes, reader.num_rows, metadata, columns)


def _size_of(batches: list[pa.RecordBatch]) -> int:
    return sum(batch.get_total_buffer_size() for batch in batches)
