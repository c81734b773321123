"""Finding the rows that terms of a filter select, by the indices that name rows.

Such an index answers the conjunctive terms of a filter that are about its column alone. Of the fragments that it
covers, only the rows in its answer are read, and the whole filter is evaluated over them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.expressions import BoundExpression, FieldPath, columns_of, conjunction, conjuncts
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import distinct
from lance_format.table.format.index_metadata import FRAGMENT_REUSE_INDEX, IndexMetadata
from lance_format.table.indices import bitmap_index, btree_index
from lance_format.table.indices.catalog import kind_of
from lance_format.table.indices.row_finder import Finder, Question, RowIds, UnusableError
from lance_format.table.scan.row_ranges import RowRanges
from lance_format.table.scan.take import find_row_ids
from lance_format.table.versions.table_version import TableVersion

_LOGGER = logging.getLogger(__name__)
_FINDERS: Mapping[str, Finder] = MappingProxyType({"BTree": btree_index.find_rows, "Bitmap": bitmap_index.find_rows})
_INDEX_VERSION = 0
_MOST_ROWS = 16 * 4096
_MOST_SHARE = 1 / 64
"""Rows, and share of all, that are worth finding by their ids; more of them are soon found by a scan."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexedRows:
    """What one index knows of a filter.

    Parameters
    ----------
    index : IndexMetadata
    excluded : int64[…]
        The ids of fragments without a row that may match.
    ranges : mapping of int to RowRanges
        The rows that may match of the other fragments that it covers.
    """

    index: IndexMetadata
    excluded: npt.NDArray[np.int64]
    ranges: Mapping[int, RowRanges]


def names_rows(index: IndexMetadata) -> bool:
    """Return whether an index is of a kind and a form that is used here."""
    is_plain = index.fragment_ids is not None and len(index.fields) == 1 and not index.message.index_details.value
    return is_plain and kind_of(index) in _FINDERS and index.message.index_version <= _INDEX_VERSION


def find_indexed_rows(
    table: TableVersion,
    predicate: BoundExpression,
    path: FieldPath,
    value_type: pa.DataType,
    indices: tuple[IndexMetadata, ...],
    num_rows: Mapping[int, int],
) -> Iterator[IndexedRows]:
    """Ask the indices of a column.

    Parameters
    ----------
    table : TableVersion
    predicate : BoundExpression
        The filter.
    path, value_type
        The column and its type.
    indices : tuple of IndexMetadata
        See `names_rows`.
    num_rows : mapping of int to int
        Number of physical rows by fragment id, of the fragments of interest.

    Raises
    ------
    CorruptFileError
        If the file of an index is malformed.
    DatasetNotFoundError
        If it is missing.
    """
    terms = tuple(term for term in conjuncts(predicate.expression) if columns_of(term) == (path,))
    for index in indices if terms else ():
        covered = np.array([number for number in index.covered_ids().tolist() if number in num_rows], np.int64)
        most = max(int(_MOST_SHARE * sum(num_rows[number] for number in covered.tolist())), _MOST_ROWS)
        term = BoundExpression(conjunction(terms), pa.bool_(), (path,))
        ids = _ask(table, index, Question(term, path, value_type, most)) if covered.size else None
        if ids is not None:
            yield _placed(table, index, ids, covered, num_rows)


def _ask(table: TableVersion, index: IndexMetadata, question: Question) -> RowIds | None:
    reused = any(other.name == FRAGMENT_REUSE_INDEX for other in table.manifest.indices)
    try:
        return None if reused else _FINDERS[kind_of(index)](table, index, question)
    except (NotSupportedError, UnusableError) as error:
        _LOGGER.info("index %r is not used: %s", index.name, error)
        return None
    except CorruptFileError as error:
        raise error.retold(f"index {index.name!r}: {error.what}") from error


def _placed(
    table: TableVersion,
    index: IndexMetadata,
    ids: RowIds,
    covered: npt.NDArray[np.int64],
    num_rows: Mapping[int, int],
) -> IndexedRows:
    """Find the rows of ids in the fragments that an index covers; it may name others, which are gone or moved."""
    if table.manifest.stable_row_ids:
        fragment_ids, offsets = find_row_ids(table, ids)
    else:
        fragment_ids = (ids >> np.uint64(32)).astype(np.int64)
        offsets = (ids & np.uint64(2**32 - 1)).astype(np.int64)
    mine = np.isin(fragment_ids, covered)
    order = np.lexsort((offsets[mine], fragment_ids[mine]))
    fragment_ids, offsets = fragment_ids[mine][order], offsets[mine][order]
    found = distinct(fragment_ids)
    bounds = np.searchsorted(fragment_ids, [*found.tolist(), 2**63 - 1])
    ranges = {}
    for number, start, stop in zip(found.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if int(offsets[stop - 1]) >= num_rows[number]:
            raise CorruptFileError(
                f"index {index.name!r} names row {offsets[stop - 1]} of fragment {number}, which has"
                f" {num_rows[number]}; drop the index and make it again",
                path=table.uri,
            )
        ranges[number] = RowRanges.of_rows(offsets[start:stop])
    return IndexedRows(index, np.setdiff1d(covered, found), ranges)
