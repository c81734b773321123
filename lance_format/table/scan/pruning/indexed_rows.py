"""Finding the rows that terms of a filter select, by the indices that name rows, or tell zones apart by their values.

Such an index answers the conjunctive terms of a filter that are about its column alone. Of the fragments that it
covers, only the rows in its answer are read. The filter is evaluated over them, unless exact answers of indices cover
all of its terms.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from lance_format.errors import NotSupportedError
from lance_format.expressions import BoundExpression, FieldPath, columns_of, conjunction, conjuncts
from lance_format.expressions.pruning import rows_of_zones
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import map_together
from lance_format.row_numbers import distinct
from lance_format.table.format.index_metadata import FRAGMENT_REUSE_INDEX, IndexMetadata
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.indices.catalog import kind_of
from lance_format.table.indices.kinds import (
    bitmap_index,
    bloom_filter_index,
    btree_index,
    label_list_index,
    ngram_index,
)
from lance_format.table.indices.kinds.bloom_filter_index import ZonesFound
from lance_format.table.indices.named_rows import lacking_row
from lance_format.table.indices.opening import index_path, naming
from lance_format.table.indices.row_finder import (
    Finder,
    FoundRows,
    KnownForm,
    Question,
    RowIds,
    UnusableError,
    is_plain,
)
from lance_format.table.indices.zones.zone_map import is_ordinary
from lance_format.table.row_ids.index import row_addresses, split_addresses
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.versions.row_places import find_row_ids
from lance_format.table.versions.table_version import TableVersion

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Use:
    """Use of indices of a kind.

    Parameters
    ----------
    holds : callable
        Returns whether such an index is of use for values of a type.
    finder : Finder, optional
        None if they do not name rows.
    form : KnownForm
    file : str
        The name of the file that names rows or zones.
    can_answer : callable
        Returns whether they bound the rows for which a predicate holds; by default they do.
    """

    holds: Callable[[pa.DataType], bool]
    finder: Finder | None
    form: KnownForm
    file: str
    can_answer: Callable[[Question], bool] = lambda _: True


_USES: Mapping[str, _Use] = MappingProxyType(
    {
        "BTree": _Use(is_ordinary, btree_index.find_rows, btree_index.FORM, btree_index.DATA_FILE),
        "Bitmap": _Use(is_ordinary, bitmap_index.find_rows, bitmap_index.FORM, bitmap_index.BITMAP_FILE),
        "LabelList": _Use(
            label_list_index.has_labels,
            label_list_index.find_rows,
            label_list_index.FORM,
            bitmap_index.BITMAP_FILE,
            can_answer=label_list_index.can_answer,
        ),
        "NGram": _Use(
            ngram_index.is_text,
            ngram_index.find_rows,
            ngram_index.FORM,
            ngram_index.NGRAM_FILE,
            can_answer=ngram_index.can_answer,
        ),
        "BloomFilter": _Use(
            bloom_filter_index.can_hash,
            None,
            bloom_filter_index.FORM,
            bloom_filter_index.BLOOM_FILE,
            can_answer=bloom_filter_index.can_answer,
        ),
    }
)
_LEAST_ROWS, _MOST_ROWS = 16 * 4096, 256 * 4096
"""Rows of an index that are worth reading to find those of a filter; more of them are soon found by a scan.

