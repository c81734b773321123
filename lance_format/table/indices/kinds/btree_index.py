"""BTREE indices: all values of a column in ascending order, with the ids of their rows.

| file | column | |
|---|---|---|
| `page_data.lance` | `values` | ascending, nulls first; a page is `batch_size` rows of them |
| | `ids` | uint64: addresses of rows, or their stable ids if the table has these and the index is of version 0 |
| `page_lookup.lance` | `min`, `max` | the first and the last value of each page |
| | `null_count`, `page_idx` | uint32 |

The metadata of the schema of the second has `batch_size`, and `range_partitioned`: whether there is one such pair of
files for each of several ranges of values. Those are not used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import CorruptFileError
from lance_format.expressions.pruning import classify, rows_of_zones
from lance_format.expressions.values.order import compare
from lance_format.expressions.zones import ZoneStatistics
from lance_format.half_floats import if_else, is_nan
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.index_file import IndexFile
from lance_format.table.indices.named_rows import NamedRows
from lance_format.table.indices.row_finder import FoundRows, KnownForm, Question, UnusableError, unsigned
from lance_format.table.indices.zones.zone_map import comparable, has_bounds
from lance_format.table.versions.table_version import TableVersion

LOOKUP_FILE, DATA_FILE = "page_lookup.lance", "page_data.lance"
PAGE_ROWS, PARTITIONED = b"batch_size", b"range_partitioned"
"""Keys of the metadata of the first."""

FORM = KnownForm(newest=1)
_MOST_PAGES = 1 << 20
_MOST_BYTES = 64 << 20


def data_columns(value_type: pa.DataType) -> list[pa.Field]:
    """Return the columns of `page_data.lance`."""
    return [pa.field("values", value_type), pa.field("ids", pa.uint64(), nullable=False)]


def lookup_columns(value_type: pa.DataType) -> list[pa.Field]:
    """Return the columns of `page_lookup.lance`."""
    bounds = [pa.field(name, value_type) for name in ("min", "max")]
    return bounds + [pa.field(name, pa.uint32(), nullable=False) for name in ("null_count", "page_idx")]


def find_rows(table: TableVersion, index: IndexMetadata, question: Question) -> FoundRows | None:
    """See `Finder`."""
    if not has_bounds(question.value_type):
        raise UnusableError(f"values of {question.value_type} have no order")
    found = [np.zeros(0, np.uint64)]
    with IndexFile(table, index, DATA_FILE, data_columns(question.value_type)) as file:
        if not file.num_rows:
            return FoundRows(found[0], is_exact=True)
        zones = _load_zones(table, index, question.value_type, file.num_rows)
        verdicts = classify(question.predicate, {question.path: zones}, file.num_rows)
        starts, stops = rows_of_zones(verdicts.boundaries, verdicts.may_match)
        if int((stops - starts).sum()) > question.most_rows:
            return None
        for batch in file.read_ranges(starts, stops):
            ids = unsigned(batch.column("ids"), file.path)
            found.append(ids[question.holds_for(batch.column("values"))])
    return FoundRows(np.concatenate(found), is_exact=True)


def check_part(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> None:
    """Check that values lie within the bounds of their pages; see `CheckPart`."""
    FORM.check(index)
    if not has_bounds(value_type):
        raise UnusableError(f"values of {value_type} have no order")
    rows = NamedRows(table, index, by_id=FORM.names_ids(table, index))
    with IndexFile(table, index, DATA_FILE, data_columns(value_type)) as file:
        if not file.num_rows:
            return
        zones = _load_zones(table, index, value_type, file.num_rows)
        ends, num_nulls, start = np.cumsum(zones.num_rows), np.zeros(zones.num_zones, np.int64), 0
        for batch in file.read_all():
            rows.check(unsigned(batch.column("ids"), file.path), file.path)
            values = batch.column("values")
            pages = np.searchsorted(ends, np.arange(start, start + batch.num_rows), side="right")
            if _are_outside(values, zones, pages):
                raise CorruptFileError("a value is not within the bounds of its page", path=file.path)
            num_nulls += np.bincount(pages[values.is_null().to_numpy(zero_copy_only=False)], minlength=zones.num_zones)
            start += batch.num_rows
        if ((zones.num_nulls >= 0) & (zones.num_nulls != num_nulls)).any():
            raise CorruptFileError("a page has another number of nulls than it is said to have", path=file.path)


def _are_outside(values: pa.Array, zones: ZoneStatistics, pages: npt.NDArray[np.int64]) -> bool:
    """Return whether a value is not within the bounds of its page; `pages` ascends.

    Pages are looked at one by one: bounds that are long texts would fill the memory, if each row had its own.
    """
    values = comparable(values)
    numbers, starts = np.unique(pages, return_index=True)
    lower, upper = (comparable(bounds.take(pa.array(numbers))) for bounds in (zones.lower, zones.upper))
    stops = np.append(starts[1:], pages.size)
    for page, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        some = values.slice(start, stop - start)
        if pc.any(pc.or_kleene(compare("<", some, lower[page]), compare(">", some, upper[page]))).as_py():
            return True
    return False


def _load_zones(table: TableVersion, index: IndexMetadata, value_type: pa.DataType, num_values: int) -> ZoneStatistics:
    """Return the pages of an index as zones of its values, cached."""
    key = (index.uuid, LOOKUP_FILE)
    cached = table.cache.of_indices.get(key)
    if isinstance(cached, ZoneStatistics) and cached.lower.type == value_type:
        return cached
    with IndexFile(table, index, LOOKUP_FILE, lookup_columns(value_type)) as file:
        sizes = file.metadata.get(PAGE_ROWS, b"")
        if file.metadata.get(PARTITIONED, b"false") != b"false" or not sizes.isdigit():
            raise UnusableError("its pages are of another form")
        if not 0 < file.num_rows <= _MOST_PAGES or file.size_bytes > _MOST_BYTES:
            raise UnusableError(f"it has {file.num_rows} pages, with bounds of {file.size_bytes} bytes")
        pages = pa.concat_batches(list(file.read(0, file.num_rows)))
    zones = _zones_of(pages, int(sizes), num_values, file.path)
    table.cache.of_indices.put(key, zones, int(pages.nbytes))
    return zones


def _zones_of(batch: pa.RecordBatch, page_rows: int, num_values: int, path: str) -> ZoneStatistics:
    """Return pages as zones. Nothing is known of one whose first value is null, unless all of its values are."""
    numbers = np.arange(batch.num_rows)
    if page_rows < 1 or -(-num_values // page_rows) != batch.num_rows:
        raise CorruptFileError(f"{batch.num_rows} pages of {page_rows} rows for {num_values} values", path=path)
    if not np.array_equal(batch.column("page_idx").to_numpy(zero_copy_only=False), numbers):
        raise CorruptFileError("the pages are not numbered in their order", path=path)
    lower, upper = (_without_nan(batch.column(name)) for name in ("min", "max"))
    num_rows = np.minimum((numbers + 1) * page_rows, num_values) - numbers * page_rows
    counted = batch.column("null_count")
    if counted.null_count:
        raise CorruptFileError("the number of nulls of a page is null", path=path)
    counted = counted.to_numpy().astype(np.int64)
    if (counted > num_rows).any():
        raise CorruptFileError("a page has more nulls than rows", path=path)
    order, other = comparable(lower), comparable(upper)
    if pc.any(compare(">", order, other)).as_py() or pc.any(compare(">", other[:-1], order[1:])).as_py():
        raise CorruptFileError("the bounds of pages do not ascend", path=path)
    is_bounded = np.asarray(pc.and_(lower.is_valid(), upper.is_valid()).to_numpy(zero_copy_only=False))
    unknown = (counted < num_rows) & ((counted > 0) | ~is_bounded)
    num_nulls = np.where(unknown, -1, counted)
    none = pa.scalar(None, lower.type)
    lower, upper = (if_else(pa.array(unknown), none, bound) for bound in (lower, upper))
    return ZoneStatistics(num_rows, num_nulls, lower, upper, exact=False)


def _without_nan(bounds: pa.Array) -> pa.Array:
    """Return bounds with null in the place of NaN, which pylance puts before or after all numbers, by its sign."""
    if not pa.types.is_floating(bounds.type):
        return bounds
    return if_else(is_nan(bounds), pa.scalar(None, bounds.type), bounds)
