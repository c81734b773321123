"""Reading a data file: rows of columns, from the bytes that they need."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.byte_io import RangeReader
from lance_format.datatypes import Field, Schema
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.expressions.nodes import FieldPath
from lance_format.expressions.zones import ZoneStatistics
from lance_format.extension_types import retype
from lance_format.file.blobs.payloads import BlobLocation, BlobReader, BlobSource
from lance_format.file.columns.dictionaries import concat, size_bytes
from lance_format.file.columns.nesting import Leaf, merge
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.column_metadata import ColumnMetadata, PageMetadata, parse_column
from lance_format.file.container.column_pages import ColumnPages
from lance_format.file.container.footer import MAX_TAIL_BYTES, FileMetadata, TailReader, read_metadata, read_version
from lance_format.file.container.legacy_metadata import LegacyMetadata, read_legacy_metadata
from lance_format.file.container.scheduler import locate, run_plans
from lance_format.file.container.search_cache import Key, SearchCache
from lance_format.file.reading.array_leaf import ArrayLeaf, list_fields
from lance_format.file.reading.column_reader import ColumnReader, Cursor, LeafPages, PageSizes, PlannedRows
from lance_format.file.reading.cpu_threads import cpu_threads
from lance_format.file.reading.read_ahead import ReadAhead, Window
from lance_format.file.reading.structural_leaf import StructuralLeaf
from lance_format.file.zones.collector import has_order
from lance_format.file.zones.legacy import LegacyZoneReader
from lance_format.file.zones.reading import ZoneReader, ZoneRequest
from lance_format.file.zones.seeds import Seed
from lance_format.version import FileVersion

_MAX_WINDOWS_AHEAD = 4
_MAX_PAGES_AT_ONCE = 32  # Of a column. Single rows need little of a page, but its dictionary may have some MiB.
_ROUND_BYTES = 64 * 1024 * 1024
_FIRST_TAKE_BYTES = 4 * 1024 * 1024
_TAKE_BYTES = 32 * 1024 * 1024
_COLUMNS_AT_FULL_SIZE = 2
"""How many columns may have whole answers at once; those of more are smaller, as memory is not to grow with them."""


@dataclass(frozen=True, slots=True)
class _End:
    """The last bytes of a file, parsed."""

    tail: bytes
    metadata: FileMetadata


class FileReader:
    """A data file of any format up to 2.2. Safe to use from several threads.

    Parameters
    ----------
    source : RangeReader
        The bytes; closed with the reader.
    cache : SearchCache, optional
        Shared with readers of other files of the same table; one of the default size to itself if not given.
    blobs : BlobSource, optional
        Where else than in the file payloads of blobs may be.
    tail_bytes : int
        How much of the end of the file to read at first. What is needed and lies before takes further requests.
    metadata : FileMetadata, optional
        What to read, if it is not what the end of the file says: the statistics of a file of format 0.1.

    Attributes
    ----------
    schema : Schema
        The schema that the file holds. A table's manifest may name its fields otherwise.
    version : FileVersion
    num_rows : int
    num_columns : int

    Raises
    ------
    CorruptFileError
        If this is no Lance file, or its end contradicts itself.
    NotSupportedError
        If its version cannot be read.
    """

    def __init__(
        self,
        source: RangeReader,
        cache: SearchCache | None = None,
        blobs: BlobSource | None = None,
        tail_bytes: int = MAX_TAIL_BYTES,
        metadata: FileMetadata | None = None,
    ) -> None:
        self._source = source
        self._blobs = BlobReader(source, blobs)
        self._cache = SearchCache() if cache is None else cache
        self._file: Key = (source.path, source.size_bytes)
        try:
            self.metadata = self._read_metadata(tail_bytes) if metadata is None else metadata
        except (CorruptFileError, NotSupportedError) as error:
            raise locate(error, source.path) from error
        self.schema: Schema = self.metadata.schema
        self.version: FileVersion = self.metadata.version
        self.num_rows: int = self.metadata.num_rows
        self.num_columns: int = self.metadata.num_columns
        self._zones = self._open_zones()

    @property
    def batch_rows(self) -> tuple[int, ...]:
        """The rows of each batch of a file of format 0.1; others have none."""
        return tuple(self.metadata.batch_rows.tolist()) if isinstance(self.metadata, LegacyMetadata) else ()

    def _open_zones(self) -> ZoneReader | LegacyZoneReader:
        if isinstance(self.metadata, LegacyMetadata):
            return LegacyZoneReader(self.metadata, lambda metadata: FileReader(self._source, metadata=metadata))
        return ZoneReader(self.metadata, self._tail, self._cache, self._file, FileReader, self._load_columns)

    def _read_metadata(self, tail_bytes: int) -> FileMetadata:
        known = self._cache.get((*self._file, "end"))
        if isinstance(known, _End):
            self._tail = TailReader(self._source, known.tail)
            return known.metadata
        self._tail = TailReader(self._source, None, tail_bytes)
        version = read_version(self._tail)
        read = read_legacy_metadata if version.has_page_table else read_metadata
        metadata = read(self._tail, version)
        size = len(self._tail.tail) + metadata.memory_bytes
        self._cache.put((*self._file, "end"), _End(self._tail.tail, metadata), size)
        return metadata

    def read(
        self, columns: Sequence[ColumnProjection], start: int, stop: int, *, batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of rows, batch by batch.

        Parameters
        ----------
        columns : sequence of ColumnProjection
        start, stop : int
            Rows `start <= row < stop`.
        batch_size : int
            Rows of every batch but the last; fewer only where a batch's strings would exceed 2 GiB, a dictionary would
            have more items than its keys can number, or the payloads of its blobs some tens of MiB.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        if not 0 <= start <= stop <= self.num_rows or batch_size < 1:
            raise InvalidInputError(
                f"rows {start} to {stop} in batches of {batch_size}: {self._source.path} has {self.num_rows} rows"
            )
        return self._read(columns, self._open(columns), start, stop, batch_size)

    def _read(
        self,
        columns: Sequence[ColumnProjection],
        leaves_of_columns: list[list[ColumnReader]],
        start: int,
        stop: int,
        batch_size: int,
    ) -> Iterator[pa.RecordBatch]:
        fields = [column.field for column in columns]
        stored = [column.stored for column in columns]
        schema = pa.schema([column.arrow_field for column in columns])
        cursors = [[Cursor(column, start) for column in leaves] for leaves in leaves_of_columns]
        flat = [cursor for leaves in cursors for cursor in leaves]
        row = start
        ahead = ReadAhead(self._source)
        while row < stop:
            wanted = min(batch_size, stop - row)
            self._fill(flat, wanted, stop, ahead)
            num_rows, arrays = self._pop(cursors, stored, wanted)
            row += num_rows
            for resolved in self._blobs.resolve(arrays, stored, fields):
                yield _batch(resolved, schema, len(resolved[0]) if resolved else num_rows)

    def _pop(
        self, cursors: Sequence[Sequence[Cursor]], stored: Sequence[Field], num_rows: int
    ) -> tuple[int, list[pa.Array]]:
        """Return the next rows of all columns, fewer where an array cannot hold so many, and how many they are."""
        num_rows = min((cursor.fits(num_rows) for leaves in cursors for cursor in leaves), default=num_rows)
        arrays = []
        for field, leaves in zip(stored, cursors, strict=True):
            with self._locating(field.name):
                arrays.append(merge(field, [cursor.pop(num_rows) for cursor in leaves]))
        return num_rows, arrays

    def _fill(self, cursors: Sequence[Cursor], num_rows: int, stop: int, ahead: ReadAhead) -> None:
        """Decode until every cursor has that many rows; pages of different columns are read together.

        What the rows after these lack is begun, if it is to be read ahead.
        """
        share = -(-len(cursors) // _COLUMNS_AT_FULL_SIZE)
        self._push(*ahead.finish())
        while lacking := [cursor for cursor in cursors if cursor.available < num_rows]:
            planned = self._plan_windows(lacking, stop, share)
            self._push(planned, run_plans(self._source, [window.plan for window in planned], cpu_threads))
        if ahead.is_wanted:
            next_rows = [cursor for cursor in cursors if cursor.available < 2 * num_rows and cursor.next_row < stop]
            ahead.start(self._plan_windows(next_rows, stop, share))

    def _plan_windows(self, cursors: Sequence[Cursor], stop: int, share: int) -> list[Window]:
        planned = []
        for cursor in cursors:
            row = cursor.next_row
            with self._locating(cursor.column.leaf.name):
                for window in itertools.count(1):
                    row, plan = cursor.column.plan_window(row, stop, share)
                    planned.append(Window(cursor, row, plan))
                    if row == stop or window == _windows_ahead(len(cursors)):
                        break
        return planned

    def _push(self, planned: Sequence[Window], results: Sequence[list[pa.Array]]) -> None:
        for window, arrays in zip(planned, results, strict=True):
            with self._locating(window.cursor.column.leaf.name):
                window.cursor.push(arrays, window.end)

    def take(self, columns: Sequence[ColumnProjection], rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """Read single rows.

        Parameters
        ----------
        columns : sequence of ColumnProjection
        rows : int64[…]
            Ascending; may repeat.

        Raises
        ------
        InvalidInputError
            If a row does not exist or they do not ascend.
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        rows = np.asarray(rows, np.int64)
        self._check_rows(rows)
        fields = [column.field for column in columns]
        stored = [column.stored for column in columns]
        if any(field is not wanted for field, wanted in zip(stored, fields, strict=True)) and not np.diff(rows).all():
            once, positions = np.unique(rows, return_inverse=True)  # No payload is read twice.
            return self.take(columns, once).take(pa.array(positions))
        schema = pa.schema([column.arrow_field for column in columns])
        if not rows.size:
            return _batch([pa.nulls(0, field.to_arrow_type()) for field in fields], schema, 0)
        gathered = iter(self._take([leaf for found in self._open(columns) for leaf in found], rows))
        arrays = []
        for column in columns:
            with self._locating(column.field.name):
                array = merge(column.stored, [concat(next(gathered)) for _ in column.leaves])
                arrays.append(self._blobs.load(array, column.stored, column.field))
        return _batch(arrays, schema, rows.size)

    def take_batches(
        self, columns: Sequence[ColumnProjection], rows: npt.NDArray[np.int64], *, batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read any number of rows, which may lie close together or not, within bounded memory.

        Parameters
        ----------
        columns : sequence of ColumnProjection
        rows : int64[num_rows]
            Ascending and distinct.
        batch_size : int
            No batch has more rows.

        Raises
        ------
        InvalidInputError
            If a row does not exist or they do not ascend.
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        self._check_rows(rows)
        fields = [column.field for column in columns]
        stored = [column.stored for column in columns]
        schema = pa.schema([column.arrow_field for column in columns])
        cursors = [[Cursor(column, 0) for column in leaves] for leaves in self._open(columns)]
        flat = [cursor for leaves in cursors for cursor in leaves]
        ends = _expected_bytes([cursor.column for cursor in flat], rows)
        first, budget = 0, _FIRST_TAKE_BYTES
        while first < rows.size:
            limit = (ends[first - 1] if first else 0) + budget
            last = max(first + 1, int(np.searchsorted(ends, limit, side="right")))
            taken = self._take([cursor.column for cursor in flat], rows[first:last])
            for cursor, arrays in zip(flat, taken, strict=True):
                cursor.push(arrays, last)
            # Large rows may be wanted alone: what rows are expected to take is an average.
            excess = sum(size_bytes(array) for arrays in taken for array in arrays) / budget
            budget = int(_TAKE_BYTES / max(excess, 1))
            while first < last:
                num_rows, popped = self._pop(cursors, stored, min(batch_size, last - first))
                first += num_rows
                for resolved in self._blobs.resolve(popped, stored, fields):
                    yield _batch(resolved, schema, len(resolved[0]) if resolved else num_rows)

    def _check_rows(self, rows: npt.NDArray[np.int64]) -> None:
        if rows.size and (rows[0] < 0 or rows[-1] >= self.num_rows or (np.diff(rows) < 0).any()):
            raise InvalidInputError(f"rows to take must ascend from 0 to {self.num_rows - 1} in {self._source.path}")

    def _take(self, leaves: Sequence[ColumnReader], rows: npt.NDArray[np.int64]) -> list[list[pa.Array]]:
        """Read rows of leaf columns; returns the pieces of each."""
        planned: list[list[PlannedRows]] = []
        for column in leaves:
            with self._locating(column.leaf.name):
                planned.append(list(column.plan_rows(rows)))
        pieces: list[list[pa.Array]] = [[] for _ in leaves]
        for round_ in _rounds(planned):
            results = run_plans(self._source, [part.plan for _, part in round_], cpu_threads)
            for (number, _), found in zip(round_, results, strict=True):
                pieces[number] += found
        return pieces

    def locate_blobs(self, column: ColumnProjection, rows: npt.NDArray[np.int64]) -> list[BlobLocation | None]:
        """Return the locations of the blobs of single rows, None for nulls.

        Parameters
        ----------
        column : ColumnProjection
        rows : int64[…]
            Ascending; may repeat.

        Raises
        ------
        InvalidInputError
            If a row does not exist or they do not ascend.
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        described = ColumnProjection(column.stored, column.column_indices)
        descriptions = self.take([described], rows).column(0)
        with self._locating(column.field.name):
            return self._blobs.locate(descriptions)

    def zone_statistics(self, columns: Sequence[ColumnProjection]) -> dict[FieldPath, ZoneStatistics]:
        """Return the zone statistics of the file, with which a filter skips rows that cannot match.

        Parameters
        ----------
        columns : sequence of ColumnProjection
            The columns to read the statistics of all their leaves.

        Returns
        -------
        dict of Path to ZoneStatistics
            Statistics by the names of the projections, without leaves that have none.

        Raises
        ------
        CorruptFileError
            If the statistics are malformed, or contradict themselves or the file.
        """
        requests = [request for projection in columns for request in self._zone_requests(projection)]
        try:
            return self._zones.read(requests)
        except (CorruptFileError, NotSupportedError) as error:
            raise locate(error, self._source.path) from error

    def seed(self, column: ColumnProjection, rows_per_zone: int) -> Seed | None:
        """Return the seed of a column for zone map indices, None if the file has none with these zones.

        Parameters
        ----------
        column : ColumnProjection
        rows_per_zone : int
            Number of rows per zone of the index.

        Raises
        ------
        CorruptFileError
            If it is malformed, or contradicts itself or the file.
        """
        try:
            found = [self._zones.read_seed(request, rows_per_zone) for request in self._zone_requests(column)]
        except (CorruptFileError, NotSupportedError) as error:
            raise locate(error, self._source.path) from error
        return found[0] if len(found) == 1 else None

    def _zone_requests(self, column: ColumnProjection) -> list[ZoneRequest]:
        """Return which leaves of a column may have zones."""
        requests = []
        with self._locating(column.field.name):
            for leaf, column_index in column.leaves:
                if not has_order(leaf):
                    continue
                number = self._columns_of(leaf, column_index, column)[-1]
                if 0 <= number < self.num_columns:
                    path = tuple(part.name for part in leaf.path)
                    requests.append(ZoneRequest(path, number, leaf.arrow_type))
        return requests

    def read_global_buffer(self, index: int) -> bytes:
        """Return a global buffer; 0 is the file descriptor.

        Raises
        ------
        InvalidInputError
            If there is no such buffer.
        """
        if not 0 <= index < len(self.metadata.global_buffers):
            raise InvalidInputError(f"{self._source.path} has no global buffer {index}")
        return self._source.read_ranges([self.metadata.global_buffers[index]])[0]

    def pages(self, column: int) -> list[PageMetadata]:
        """Return the pages of a column, by its number in the file."""
        return self.column(column).pages

    def column(self, number: int) -> ColumnMetadata:
        """Return a column, by its number in the file."""
        return self._load_columns({number: f"number {number}"})[number].column

    def page_sizes(self, columns: Sequence[ColumnProjection]) -> list[PageSizes]:
        """Return the sizes of the pages of some columns per leaf, without payloads of blobs.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        return [leaf.page_sizes for leaves in self._open(columns) for leaf in leaves]

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def _open(self, projections: Sequence[ColumnProjection]) -> list[list[ColumnReader]]:
        """Return the leaf columns of each field."""
        names: dict[int, str] = {}
        for projection in projections:
            with self._locating(projection.field.name):
                for leaf, number in projection.leaves:
                    for column in self._columns_of(leaf, number, projection):
                        if not 0 <= column < self.num_columns:
                            raise CorruptFileError(f"there is no column {column}; the file has {self.num_columns}")
                        names[column] = leaf.name
        pages = self._load_columns(names)
        return [
            [
                self._column(leaf, [pages[column] for column in self._columns_of(leaf, number, projection)])
                for leaf, number in projection.leaves
            ]
            for projection in projections
        ]

    def _columns_of(self, leaf: Leaf, number: int, projection: ColumnProjection) -> list[int]:
        """Return the columns that are needed to read a leaf; in 2.0 those of the lists around it come first."""
        if isinstance(self.metadata, LegacyMetadata):
            return [self.metadata.column_of(field.id) for field in (*list_fields(leaf), leaf.field)]
        if not self.version.has_array_encodings:
            return [number]
        return [*(projection.column_indices.get(field.id, -1) for field in list_fields(leaf)), number]

    def _load_columns(self, names: Mapping[int, str]) -> dict[int, ColumnPages]:
        """Return the pages of columns, given by number and name; metadata that is not at hand is read together."""
        loaded: dict[int, ColumnPages] = {}
        lacking = []
        for number in names:
            found = self._cache.get((*self._file, number))
            if isinstance(found, ColumnPages):
                loaded[number] = found
            else:
                lacking.append(number)
        for number, (column, num_bytes) in zip(lacking, self._read_columns(lacking, names), strict=True):
            key = (*self._file, number)
            pages = loaded[number] = ColumnPages(column, self._cache, key)
            self._cache.put(key, pages, pages.memory_bytes(num_bytes))
        return loaded

    def _read_columns(self, numbers: Sequence[int], names: Mapping[int, str]) -> Iterator[tuple[ColumnMetadata, int]]:
        """Yield the metadata of columns, and the bytes that the file has for it."""
        if isinstance(self.metadata, LegacyMetadata):
            for number in numbers:
                with self._locating(names[number]):
                    yield self.metadata.column(number), 0
            return
        messages = self._tail.read([self.metadata.columns[number] for number in numbers])
        for number, message in zip(numbers, messages, strict=True):
            with self._locating(names[number]):
                yield parse_column(message, self._source.size_bytes, self.version), len(message)

    def _column(self, leaf: Leaf, columns: Sequence[ColumnPages]) -> ColumnReader:
        with self._locating(leaf.name):
            column = ColumnReader(self._leaf_pages(leaf, columns))
            if column.first_rows[-1] != self.num_rows:
                raise CorruptFileError(f"the pages hold {column.first_rows[-1]} rows, the file {self.num_rows}")
        return column

    def _leaf_pages(self, leaf: Leaf, columns: Sequence[ColumnPages]) -> LeafPages:
        *lists, values = columns
        if self.version.has_array_encodings:
            return ArrayLeaf(leaf, lists, values, self.metadata.global_buffers)
        return StructuralLeaf(leaf, values, self.version)

    def _locating(self, column: str) -> _Locating:
        """Add the file and the column to errors that do not name them."""
        return _Locating(self._source.path, column)


class _Locating:
    """A context manager; as a generator it would cost more than decoding a small page."""

    __slots__ = ("_column", "_path")

    def __init__(self, path: str, column: str) -> None:
        self._path = path
        self._column = column

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, CorruptFileError | NotSupportedError):
            raise locate(error, self._path, self._column) from error