They are a quarter of a small table, and of a large one, whose scan may have many processes, a share of 1 / 64.
"""


@dataclass(frozen=True, slots=True, eq=False)
class IndexedRows:
    """The answer of one index about a filter.

    Parameters
    ----------
    index : IndexMetadata
    excluded : int64[…]
        The ids of fragments without a row that may match.
    ranges : mapping of int to RowRanges
        The rows that may match, for fragments where only some of them may.
    is_exact : bool
        Whether all rows of `ranges` match.
    """

    index: IndexMetadata
    excluded: RowOffsets
    ranges: Mapping[int, RowRanges]
    is_exact: bool = False


def names_rows(index: IndexMetadata) -> bool:
    """Return whether an index is of a kind and a form that is used here, other than a ZONEMAP."""
    use = _USES.get(kind_of(index))
    return use is not None and is_plain(index, use.form.newest)


def can_hold(index: IndexMetadata, value_type: pa.DataType) -> bool:
    """Return whether such an index is of use for a column of a type; see `names_rows`."""
    return _USES[kind_of(index)].holds(value_type)


def can_answer(index: IndexMetadata, predicate: BoundExpression, path: FieldPath, value_type: pa.DataType) -> bool:
    """Return whether such an index is of use for a filter, without reading it.

    Parameters
    ----------
    index : IndexMetadata
        See `names_rows`.
    predicate : BoundExpression
    path : FieldPath
        Its column.
    value_type : pa.DataType
        The type of the column.
    """
    term = own_terms(predicate, path)
    return term is not None and _USES[kind_of(index)].can_answer(Question(term, value_type, 0))


def own_terms(predicate: BoundExpression, path: FieldPath) -> BoundExpression | None:
    """Return the conjunctive terms of a filter that are about one column alone; None if there are none."""
    terms = tuple(term for term in conjuncts(predicate.expression) if columns_of(term) == (path,))
    return BoundExpression(conjunction(terms), pa.bool_(), (path,)) if terms else None


def find_indexed_rows(
    table: TableVersion,
    indices: tuple[IndexMetadata, ...],
    term: BoundExpression,
    value_type: pa.DataType,
    fragment_ids: RowOffsets,
    num_rows: RowOffsets,
) -> Iterator[IndexedRows]:
    """Ask the indices of a column.

    Parameters
    ----------
    table : TableVersion
    indices : tuple of IndexMetadata
        See `names_rows`.
    term : BoundExpression
        See `own_terms`.
    value_type : pa.DataType
        The type of the column.
    fragment_ids : int64[num_fragments]
        The fragments of interest, by ascending id.
    num_rows : int64[num_fragments]
        Number of physical rows of each.

    Raises
    ------
    CorruptFileError
        If the file of an index is malformed.
    DatasetNotFoundError
        If it is missing.
    """
    if any(index.name == FRAGMENT_REUSE_INDEX for index in table.manifest.indices):
        return

    def ask(index: IndexMetadata) -> IndexedRows | None:
        places = np.flatnonzero(np.isin(fragment_ids, index.covered_ids()))
        all_rows = int(num_rows[places].sum())
        most_rows = max(all_rows // 64, min(all_rows // 4, _MOST_ROWS), _LEAST_ROWS)
        question = Question(term, value_type, most_rows)
        if not places.size or not _USES[kind_of(index)].can_answer(question):
            return None
        return _ask(table, index, question, fragment_ids[places], num_rows[places])

    yield from filter(None, map_together(table.store, ask, indices))


def _ask(
    table: TableVersion, index: IndexMetadata, question: Question, covered: RowOffsets, num_rows: RowOffsets
) -> IndexedRows | None:
    finder = _USES[kind_of(index)].finder
    try:
        with naming(index):
            if finder is None:
                zones = bloom_filter_index.find_zones(table, index, question, covered)
                return _in_zones(index, zones, covered, num_rows)
            found = finder(table, index, question)
    except (NotSupportedError, UnusableError) as error:
        _LOGGER.info("index %r is not used: %s", index.name, error)
        return None
    return None if found is None else _placed(table, index, found, covered, num_rows)


def _in_zones(index: IndexMetadata, zones: ZonesFound, covered: RowOffsets, num_rows: RowOffsets) -> IndexedRows | None:
    """Return the rows of zones; those between two, deleted when these were made, are of the first."""
    if not zones.starts.size:
        return None
    firsts = np.flatnonzero(np.diff(zones.fragment_ids, prepend=-1))
    stops = np.append(firsts[1:], zones.starts.size)
    counts = np.add.reduceat(zones.may_match, firsts, dtype=np.int64)
    ids, ranges = zones.fragment_ids[firsts], {}
    for position in np.flatnonzero((counts > 0) & (counts < stops - firsts)).tolist():
        part = slice(int(firsts[position]), int(stops[position]))
        end = num_rows[np.searchsorted(covered, ids[position])]
        bounds = np.concatenate([[0], zones.starts[part][1:], [end]])
        begins, ends = rows_of_zones(bounds, zones.may_match[part])
        ranges[int(ids[position])] = RowRanges(begins, ends, np.zeros(begins.size, np.bool_))
    return IndexedRows(index, ids[counts == 0], ranges)


def _placed(
    table: TableVersion, index: IndexMetadata, named: FoundRows, covered: RowOffsets, num_rows: RowOffsets
) -> IndexedRows:
    """Find the rows of ids in the fragments that an index covers; it may name others, which are gone or moved."""
    use = _USES[kind_of(index)]
    addresses = _addresses_of(table, named.ids) if use.form.names_ids(table, index) else named.ids
    fragment_ids, offsets = split_addresses(distinct(addresses))
    starts = np.flatnonzero(np.diff(fragment_ids, prepend=-1))
    found = fragment_ids[starts]
    places = np.minimum(np.searchsorted(covered, found), covered.size - 1)
    stops, is_covered = np.append(starts[1:], offsets.size), covered[places] == found
    is_empty = np.ones(covered.size, np.bool_)
    is_empty[places[is_covered]] = False
    ranges = {}
    for number, start, stop, place in zip(
        *(part[is_covered].tolist() for part in (found, starts, stops, places)), strict=True
    ):
        rows, limit = offsets[start:stop], int(num_rows[place])
        if rows[-1] >= limit:
            raise lacking_row(index, int(rows[-1]), number, limit, index_path(table, index, use.file))
        ranges[number] = RowRanges.of_rows(rows)
    return IndexedRows(index, covered[is_empty], ranges, named.is_exact)


def _addresses_of(table: TableVersion, ids: RowIds) -> RowIds:
    """Return the addresses of rows, without rows that do not exist."""
    fragment_ids, offsets = find_row_ids(table, ids)
    exists = fragment_ids >= 0
    return row_addresses(fragment_ids[exists], offsets[exists])
