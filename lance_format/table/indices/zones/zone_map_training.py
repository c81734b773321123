"""Finding the zones of a column per fragment: in the seeds of its data files, or by reading its live rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lance_format.datatypes import Field, Schema
from lance_format.file import Seed
from lance_format.file.columns.dictionaries import concat
from lance_format.half_floats import if_else, is_nan
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ReadCounter
from lance_format.progress import Work, advance
from lance_format.row_numbers import to_bitmap
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.open_files import FragmentFiles
from lance_format.table.fragments.opening import opened_ahead
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.small_fragments import smallness
from lance_format.table.fragments.whole_fragments import read_whole
from lance_format.table.indices.column_values import narrowed, values_below
from lance_format.table.indices.zones.zone_map import NullRows, ZoneNumbers, Zones, comparable, has_bounds, with_nan
from lance_format.table.versions.table_version import TableVersion

_BATCH_ROWS = 64 * 1024
_FEW_ROWS = 8 * 1024
_GATHERED_BYTES = 16 * 1024 * 1024
_AGGREGATES = {
    "fragment": "min",
    "start": "min",
    "end": "max",
    "nulls": "sum",
    "nans": "sum",
    "lower": "min",
    "upper": "max",
}


@dataclass(frozen=True, slots=True)
class _Found:
    """Seeds of one fragment.

    Parameters
    ----------
    zones : Zones
    null_rows : bytes, optional
        A 32-bit Roaring bitmap; None if it is unknown.
    """

    zones: Zones
    null_rows: bytes | None


_Rows: TypeAlias = tuple[pa.RecordBatch, ZoneNumbers]
"""Live rows of a fragment, and their offsets."""
_Harvest: TypeAlias = Callable[[FragmentFiles, FragmentReader], _Found | None]


def train_zones(
    table: TableVersion,
    path: Sequence[Field],
    fragments: Iterable[FragmentMetadata],
    rows_per_zone: int,
    *,
    any_seeds: bool = False,
) -> tuple[Zones, NullRows | None]:
    """Find the zones of a column.

    A zone has `rows_per_zone` consecutive live rows, as in the reference, or the last rows of a fragment. Zones of
    seeds count physical rows.

    Parameters
    ----------
    table : TableVersion
    path : sequence of Field
        The fields from a column to the indexed field.
    fragments : iterable of FragmentMetadata
    rows_per_zone : int
    any_seeds : bool
        Whether to accept seeds that leave open which rows are null.

    Returns
    -------
    Zones
        The zones in the order of the fragments.
    NullRows or None
        None if it is unknown which rows are null.
    """
    training = _Training(path[-1].to_arrow_type(), rows_per_zone)
    schema = Schema((narrowed(path),), {})
    null_rows, all_known = {}, True

    def harvest(files: FragmentFiles, scan: FragmentReader) -> _Found | None:
        found = _harvested(scan, files, path, rows_per_zone) if len(path) == 1 else None
        return None if found is None or (found.null_rows is None and not any_seeds) else found

    for scan, found in _found_in((table.scan(fragment, schema) for fragment in fragments), schema, harvest):
        fragment = scan.fragment
        if isinstance(found, _Found):
            training.add_zones(found.zones)
            found_null = None if found.null_rows is None else pyroaring.BitMap.deserialize(found.null_rows)
        else:
            values = ((values_below(batch.column(0), path[1:]), offsets) for batch, offsets in found)
            found_null = training.add(fragment.id, values)
        all_known &= found_null is not None
        if found_null:
            null_rows[fragment.id] = found_null.serialize()
        advance(Work.INDEXING, fragment.physical_rows, fragment.known_bytes)
    return training.finish(), null_rows if all_known else None


def _found_in(
    scans: Iterable[FragmentReader], schema: Schema, harvest: _Harvest
) -> Iterator[tuple[FragmentReader, _Found | Iterable[_Rows]]]:
    """Yield fragments with their seeds or live rows. The rows of small ones cost less than a look for seeds."""
    has_small_files = smallness(schema)

    def is_small(scan: FragmentReader) -> bool:
        return scan.fragment.physical_rows <= _FEW_ROWS and has_small_files(scan)

    for are_small, group in itertools.groupby(scans, key=is_small):
        if are_small:
            yield from _small(group, schema)
        else:
            yield from _large(group, schema, harvest)


def _small(scans: Iterable[FragmentReader], schema: Schema) -> Iterator[tuple[FragmentReader, Iterable[_Rows]]]:
    scan: FragmentReader | None = None
    found: list[_Rows] = []
    for batch, parts in read_whole(scans, schema, batch_size=_BATCH_ROWS):
        start = 0
        for rows in parts:
            if scan is not None and rows.scan is not scan:
                yield scan, found
                found = []
            scan = rows.scan
            found.append((batch.slice(start, rows.offsets.size), rows.offsets))
            start += rows.offsets.size
    if scan is not None:
        yield scan, found


def _large(
    scans: Iterable[FragmentReader], schema: Schema, harvest: _Harvest
) -> Iterator[tuple[FragmentReader, _Found | Iterable[_Rows]]]:
    seeds: dict[int, _Found | None] = {}

    def num_read(files: FragmentFiles, scan: FragmentReader, _: None) -> int:
        seeds[id(scan)] = found = harvest(files, scan)
        return scan.physical_rows() if found is None else 0

    for scan, _ in opened_ahead(((scan, None) for scan in scans), schema, ReadCounter(), num_read):
        with scan.open() as files:
            found = seeds.pop(id(scan)) if id(scan) in seeds else harvest(files, scan)
            rows = scan.read_range(files, schema, 0, scan.physical_rows(), batch_size=_BATCH_ROWS)
            yield scan, ((batch, offsets()) for batch, offsets in rows) if found is None else found


def _harvested(scan: FragmentReader, files: FragmentFiles, path: Sequence[Field], rows_per_zone: int) -> _Found | None:
    """Return the seeds in the data file of a column; None if there are none, or their zones differ."""
    held = [(file, part) for file, parts in files.parts(scan.schema).items() for part in parts]
    if len(held) != 1:
        return None
    ((file, part),) = held
    seed = files.reader(file).seed(part, rows_per_zone)
    if seed is None or not seed.statistics.exact or seed.statistics.lower.type != path[-1].to_arrow_type():
        return None
    return _Found(_zones_of(seed, scan.fragment.id), seed.null_rows())


def _zones_of(seed: Seed, fragment_id: int) -> Zones:
    found = seed.statistics
    lengths, lower, upper = found.num_rows, found.lower, found.upper
    if pa.types.is_floating(lower.type):
        bounds = _total_order(comparable(lower), comparable(upper), seed.num_nan)
        lower, upper = (bound.cast(lower.type) for bound in bounds)
    ids = np.full(found.num_zones, fragment_id)
    return Zones(ids, np.cumsum(lengths) - lengths, lengths, found.num_nulls, seed.num_nan, lower, upper)


@dataclass(frozen=True, slots=True)
class _RowsInZones:
    """Rows of a fragment: their values, offsets and zones. Zones are numbered from the first fragment on."""

    fragment_id: int
    values: pa.Array
    offsets: ZoneNumbers
    zones: ZoneNumbers


class _Training:
    """Collects the zones of fragments in order.

    Rows of small fragments are gathered: a call of Arrow takes as long for one row as for thousands.
    """

    def __init__(self, value_type: pa.DataType, rows_per_zone: int) -> None:
        self._value_type = value_type
        self._rows_per_zone = rows_per_zone
        self._num_zones = 0
        self._pending: list[_RowsInZones] = []
        self._num_pending = 0
        self._pending_bytes = 0
        self._parts: list[pa.Table] = []
        self._finished = [Zones.empty(value_type)]

    def add(self, fragment_id: int, rows: Iterable[tuple[pa.Array, ZoneNumbers]]) -> pyroaring.BitMap:
        """Add the rows of the next fragment, values and offsets, and return the offsets of null rows."""
        null_rows = pyroaring.BitMap()
        num_rows = 0
        for values, offsets in rows:
            is_null = pc.is_null(values).to_numpy(zero_copy_only=False) if values.null_count else None
            if is_null is not None:
                null_rows |= to_bitmap(offsets[is_null], runs=False)  # The reference stores them in this form.
            if not has_bounds(self._value_type):  # Only nulls matter.
                values = pa.array(np.zeros(len(values), np.bool_), mask=is_null)
            positions = np.arange(num_rows, num_rows + len(values))
            self._gather(_RowsInZones(fragment_id, values, offsets, self._num_zones + positions // self._rows_per_zone))
            num_rows += len(values)
        self._num_zones += -(-num_rows // self._rows_per_zone)
        return null_rows

    def add_zones(self, zones: Zones) -> None:
        """Add the known zones of the next fragment."""
        self._finish_rows()
        self._finished.append(zones)

    def finish(self) -> Zones:
        """Return the zones of all fragments, in the order given."""
        self._finish_rows()
        return Zones.concatenate(self._finished)

    def _gather(self, rows: _RowsInZones) -> None:
        size = rows.values.nbytes
        num_rows = self._num_pending + len(rows.values)
        if self._pending and (num_rows > _BATCH_ROWS or self._pending_bytes + size > _GATHERED_BYTES):
            self._aggregate()
        self._pending.append(rows)
        self._num_pending += len(rows.values)
        self._pending_bytes += size

    def _aggregate(self) -> None:
        """Make zones, or parts of zones, of the rows gathered."""
        pending, self._pending, self._num_pending, self._pending_bytes = self._pending, [], 0, 0
        values = concat([rows.values for rows in pending])
        offsets = np.concatenate([rows.offsets for rows in pending])
        lengths = [len(rows.values) for rows in pending]
        is_null = pc.is_null(values)
        columns = {
            "zone": pa.array(np.concatenate([rows.zones for rows in pending])),
            "fragment": pa.array(np.repeat([rows.fragment_id for rows in pending], lengths)),
            "start": pa.array(offsets),
            "end": pa.array(offsets + 1),
            "nulls": is_null.cast(pa.int64()),
            "nans": pa.array(np.zeros(len(values), np.int64)),
        }
        if pa.types.is_floating(self._value_type):
            no_number = pc.fill_null(is_nan(values), False)
            columns["nans"] = no_number.cast(pa.int64())
            values = if_else(no_number, pa.scalar(None, values.type), values)
        if has_bounds(self._value_type):
            columns["lower"] = columns["upper"] = comparable(values)
        self._parts.append(_by_zone(pa.table(columns)))

    def _finish_rows(self) -> None:
        """Make zones of all rows taken so far."""
        if self._pending:
            self._aggregate()
        if not self._parts:
            return
        found = self._parts[0] if len(self._parts) == 1 else _by_zone(pa.concat_tables(self._parts))
        self._parts = []
        found = found.combine_chunks()
        ids, starts, ends = (found[name].to_numpy() for name in ("fragment", "start", "end"))
        nulls, nans = (found[name].to_numpy() for name in ("nulls", "nans"))
        if has_bounds(self._value_type):
            lower, upper = (_joined(found[name]) for name in ("lower", "upper"))
        else:
            lower = upper = pa.nulls(len(found), self._value_type)
        if pa.types.is_floating(self._value_type):
            lower, upper = _total_order(lower, upper, nans)
        lower, upper = (bounds.cast(self._value_type) for bounds in (lower, upper))
        self._finished.append(Zones(ids, starts, ends - starts, nulls, nans, lower, upper))


def _by_zone(rows: pa.Table) -> pa.Table:
    """Aggregate rows, or parts of zones, to zones in order."""
    wanted = [(name, how) for name, how in _AGGREGATES.items() if name in rows.column_names]
    found = rows.group_by("zone", use_threads=False).aggregate(wanted)
    return found.rename_columns({f"{name}_{how}": name for name, how in wanted})


def _joined(bounds: pa.ChunkedArray) -> pa.Array:
    return bounds.chunk(0) if bounds.num_chunks == 1 else pa.concat_arrays(bounds.chunks)


def _total_order(lower: pa.Array, upper: pa.Array, nan_counts: ZoneNumbers) -> tuple[pa.Array, pa.Array]:
    """Return bounds that are also valid for readers that distinguish -0.0 from 0.0, and order NaN last.

    The reference gives a zone of only NaN no minimum, and then does not find that NaN exceeds a number.
    """
    zero, negative_zero = (pa.scalar(value, lower.type) for value in (0.0, -0.0))
    lower = pc.if_else(pc.equal(lower, zero), negative_zero, lower)
    upper = pc.if_else(pc.equal(upper, zero), zero, upper)
    return with_nan(lower, upper, nan_counts)
