"""Reading the zones of some columns of a file, from the most precise form.

A seed is exact and counts NaN (`seeds.py`). The embedded file has the columns without one, and in older files all, with
bounds that need not occur (`statistics_file.py`); only the needed ones are read. Columns without both may have a zone
index in their encoding (`index.py`). The results are validated and cached.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.byte_io import ByteRange, RangeReader
from lance_format.data_block import Counts
from lance_format.datatypes import Field, Schema
from lance_format.errors import ChecksumError, CorruptFileError, NotSupportedError
from lance_format.expressions.nodes import FieldPath
from lance_format.expressions.values.order import compare
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file.columns.indices import column_indices, stored_fields
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.column_metadata import ColumnMetadata, ZoneIndexEntry
from lance_format.file.container.column_pages import ColumnPages
from lance_format.file.container.footer import FileMetadata, TailReader
from lance_format.file.container.search_cache import Key, SearchCache
from lance_format.file.container.zone_entries import SEED_PREFIX, STATISTICS_KEY, ZonesEntry
from lance_format.file.zones.index import to_statistics, with_descriptor, zone_index_schema
from lance_format.file.zones.seeds import Seed, parse_seed
from lance_format.file.zones.statistics_file import MAX_VALUE, MIN_VALUE, NULL_COUNT
from lance_format.half_floats import if_else, nan_of, widened
from lance_format.lazy_dataclasses import dataclass
from lance_format.version import FileVersion

_MOST_ZONES = 2**24


class EmbeddedFile(Protocol):
    """The part of `lance_format.file.reading.reader.FileReader` that reads an embedded file of statistics."""

    @property
    def num_rows(self) -> int:
        """Number of rows of the file: one per zone."""

    @property
    def schema(self) -> Schema:
        """Columns of the file."""

    @property
    def version(self) -> FileVersion:
        """Version of the file."""

    def read(
        self, columns: Sequence[ColumnProjection], start: int, stop: int, *, batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows `start <= row < stop`; see `FileReader.read`."""


@dataclass(frozen=True, slots=True)
class ZoneRequest:
    """A column whose zones are requested.

    Parameters
    ----------
    path : Path
        The caller's name of the column.
    column : int
        The column of the file.
    arrow_type : pa.DataType
    """

    path: FieldPath
    column: int
    arrow_type: pa.DataType


