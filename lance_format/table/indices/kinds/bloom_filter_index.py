"""BLOOMFILTER indices: a Bloom filter of the values of each zone of consecutive rows.

The only file, `bloomfilter.lance`, has a row per zone.

| column | |
|---|---|
| `fragment_id`, `zone_start`, `zone_length` | uint64: physical rows of a fragment |
| `has_null` | bool |
| `bloom_filter_data` | a split block Bloom filter: blocks of eight little-endian 32-bit words |

The metadata of its schema holds the number of live rows per zone (`bloomfilter_item`), the probability that a filter of
as many distinct values wrongly claims another (`bloomfilter_probability`), and, unless an early release wrote the file,
the number of the global buffer of the null rows (`null_bitmap`), which is as in a ZONEMAP. Numbers are hashed as their
little-endian bytes: a filter tells 0.0 from -0.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import CorruptFileError
from lance_format.expressions import nodes
from lance_format.expressions.nodes import Expression, Literal, walk
from lance_format.half_floats import is_nan
from lance_format.kernels.columns.bloom_filter import find_hashes, hash_values
from lance_format.lazy_dataclasses import dataclass
from lance_format.list_items import offsets_of
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.index_file import IndexFile
from lance_format.table.indices.named_rows import NamedRows
from lance_format.table.indices.row_finder import KnownForm, Question, UnusableError
from lance_format.table.indices.supersets import can_bound, superset
from lance_format.table.indices.zones.zone_map import ZoneNumbers
from lance_format.table.indices.zones.zone_map_file import parse_null_rows
from lance_format.table.indices.zones.zone_map_index import located_fragments
from lance_format.table.versions.table_version import TableVersion

BLOOM_FILE = "bloomfilter.lance"
BLOOM_COLUMNS = [
    *(pa.field(name, pa.uint64(), nullable=False) for name in ("fragment_id", "zone_start", "zone_length")),
    pa.field("has_null", pa.bool_(), nullable=False),
    pa.field("bloom_filter_data", pa.binary(), nullable=False),
]
NUM_ITEMS, PROBABILITY, NULL_BITMAP = b"bloomfilter_item", b"bloomfilter_probability", b"null_bitmap"
"""Keys of the metadata of its schema."""

BLOCK_BYTES = 32
FORM = KnownForm()

_FILTERS = "bloom_filter_data"
_NUMBERS = ("fragment_id", "zone_start", "zone_length", "has_null")
_MOST_ZONES = 1 << 22
_MOST_VALUES = 1024
"""Of more values, each filter wrongly claims one soon, and looking at them takes long."""
_CACHED_BYTES = 32 << 20
_BYTES_AT_ONCE = 8 << 20
_MAX_ROWS = 2**32

Hashes = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Filters = tuple[ZoneNumbers, npt.NDArray[np.uint32], ZoneNumbers]


@dataclass(frozen=True, slots=True, eq=False)
class FilteredZones:
    """Zones of rows of fragments, by fragment and first row.

    Parameters
    ----------
    positions : int64[num_zones]
        The rows of the file.
    fragment_ids, starts, lengths : int64[num_zones]
    has_null : bool[num_zones]
    """

    positions: ZoneNumbers
    fragment_ids: ZoneNumbers
    starts: ZoneNumbers
    lengths: ZoneNumbers
    has_null: Flags

    def __len__(self) -> int:
        return len(self.positions)

    def take(self, chosen: npt.NDArray[np.int64] | Flags) -> FilteredZones:
        """Return some zones, by index or by mask."""
        values = (getattr(self, item.name)[chosen] for item in dataclasses.fields(self))
        return FilteredZones(*values)


@dataclass(frozen=True, slots=True, eq=False)
class ZonesFound:
    """The answer of an index about a filter.

    Parameters
    ----------
    fragment_ids, starts : int64[num_zones]
        All zones of the fragments whose zones are known, by fragment and first row.
    may_match : bool[num_zones]
        Whether a row from the first of the zone to that of the next may match.
    """

    fragment_ids: ZoneNumbers
    starts: ZoneNumbers
    may_match: Flags


def can_hash(value_type: pa.DataType) -> bool:
    """Return whether values of a type are hashed by such an index."""
    return any(
        is_such(value_type)
        for is_such in (
            pa.types.is_integer,
            pa.types.is_float32,
            pa.types.is_float64,
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_date,
            pa.types.is_time,
            pa.types.is_timestamp,
        )
    )


def hash_array(values: pa.Array) -> Hashes:
    """Hash values of a type that can be hashed.

    Parameters
    ----------
    values : pa.Array
        Without nulls.

    Returns
    -------
    uint64[num_values]
    """
    count, buffers = len(values), values.buffers()
    content = np.frombuffer(buffers[-1] or b"", np.uint8)
    if len(buffers) == 3:
        ends = offsets_of(values).astype(np.int64)
    else:
        size = values.type.bit_width // 8
        ends = (np.arange(count + 1) + values.offset) * size
    content.flags.writeable = False  # The kernel is compiled for one kind of arrays.
    hashes = np.empty(count, np.uint64)
    hash_values(content, ends, hashes)
    return hashes


def can_answer(question: Question) -> bool:
    """Return whether filters bound the zones where a predicate holds."""
    return can_bound(
        question.predicate.expression,
        lambda node: _is_null_test(node) or _values_of(node, question.value_type) is not None,
    )


def find_zones(table: TableVersion, index: IndexMetadata, question: Question, fragment_ids: ZoneNumbers) -> ZonesFound:
    """Find the zones of fragments where a predicate may hold; see `can_answer`.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata
    question : Question
    fragment_ids : int64[num_fragments]
        The fragments of interest, which the index covers.

    Raises
    ------
    UnusableError
        If the index is of an unknown form.
    CorruptFileError
        If its file is malformed.
    DatasetNotFoundError
        If it is missing.
    """
    with IndexFile(table, index, BLOOM_FILE, BLOOM_COLUMNS) as file:
        zones = _load_zones(table, index, file)
        zones = zones.take(np.isin(zones.fragment_ids, fragment_ids))
        zones = zones.take(
            np.isin(zones.fragment_ids, located_fragments(table, index, zones, placed=NULL_BITMAP in file.metadata))
        )
        may_match = _answer(question, zones, _filters(table, index, file, zones.positions))
    return ZonesFound(zones.fragment_ids, zones.starts, may_match)


def check_part(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> None:  # noqa: ARG001
    """See `CheckPart`."""
    FORM.check(index)
    with IndexFile(table, index, BLOOM_FILE, BLOOM_COLUMNS) as file:
        zones = _load_zones(table, index, file)
        for batch in file.read_all():
            _words_of(batch.column(_FILTERS), file.path)
        nulls = file.read_buffer(NULL_BITMAP)
        if nulls is not None:  # Early releases lack it, and have zones that are not used, in the place of others.
            parse_null_rows(nulls, file.path)
            rows = NamedRows(table, index, by_id=False)
            rows.check_places(zones.fragment_ids, zones.starts + zones.lengths - 1, file.path)


def _answer(question: Question, zones: FilteredZones, filters: Iterator[Filters]) -> Flags:
    """Return for each zone whether it may have a row for which a predicate holds."""
    expression, asked = question.predicate.expression, dict[int, Hashes]()
    for node in walk(expression):
        values = _values_of(node, question.value_type)
        if values is not None:
            asked[id(node)] = hash_array(values)
    found = {term: np.zeros(len(zones), np.bool_) for term in asked}
    for part, words, starts in filters if asked else ():
        claims = np.empty(part.size, np.bool_)
        for term, hashes in asked.items():
            find_hashes(hashes, words, starts, claims)
            found[term][part] = claims
    answer = superset(
        expression, lambda node: zones.has_null if _is_null_test(node) else found.get(id(node)), _both, _either
    )
    assert answer is not None
    return answer


def _is_null_test(node: Expression) -> bool:
    return isinstance(node, nodes.IsNull) and isinstance(node.operand, nodes.Column)


def _values_of(node: Expression, value_type: pa.DataType) -> pa.Array | None:
    """Return the values of which the column has one where a term is true; None if they may be any, or too many."""
    match node:
        case nodes.Comparison("=", nodes.Column(), Literal(value)) if value.is_valid:
            values = pa.repeat(value, 1)
        case nodes.NullSafeEqual(nodes.Column(), Literal(value)) if value.is_valid:
            values = pa.repeat(value, 1)
        case nodes.In(nodes.Column(), constants):
            values = constants.drop_null()
        case _:
            return None
    if values.type != value_type or len(values) > _MOST_VALUES:
        return None
    if pa.types.is_floating(values.type):
        if pc.any(is_nan(values)).as_py():
            return None  # There are many of them.
        zeros = pa.array(np.array([0.0, -0.0]), values.type)
        return pa.concat_arrays([values, zeros]) if pc.any(pc.equal(values, zeros[0])).as_py() else values
    return values


def _both(one: Flags, other: Flags) -> Flags:
    return one & other


def _either(one: Flags, other: Flags) -> Flags:
    return one | other


def _load_zones(table: TableVersion, index: IndexMetadata, file: IndexFile) -> FilteredZones:
    """Return the zones of an index, cached."""
    key = (index.uuid, BLOOM_FILE)
    cached = table.cache.of_indices.get(key)
    if isinstance(cached, FilteredZones):
        return cached
    if file.num_rows > _MOST_ZONES:
        raise UnusableError(f"it has {file.num_rows} zones")
    batches = list(file.read(0, file.num_rows, _NUMBERS))
    columns = [
        pa.concat_arrays([pa.array([], field.type), *(batch.column(field.name) for batch in batches)])
        for field in BLOOM_COLUMNS[:-1]
    ]
    numbers = [column.to_numpy(zero_copy_only=False) for column in columns]
    if any(column.null_count for column in columns) or any((each >= _MAX_ROWS).any() for each in numbers[:3]):
        raise CorruptFileError("a zone lies beyond all rows that a fragment may have", path=file.path)
    fragment_ids, starts, lengths = (each.astype(np.int64) for each in numbers[:3])
    if (lengths < 1).any():
        raise CorruptFileError("a zone has no rows", path=file.path)
    zones = FilteredZones(np.arange(len(lengths)), fragment_ids, starts, lengths, numbers[3])
    zones = zones.take(np.lexsort((starts, fragment_ids)))
    table.cache.of_indices.put(key, zones, sum(getattr(zones, item.name).nbytes for item in dataclasses.fields(zones)))
    return zones


def _filters(table: TableVersion, index: IndexMetadata, file: IndexFile, positions: ZoneNumbers) -> Iterator[Filters]:
    """Yield the filters of zones, some megabytes at a time.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata
    file : IndexFile
    positions : int64[num_zones]
        Rows of the file.

    Yields
    ------
    part : int64[num_filters]
        The zones, by index.
    words : uint32[…]
        Their filters, one after another.
    starts : int64[num_filters + 1]
    """
    if not positions.size:
        return
    order = np.argsort(positions)
    size_bytes = max(int(file.take(positions[order[:1]], _FILTERS).nbytes), BLOCK_BYTES)
    at_once = max(_BYTES_AT_ONCE // size_bytes, 1)
    is_cached = size_bytes * file.num_rows <= _CACHED_BYTES
    for start in range(0, positions.size, at_once):
        part = order[start : start + at_once]
        key = (index.uuid, _FILTERS, positions[part].tobytes())
        found = table.cache.of_indices.get(key) if is_cached else None
        if not isinstance(found, tuple):
            found = _words_of(file.take(positions[part], _FILTERS), file.path)
            if is_cached:
                table.cache.of_indices.put(key, found, found[0].nbytes + found[1].nbytes + positions[part].nbytes)
        yield part, *found


def _words_of(filters: pa.Array, path: str) -> tuple[npt.NDArray[np.uint32], ZoneNumbers]:
    """Return filters one after another, and the first word of each."""
    _, offset_bytes, content = filters.buffers()
    ends = np.frombuffer(offset_bytes, np.int32)[filters.offset : filters.offset + len(filters) + 1].astype(np.int64)
    sizes = np.diff(ends)
    if filters.null_count or (sizes < BLOCK_BYTES).any() or (sizes % BLOCK_BYTES).any():
        raise CorruptFileError(f"a filter has no multiple of {BLOCK_BYTES} bytes", path=path)
    words = np.require(np.frombuffer(content, np.uint8)[ends[0] : ends[-1]].view("<u4"), requirements="A")
    words.flags.writeable = False
    return words, (ends - ends[0]) // 4
