"""Indices that name rows: what the kinds have in common.

An index names the rows of the fragments in its bitmap by their ids. Ids of rows that were deleted since stay in it. It
answers a predicate over its column, perhaps with further rows, or not at all: where the answer would be many rows,
scanning is faster.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyroaring

from lance_format.data_block import Counts
from lance_format.datatypes import Field, Schema
from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.expressions import BoundExpression, FieldPath, filter_mask
from lance_format.file import ColumnProjection, FileReader, column_indices
from lance_format.lazy_dataclasses import dataclass
from lance_format.structural.row_index import expand_ranges
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.opening import opening
from lance_format.table.indices.single_rows import check_single_rows
from lance_format.table.versions.table_version import TableVersion
from lance_format.version import FileVersion

RowIds = npt.NDArray[np.uint64]

_BATCH_ROWS = 4096


_BYTES_AT_ONCE = 1 << 20
"""Of rows of average size; one alone may have more."""

_MOST_ROWS_PER_BYTE = 4096
"""A small damaged file may seem to hold any number of rows."""


@dataclass(frozen=True, slots=True)
class KnownForm:
    """The versions of the form of a kind that are known here.

    Parameters
    ----------
    newest : int
        The latest.
    addresses : int
        The version from which on indices name addresses also in tables with stable row ids.
    """

    newest: int = 0
    addresses: int = 1

    def names_ids(self, table: TableVersion, index: IndexMetadata) -> bool:
        """Return whether an index names rows by their stable ids rather than addresses."""
        return table.manifest.stable_row_ids and index.message.index_version < self.addresses

    def check(self, index: IndexMetadata) -> None:
        """Check that an index is of a known form.

        Raises
        ------
        UnusableError
            If it is not; see `is_plain`.
        """
        if not is_plain(index, self.newest):
            raise UnusableError(f"it is of version {index.message.index_version}, or has unknown parameters")


@dataclass(frozen=True, slots=True)
class Question:
    """A predicate over the column of an index.

    Parameters
    ----------
    predicate : BoundExpression
        Reads this column only.
    value_type : pa.DataType
    most_rows : int
        Number of rows from which on there is no answer.
    """

    predicate: BoundExpression
    value_type: pa.DataType
    most_rows: int

    @property
    def path(self) -> FieldPath:
        """The column."""
        return self.predicate.columns[0]

    def holds_for(self, values: pa.Array) -> npt.NDArray[np.bool_]:
        """Return for each value whether the predicate is true."""
        column = values
        for name in reversed(self.path[1:]):
            column = pa.StructArray.from_arrays([column], [name])
        mask = filter_mask(self.predicate, pa.record_batch([column], names=[self.path[0]]))
        return np.asarray(mask.to_numpy(zero_copy_only=False))


def is_plain(index: IndexMetadata, newest: int = 0) -> bool:
    """Return whether an index that names rows is of the form that is known here.

    Parameters
    ----------
    index : IndexMetadata
    newest : int
        The latest version of the form that the caller knows; this library makes version 0.
    """
    return not index.message.index_details.value and is_of_version(index, newest)


def is_of_version(index: IndexMetadata, newest: int) -> bool:
    """Return whether an index is of one column, tells its fragments, and is of a known version of the form of its kind.

    Parameters
    ----------
    index : IndexMetadata
    newest : int
        The latest version that the caller knows.
    """
    is_known = index.message.index_version <= newest
    return is_known and index.fragment_ids is not None and len(index.fields) == 1


def unsigned(column: pa.Array, path: str) -> RowIds:
    """Return the ids in a column of a file, `uint64[num_rows]`.

    Raises
    ------
    CorruptFileError
        If one is null.
    """
    if column.null_count:
        raise CorruptFileError("the id of a row is null", path=path)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def ids_of(rows: pyroaring.BitMap64 | None, most: int) -> RowIds | None:
    """Return the ids of a bitmap, `uint64[num_ids]`; None if there is none, or it has more than `most`."""
    if rows is None or len(rows) > most:
        return None
    return np.frombuffer(rows.to_array(), np.uint64)


class UnusableError(Exception):
    """The index is of a form that is not known here."""


class Finder(Protocol):
    """Finds rows by an index of one kind."""

    def __call__(self, table: TableVersion, index: IndexMetadata, question: Question) -> RowIds | None:
        """Return the ids of rows outside of which a predicate does not hold; None if they may be too many.

        They are in any order.

        Parameters
        ----------
        table : TableVersion
        index : IndexMetadata
        question : Question

        Raises
        ------
        UnusableError
            If the index is of an unknown form.
        CorruptFileError
            If a file is malformed, or contradicts another one.
        DatasetNotFoundError
            If a file is missing.
        """


@functools.lru_cache(maxsize=64)
def _projections_of(fields: tuple[Field, ...], version: FileVersion) -> Sequence[ColumnProjection]:
    """Return the columns of a file; files of a kind have the same."""
    indices = column_indices(Schema(fields), version)
    return tuple(ColumnProjection(field, indices) for field in fields)


class IndexFile:
    """A file of an index that is read in parts; a context manager.

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
    size_bytes : int

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
        with opening(table, index, name) as (source, verification):
            self.path, self.size_bytes = source.path, source.size_bytes
            self._reader = FileReader(source, table.cache, verification=verification)
            schema = self._reader.schema
            found = [(field.name, field.to_arrow_type()) for field in schema.fields]
            wanted = [(field.name, field.type) for field in expected]
            if found != wanted:
                raise UnusableError(f"{name} has the columns {found} instead of {wanted}")
            self._columns = _projections_of(schema.fields, self._reader.version)

    def __enter__(self) -> IndexFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._reader.num_rows

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of the schema."""
        return dict(self._reader.schema.metadata)

    def read(self, start: int, stop: int, names: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield a range of rows, some thousands at a time.

        Parameters
        ----------
        start, stop : int
        names : sequence of str
            The columns; by default all.
        """
        return self._reader.read(self._chosen(names), start, stop, batch_size=_BATCH_ROWS)

    def read_ranges(self, starts: Counts, stops: Counts) -> Iterator[pa.RecordBatch]:
        """Yield the rows of ranges, which ascend and are disjoint, some thousands at a time.

        Parameters
        ----------
        starts, stops : int64[num_ranges]
        """
        if starts.size == 1:
            return self.read(int(starts[0]), int(stops[0]))
        return self._reader.take_batches(self._columns, expand_ranges(starts, stops), batch_size=16 * _BATCH_ROWS)

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
        start = 0
        for batch in self._reader.read(self._columns, 0, self.num_rows, batch_size=at_once):
            check_single_rows(self._reader, self._columns, start, batch, self.path)
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
            return self._reader.read_global_buffer(int(number))
        except InvalidInputError as error:
            raise CorruptFileError(str(error), path=self.path) from error

    def take(self, rows: npt.NDArray[np.int64], name: str) -> pa.Array:
        """Return the values of a column in some rows, `int64[num_rows]`, ascending."""
        return self._reader.take(self._chosen([name]), rows).column(name)

    def _chosen(self, names: Sequence[str]) -> list[ColumnProjection]:
        return [column for column in self._columns if not names or column.field.name in names]
