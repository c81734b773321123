"""Minimum, maximum and number of nulls of whole columns, from exact statistics of the data files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import InvalidInputError
from lance_format.expressions.constants import as_array, from_ipc, to_ipc
from lance_format.expressions.zones import ZoneStatistics
from lance_format.half_floats import is_nan
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.scan.projection import plan_projection
from lance_format.table.versions.table_version import TableVersion


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Bounds and counts of a column, known without reading it.

    Parameters
    ----------
    num_rows, num_nulls : int
    minimum, maximum : pa.Scalar, optional
        Null if all values are null; None if unknown.
    """

    num_rows: int
    num_nulls: int
    minimum: pa.Scalar | None
    maximum: pa.Scalar | None

    def __reduce__(self) -> tuple[Any, ...]:
        values = [None if value is None else to_ipc(as_array(value)) for value in (self.minimum, self.maximum)]
        return _unpickle_bounds, (self.num_rows, self.num_nulls, *values)


def _unpickle_bounds(num_rows: int, num_nulls: int, *values: bytes | None) -> ColumnBounds:
    return ColumnBounds(num_rows, num_nulls, *(None if value is None else from_ipc(value)[0] for value in values))


def column_bounds(
    table: TableVersion, columns: Sequence[str], fragment_ids: Sequence[int] | None = None
) -> dict[str, ColumnBounds]:
    """Look up bounds in the statistics of the data files, without reading pages.

    Parameters
    ----------
    table : TableVersion
    columns : sequence of str
        Names of top-level columns.
    fragment_ids : sequence of int, optional
        The fragments; by default all.

    Returns
    -------
    dict of str to ColumnBounds
        Bounds by column, without columns that have unknown ones. All bounds of fragments with deleted rows are unknown.
        So are floating-point bounds that may be NaN or zero, because statistics do not keep the sign of a zero.

    Raises
    ------
    InvalidInputError
        If there is no such column or fragment.
    CorruptFileError
        If statistics are malformed.
    """
    source = plan_projection(table.manifest.schema, columns).source
    zones: dict[str, list[ZoneStatistics]] = {name: [] for name in columns}
    for fragment in _chosen(table, fragment_ids):
        scan = table.scan(fragment, source)
        if scan.num_deletions():
            return {}
        with scan.open() as files:
            found = files.zone_statistics(source)
        for name in list(zones):
            statistics = found.get((name,))
            if statistics is None or statistics.num_rows.sum() != scan.physical_rows():
                del zones[name]
            else:
                zones[name].append(statistics)
        if not zones:
            return {}
    stored = source.to_storage()
    united = {name: _unite(parts, stored.field(name).type) for name, parts in zones.items()}
    return {name: bounds for name, bounds in united.items() if bounds is not None}


def _chosen(table: TableVersion, fragment_ids: Sequence[int] | None) -> Iterable[FragmentMetadata]:
    if fragment_ids is None:
        return table.manifest.fragments
    found = [table.manifest.fragment(number) if isinstance(number, int) else None for number in fragment_ids]
    if None in found:
        raise InvalidInputError(f"version {table.manifest.version} of {table.uri} lacks a fragment of {fragment_ids}")
    return [fragment for fragment in found if fragment is not None]


def _unite(parts: Sequence[ZoneStatistics], arrow_type: pa.DataType) -> ColumnBounds | None:
    num_rows = sum(int(part.num_rows.sum()) for part in parts)
    if any((part.num_nulls < 0).any() for part in parts):
        return None
    num_nulls = sum(int(part.num_nulls.sum()) for part in parts)
    if num_nulls == num_rows:
        return ColumnBounds(num_rows, num_nulls, *[pa.scalar(None, arrow_type)] * 2)
    valued = [(part, pa.array(part.num_nulls < part.num_rows)) for part in parts]
    if not all(part.exact or not pc.any(kept).as_py() for part, kept in valued):
        return ColumnBounds(num_rows, num_nulls, None, None)
    lower = pa.chunked_array([part.lower.filter(kept) for part, kept in valued])
    upper = pa.chunked_array([part.upper.filter(kept) for part, kept in valued])
    return ColumnBounds(num_rows, num_nulls, _extreme(pc.min, lower), _extreme(pc.max, upper))


def _extreme(choose: Callable[[pa.ChunkedArray], pa.Scalar], bounds: pa.ChunkedArray) -> pa.Scalar | None:
    if pa.types.is_floating(bounds.type) and pc.any(is_nan(bounds)).as_py():
        return None
    try:
        chosen = choose(bounds)
    except pa.ArrowNotImplementedError:
        return None
    return None if pa.types.is_floating(bounds.type) and chosen.as_py() == 0 else chosen
