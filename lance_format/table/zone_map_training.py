"""Finding the zones of a column, fragment by fragment: in the seeds of its data files, or by reading its live rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lance_format.datatypes import Field, Schema
from lance_format.extension_types import storage_of
from lance_format.file import Seed
from lance_format.table.fragment import FragmentMetadata
from lance_format.table.fragment_files import FragmentFiles
from lance_format.table.fragment_scan import FragmentScan
from lance_format.table.table_version import TableVersion
from lance_format.table.zone_map import NullRows, Numbers, Zones, comparable, has_bounds, with_nan

_BATCH_ROWS = 64 * 1024
_AGGREGATES = {"start": "min", "end": "max", "nulls": "sum", "nans": "sum", "lower": "min", "upper": "max"}


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of one fragment.

    Parameters
    ----------
    zones : Zones
    null_rows : bytes, optional
        A 32-bit Roaring bitmap; None if it is unknown.
    """

    zones: Zones
    null_rows: bytes | None


def train_zones(
    table: TableVersion,
    path: Sequence[Field],
    fragments: Iterable[FragmentMetadata],
    rows_per_zone: int,
    *,
    any_seeds: bool = False,
) -> tuple[Zones, NullRows | None]:
    """Find the zones of a column.

    A zone is of as many live rows that follow each other, as the reference has it, or of the last rows of a fragment;
    zones of seeds are of physical rows.

    Parameters
    ----------
    table : TableVersion
    path : sequence of Field
        The column, and the fields that lead to a field below it.
    fragments : iterable of FragmentMetadata
        Of the table.
    rows_per_zone : int
    any_seeds : bool
        Whether seeds will do that do not say which rows are null, though some are.

    Returns
    -------
    Zones
        In the order of the fragments.
    NullRows or None
        None if it is unknown which rows are null.
    """
    value_type = path[-1].to_arrow_type()
    schema = Schema((_alone(path),), {})
    parts, null_rows, all_known = [Zones.empty(value_type)], {}, True
    for fragment in fragments:
        scan = table.scan(fragment, schema)
        with scan.open() as files:
            found = _harvested(scan, files, path, rows_per_zone) if len(path) == 1 else None
            if found is None or (found.null_rows is None and not any_seeds):
                found = _trained(scan, files, path, rows_per_zone)
        parts.append(found.zones)
        all_known &= found.null_rows is not None
        if found.null_rows is not None and pyroaring.BitMap.deserialize(found.null_rows):
            null_rows[fragment.id] = found.null_rows
    return Zones.concatenate(parts), null_rows if all_known else None


def _harvested(scan: FragmentScan, files: FragmentFiles, path: Sequence[Field], rows_per_zone: int) -> _Found | None:
    """Return what the data file of a column stores for indices; None if that is nothing, or not of such zones."""
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


def _trained(scan: FragmentScan, files: FragmentFiles, path: Sequence[Field], rows_per_zone: int) -> _Found:
    training = _Training(path[-1].to_arrow_type(), rows_per_zone)
    names = [field.name for field in path[1:]]
    for batch, offsets in scan.read_range(files, scan.schema, 0, scan.physical_rows(), batch_size=_BATCH_ROWS):
        training.add(_values(batch.column(0), names), offsets)
    return _Found(training.finish(scan.fragment.id), training.null_rows.serialize())


def _alone(path: Sequence[Field]) -> Field:
    """Return the first field with nothing below it but what leads to the last."""
    if len(path) == 1:
        return path[0]
    return dataclasses.replace(path[0], children=(_alone(path[1:]),))


def _values(array: pa.Array, names: Iterable[str]) -> pa.Array:
    """Return a field below structs; where one of these is null, so is the field."""
    for name in names:
        array = pc.struct_field(array, name)
    return storage_of(array)


class _Training:
    """The zones of one fragment, while its rows are read."""

    def __init__(self, value_type: pa.DataType, rows_per_zone: int) -> None:
        self._value_type = value_type
        self._rows_per_zone = rows_per_zone
        self._num_rows = 0
        self._parts: list[pa.Table] = []
        self.null_rows = pyroaring.BitMap()

    def add(self, values: pa.Array, offsets: Numbers) -> None:
        """Take the next rows, and their places in the fragment."""
        is_null = pc.is_null(values)
        self.null_rows.update(offsets[is_null.to_numpy(zero_copy_only=False)].astype(np.uint32))
        columns = {
            "zone": pa.array(np.arange(self._num_rows, self._num_rows + len(values)) // self._rows_per_zone),
            "start": pa.array(offsets),
            "end": pa.array(offsets + 1),
            "nulls": is_null.cast(pa.int64()),
            "nans": pa.array(np.zeros(len(values), np.int64)),
        }
        if pa.types.is_floating(self._value_type):
            is_nan = pc.fill_null(pc.is_nan(values), False)
            columns["nans"] = is_nan.cast(pa.int64())
            values = pc.if_else(is_nan, pa.scalar(None, values.type), values)
        if has_bounds(self._value_type):
            columns["lower"] = columns["upper"] = comparable(values)
        self._num_rows += len(values)
        self._parts.append(_by_zone(pa.table(columns)))

    def finish(self, fragment_id: int) -> Zones:
        """Return the zones of all rows."""
        if not self._parts:
            return Zones.empty(self._value_type)
        found = self._parts[0] if len(self._parts) == 1 else _by_zone(pa.concat_tables(self._parts))
        found = found.combine_chunks()
        starts, ends, nulls, nans = (found[name].to_numpy() for name in ("start", "end", "nulls", "nans"))
        if has_bounds(self._value_type):
            lower, upper = (_joined(found[name]) for name in ("lower", "upper"))
        else:
            lower = upper = pa.nulls(len(found), self._value_type)
        if pa.types.is_floating(self._value_type):
            lower, upper = _total_order(lower, upper, nans)
        lower, upper = (bounds.cast(self._value_type) for bounds in (lower, upper))
        return Zones(np.full(len(found), fragment_id), starts, ends - starts, nulls, nans, lower, upper)


def _by_zone(rows: pa.Table) -> pa.Table:
    """Return what rows, or parts of zones, make of zones; these stay in order."""
    wanted = [(name, how) for name, how in _AGGREGATES.items() if name in rows.column_names]
    found = rows.group_by("zone", use_threads=False).aggregate(wanted)
    return found.rename_columns({f"{name}_{how}": name for name, how in wanted})


def _joined(bounds: pa.ChunkedArray) -> pa.Array:
    return bounds.chunk(0) if bounds.num_chunks == 1 else pa.concat_arrays(bounds.chunks)


def _total_order(lower: pa.Array, upper: pa.Array, nan_counts: Numbers) -> tuple[pa.Array, pa.Array]:
    """Return bounds of numbers that hold as well for those who tell -0.0 from 0.0, and take NaN for the greatest.

    The reference gives a zone of nothing but NaN no minimum, and then does not find NaN to exceed a number.
    """
    zero, negative_zero = (pa.scalar(value, lower.type) for value in (0.0, -0.0))
    lower = pc.if_else(pc.equal(lower, zero), negative_zero, lower)
    upper = pc.if_else(pc.equal(upper, zero), zero, upper)
    return with_nan(lower, upper, nan_counts)