class ZoneReader:
    """Reads the zones of a file.

    Parameters
    ----------
    metadata : FileMetadata
    tail : TailReader
    cache : SearchCache
    key : tuple
        Of the file in the cache.
    open_file : callable
        Opens the embedded file.
    load_columns : callable
        Returns the metadata of columns, given by number and name.
    """

    def __init__(
        self,
        metadata: FileMetadata,
        tail: TailReader,
        cache: SearchCache,
        key: Key,
        open_file: Callable[[RangeReader, SearchCache], EmbeddedFile],
        load_columns: Callable[[Mapping[int, str]], Mapping[int, ColumnPages]],
    ) -> None:
        self._metadata = metadata
        self._tail = tail
        self._cache = cache
        self._key = key
        self._open_file = open_file
        self._load_columns = load_columns

    def read(self, requests: Sequence[ZoneRequest]) -> dict[FieldPath, ZoneStatistics]:
        """Return the zones of the columns that have them.

        Raises
        ------
        CorruptFileError
            If the statistics are malformed, or contradict themselves or the file.
        """
        keys = {request: (*self._key, "zones", request.column, str(request.arrow_type)) for request in requests}
        known = {request: self._cache.get(key) for request, key in keys.items()}
        lacking = [request for request, found in known.items() if found is None]
        read = self._read(lacking) if lacking else {}
        for request in lacking:
            found = known[request] = read.get(request, False)
            self._cache.put(keys[request], found, _memory_bytes(found))
        return {request.path: found for request, found in known.items() if isinstance(found, ZoneStatistics)}

    def read_seed(self, request: ZoneRequest, rows_per_zone: int) -> Seed | None:
        """Return the seed of a column for zones of a number of rows, if it has one.

        Raises
        ------
        CorruptFileError
            If it is malformed, or contradicts itself or the file.
        """
        field = stored_fields(self._metadata.schema, self._metadata.version).get(request.column)
        found = None if field is None else self._find_seed(field)
        if found is None or found[0].rows_per_zone != rows_per_zone:
            return None
        return self._parse_seed(self._tail.read([found[1]])[0], request, found[0])

    def _read(self, requests: Sequence[ZoneRequest]) -> dict[ZoneRequest, ZoneStatistics]:
        fields = stored_fields(self._metadata.schema, self._metadata.version)
        requests = [request for request in requests if request.column in fields]
        found = self._read_seeds(requests, fields)
        others = {request: fields[request.column][-1] for request in requests if request not in found}
        with contextlib.suppress(NotSupportedError):  # of another writer; what cannot be read says nothing
            found |= self._read_embedded(others)
        return found | self._read_zone_indices([request for request in requests if request not in found], fields)

    def _read_seeds(
        self, requests: Sequence[ZoneRequest], fields: Mapping[int, tuple[Field, ...]]
    ) -> dict[ZoneRequest, ZoneStatistics]:
        entries: dict[ZoneRequest, tuple[ZonesEntry, ByteRange]] = {}
        for request in requests:
            place = self._find_seed(fields[request.column])
            if place is not None:
                entries[request] = place
        found: dict[ZoneRequest, ZoneStatistics] = {}
        parts = self._tail.read([part for _, part in entries.values()])
        for (request, (entry, _)), data in zip(entries.items(), parts, strict=True):
            seed = self._parse_seed(data, request, entry)
            if seed is not None:
                found[request] = seed.statistics
        return found

    def _find_seed(self, path: tuple[Field, ...]) -> tuple[ZonesEntry, ByteRange] | None:
        value = self._metadata.zones.get(SEED_PREFIX + path[0].name.encode())
        return None if value is None or len(path) > 1 else self._locate(value)

    def _parse_seed(self, data: bytes, request: ZoneRequest, entry: ZonesEntry) -> Seed | None:
        name = ".".join(request.path)
        with _naming(f"the seed of column {name!r}"):
            seed = parse_seed(data, request.arrow_type, -(-self._metadata.num_rows // entry.rows_per_zone))
            if seed is not None:
                check_statistics(seed.statistics, self._metadata.num_rows)
            return seed

    def _read_zone_indices(
        self, requests: Sequence[ZoneRequest], fields: Mapping[int, tuple[Field, ...]]
    ) -> dict[ZoneRequest, ZoneStatistics]:
        names = {request.column: ".".join(request.path) for request in requests}
        found: dict[ZoneRequest, ZoneStatistics] = {}
        if not names or not self._metadata.num_rows:
            return found
        columns = self._load_columns(names)
        for request in requests:
            column = columns[request.column].column
            stored_type = fields[request.column][-1].to_arrow_type()
            if column.zone_index is None or stored_type != request.arrow_type:
                continue
            name = names[request.column]
            with _naming(f"the zone index of column {name!r}"), contextlib.suppress(NotSupportedError):
                found[request] = self._read_zone_index(column, column.zone_index, request.arrow_type)
        return found

    def _read_zone_index(
        self, column: ColumnMetadata, entry: ZoneIndexEntry, arrow_type: pa.DataType
    ) -> ZoneStatistics:
        buffers = self._metadata.global_buffers if entry.is_in_file else column.buffers
        if entry.rows_per_zone == 0 or entry.buffer >= len(buffers):
            raise CorruptFileError(
                f"it is in buffer {entry.buffer} of {len(buffers)}, with {entry.rows_per_zone} rows per zone"
            )
        num_rows = self._rows_of_zones(entry.rows_per_zone)
        part = with_descriptor(_Part(self._tail, buffers[entry.buffer]), arrow_type, len(num_rows))
        columns = _columns_of(self._open_zones(part, len(num_rows)), zone_index_schema(arrow_type).names)
        return check_statistics(to_statistics(columns, arrow_type, num_rows), self._metadata.num_rows)

    def _rows_of_zones(self, rows_per_zone: int) -> Counts:
        """Return the number of rows of each zone, given that of all zones except the last."""
        total = self._metadata.num_rows
        num_zones = -(-total // rows_per_zone)
        if num_zones > _MOST_ZONES:
            raise CorruptFileError(f"{total} rows are said to be {num_zones} zones")
        num_rows = np.full(num_zones, rows_per_zone, np.int64)
        num_rows[-1:] = total - rows_per_zone * (num_zones - 1)
        return num_rows

    def _open_zones(self, source: RangeReader, num_zones: int) -> EmbeddedFile:
        file = self._open_file(source, self._cache)
        if file.num_rows != num_zones:
            raise CorruptFileError(f"there are {file.num_rows} zones of {num_zones}")
        return file

    def _locate(self, value: bytes) -> tuple[ZonesEntry, ByteRange]:
        entry = ZonesEntry.parse(value)
        buffers = self._metadata.global_buffers
        if not 0 < entry.buffer < len(buffers):
            raise CorruptFileError(f"statistics are in global buffer {entry.buffer}; the file has {len(buffers)}")
        return entry, buffers[entry.buffer]

    def _read_embedded(self, fields: Mapping[ZoneRequest, Field]) -> dict[ZoneRequest, ZoneStatistics]:
        value = self._metadata.zones.get(STATISTICS_KEY)
        if value is None or not fields:
            return {}
        entry, part = self._locate(value)
        with _naming("the statistics"):
            num_rows = self._rows_of_zones(entry.rows_per_zone)
            file = self._open_zones(_Part(self._tail, part), len(num_rows))
            columns = structs_of(file, {str(field.id) for field in fields.values()})
            found: dict[ZoneRequest, ZoneStatistics] = {}
            for request, field in fields.items():
                struct = columns.get(str(field.id))
                if struct is not None:
                    found[request] = check_statistics(
                        statistics_of(struct, request.arrow_type, num_rows), self._metadata.num_rows
                    )
            return found


class _Part:
    """A part of a file, as a file; a `RangeReader`."""

    def __init__(self, tail: TailReader, part: ByteRange) -> None:
        self.path = f"{tail.source.path}, buffer at {part.offset}"
        self.size_bytes = part.size
        self.request_shape = tail.source.request_shape
        self._tail = tail
        self._offset = part.offset

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        for wanted in ranges:
            if wanted.end > self.size_bytes:
                raise CorruptFileError(f"{wanted.size} bytes at {wanted.offset} are after the end", path=self.path)
        return self._tail.read([ByteRange(self._offset + wanted.offset, wanted.size) for wanted in ranges])

    def close(self) -> None:
        """The file around it stays open."""


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Add the name of the statistics to errors."""
    try:
        yield
    except ChecksumError:
        raise
    except CorruptFileError as error:
        raise CorruptFileError(f"{what} cannot be read: {error}") from error


def check_statistics(found: ZoneStatistics, num_rows: int) -> ZoneStatistics:
    """Refuse impossible statistics: zones of other rows, more nulls than rows, invalid bounds.

    Raises
    ------
    CorruptFileError
    """
    if found.num_rows.sum() != num_rows or (found.num_rows < 0).any():
        raise CorruptFileError(f"zones have {found.num_rows.sum()} rows; the file has {num_rows}")
    if (found.num_nulls > found.num_rows).any() or (found.num_nulls < -1).any():
        raise CorruptFileError("a zone has more nulls than rows, or fewer than none")
    has_values = pa.array(found.num_nulls < found.num_rows)
    lower, upper = (widened(bound) for bound in (found.lower, found.upper))
    try:
        exceeds = compare(">", lower, upper)
    except pa.ArrowNotImplementedError as error:
        raise CorruptFileError(f"a column has statistics, whose values have no order: {error}") from error
    if pc.any(pc.and_kleene(exceeds, has_values)).as_py():
        raise CorruptFileError("the lower bound of a zone exceeds the upper one")
    return found


def structs_of(file: EmbeddedFile, names: Container[str]) -> dict[str, pa.StructArray]:
    """Read some columns of the embedded file by name, with only their known fields."""
    indices = column_indices(file.schema, file.version)
    projections = []
    for field in file.schema.fields:
        known = tuple(child for child in field.children if child.name in (NULL_COUNT, MIN_VALUE, MAX_VALUE))
        if field.name in names and field.logical_type == "struct" and known:
            projections.append(ColumnProjection(dataclasses.replace(field, children=known), indices))
    if not projections:
        return {}
    batches = list(file.read(projections, 0, file.num_rows, batch_size=file.num_rows))
    return {
        projection.field.name: pa.concat_arrays([batch.column(index) for batch in batches])
        for index, projection in enumerate(projections)
    }


def _columns_of(file: EmbeddedFile, names: Container[str]) -> dict[str, pa.Array]:
    """Read those columns of an embedded file, which has a row at least, that are called so."""
    indices = column_indices(file.schema, file.version)
    wanted = [ColumnProjection(field, indices) for field in file.schema.fields if field.name in names]
    batches = list(file.read(wanted, 0, file.num_rows, batch_size=file.num_rows)) if wanted else []
    return {
        projection.field.name: pa.concat_arrays([batch.column(index) for batch in batches])
        for index, projection in enumerate(wanted)
    }


def statistics_of(struct: pa.StructArray, arrow_type: pa.DataType, num_rows: npt.NDArray[np.int64]) -> ZoneStatistics:
    """Return the embedded file's statistics of a column; missing fields, and those of another type, are unknown.

    Parameters
    ----------
    struct : pa.StructArray
    arrow_type : pa.DataType
        The type of the column.
    num_rows : int64[num_zones]
    """
    fields = dict(zip((field.name for field in struct.type), struct.flatten(), strict=True))
    nulls = fields.get(NULL_COUNT)
    if nulls is None or nulls.type != pa.int64():
        nulls = pa.nulls(len(struct), pa.int64())
    num_nulls = pc.fill_null(nulls, -1).to_numpy()
    lower, upper = (fields.get(name, pa.nulls(len(struct))) for name in (MIN_VALUE, MAX_VALUE))
    lower, upper = (pa.nulls(len(struct), arrow_type) if x.type != arrow_type else x for x in (lower, upper))
    if pa.types.is_floating(arrow_type):
        # NaN, which exceeds all other values, was not counted
        upper = if_else(pa.array(num_nulls < num_rows), nan_of(arrow_type), upper)
    return ZoneStatistics(num_rows, num_nulls, lower, upper, exact=False)


def _memory_bytes(found: object) -> int:
    if not isinstance(found, ZoneStatistics):
        return 0
    return int(found.lower.nbytes + found.upper.nbytes + found.num_rows.nbytes + found.num_nulls.nbytes)