def _rounds(planned: Sequence[Sequence[PlannedRows]]) -> Iterator[list[tuple[int, PlannedRows]]]:
    """Yield plans, with the numbers of their columns, that are run together: those of the same pages of all columns."""
    most = _MAX_PAGES_AT_ONCE * len(planned)
    found: list[tuple[int, PlannedRows]] = []
    size = 0
    for parts in itertools.zip_longest(*planned):
        for number, part in enumerate(parts):
            if part is None:
                continue
            if found and (len(found) == most or size + part.size_bytes > _ROUND_BYTES):
                yield found
                found, size = [], 0
            found.append((number, part))
            size += part.size_bytes
    if found:
        yield found


def _expected_bytes(columns: Sequence[ColumnReader], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return what some rows take up to and with each of them, about, `float64[num_rows]`; it ascends."""
    sizes = np.ones(rows.size)
    for column in columns:
        sizes += np.repeat(column.row_bytes, np.diff(np.searchsorted(rows, column.first_rows)))
    ends: npt.NDArray[np.float64] = np.cumsum(sizes)
    return ends


def _windows_ahead(num_columns: int) -> int:
    """Return how many pages of each column to decode at once, so that all threads have something to do."""
    return min(-(-cpu_threads() // num_columns), _MAX_WINDOWS_AHEAD)


def _batch(arrays: list[pa.Array], schema: pa.Schema, num_rows: int) -> pa.RecordBatch:
    if not arrays:
        return pa.record_batch([pa.nulls(num_rows)], names=["_"]).select([])
    columns = [retype(array, field.type) for array, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
