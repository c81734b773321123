"""The places of rows of a version, by their ids or their addresses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.datatypes import Schema
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import distinct
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.row_columns import row_ids_of
from lance_format.table.row_ids.index import RowIdIndex, split_addresses
from lance_format.table.versions.table_version import TableVersion

FindRows: TypeAlias = Callable[[npt.NDArray[np.uint64]], tuple[RowOffsets, RowOffsets]]


@dataclass(frozen=True, slots=True, eq=False)
class _KnownIds:
    """The rows of all stable ids of a version.

    Parameters
    ----------
    fragments : FragmentList
        Of the version.
    index : RowIdIndex
    """

    fragments: FragmentList
    index: RowIdIndex


def find_row_ids(table: TableVersion, row_ids: npt.NDArray[np.uint64]) -> tuple[RowOffsets, RowOffsets]:
    """Return the fragment ids of rows and their offsets there; -1 for ids of rows that do not exist.

    Parameters
    ----------
    table : TableVersion
    row_ids : uint64[num_rows]
    """
    return row_finder(table)(row_ids)


def row_finder(table: TableVersion) -> FindRows:
    """Return a function that finds rows by their ids; see `find_row_ids`. The ids of all rows are read once, cached."""
    if not table.manifest.stable_row_ids:
        return functools.partial(find_addresses, table)
    key, fragments = (table.root, "row ids"), table.manifest.fragments
    cached = table.cache.get(key)
    if isinstance(cached, _KnownIds) and cached.fragments is fragments:
        return cached.index.find
    nothing = Schema(())
    scans = [table.scan(fragment, nothing) for fragment in fragments]
    known = ((scan.fragment.id, ids, scan.deleted_rows()) for scan in scans if (ids := row_ids_of(scan)) is not None)
    index = RowIdIndex(known)
    table.cache.put(key, _KnownIds(fragments, index), index.size_bytes)
    return index.find


def find_addresses(table: TableVersion, addresses: npt.NDArray[np.uint64]) -> tuple[RowOffsets, RowOffsets]:
    """Return the fragment ids of rows and their offsets there; -1 for addresses of rows that do not exist.

    Parameters
    ----------
    table : TableVersion
    addresses : uint64[num_rows]
        `fragment << 32 | offset in its files`.
    """
    fragment_ids, offsets = split_addresses(addresses)
    for fragment_id in distinct(fragment_ids):
        mine = fragment_ids == fragment_id
        fragment = table.manifest.fragment(int(fragment_id))
        gone = np.ones(int(mine.sum()), np.bool_)
        if fragment is not None:
            scan = table.scan(fragment, Schema(()))
            gone = (offsets[mine] >= scan.physical_rows()) | np.isin(offsets[mine], scan.deleted_rows())
        fragment_ids[np.flatnonzero(mine)[gone]] = -1
    return fragment_ids, np.where(fragment_ids < 0, -1, offsets)
