"""The places of rows of a version, by their ids or their addresses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Set
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.datatypes import Schema
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import positions_by_value
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.reader import load_deleted_rows
from lance_format.table.fragments.row_columns import row_ids_of
from lance_format.table.row_ids.index import RowIdIndex, sharing_ids, split_addresses
from lance_format.table.versions.table_version import TableVersion

_NO_ROWS = np.zeros(0, np.int64)

FindRows: TypeAlias = Callable[[npt.NDArray[np.uint64]], tuple[RowOffsets, RowOffsets]]


@dataclass(frozen=True, slots=True, eq=False)
class _KnownIds:
    """The rows of all stable ids of a version.

    Parameters
    ----------
    fragments : FragmentList
        Of the version.
    index : RowIdIndex
    unread : frozenset of int
        The ids of fragments whose deleted rows are still in the index.
    """

    fragments: FragmentList
    index: RowIdIndex
    unread: frozenset[int]

    @classmethod
    def of(cls, table: TableVersion) -> _KnownIds:
        """Read the ids of all rows. Of deleted rows only those are read that may have been moved."""
        scans = [table.scan(fragment, Schema(())) for fragment in table.manifest.fragments]
        known = [(scan, ids.runs()) for scan in scans if (ids := row_ids_of(scan)) is not None]
        shared = sharing_ids([ids for _, ids in known])
        load_deleted_rows(known[position][0] for position in shared)
        index = RowIdIndex(
            [
                (scan.fragment.id, ids, scan.deleted_rows() if position in shared else _NO_ROWS)
                for position, (scan, ids) in enumerate(known)
            ]
        )
        rest = (scan.fragment for position, (scan, _) in enumerate(known) if position not in shared)
        unread = frozenset(fragment.id for fragment in rest if fragment.deletion_file is not None)
        return cls(table.manifest.fragments, index, unread)

    def find(self, table: TableVersion, row_ids: npt.NDArray[np.uint64]) -> tuple[RowOffsets, RowOffsets]:
        """See `find_row_ids`."""
        return _without_deleted(table, *self.index.find(row_ids), among=self.unread)


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
    if not isinstance(cached, _KnownIds) or cached.fragments is not fragments:
        cached = _KnownIds.of(table)
        table.cache.put(key, cached, cached.index.size_bytes)
    return functools.partial(cached.find, table)


def find_addresses(table: TableVersion, addresses: npt.NDArray[np.uint64]) -> tuple[RowOffsets, RowOffsets]:
    """Return the fragment ids of rows and their offsets there; -1 for addresses of rows that do not exist.

    Parameters
    ----------
    table : TableVersion
    addresses : uint64[num_rows]
        `fragment << 32 | offset in its files`.
    """
    fragment_ids, offsets = split_addresses(addresses)
    for number, mine in positions_by_value(fragment_ids):
        fragment = table.manifest.fragment(number)
        num_rows = 0 if fragment is None else table.scan(fragment, Schema(())).physical_rows()
        fragment_ids[mine[offsets[mine] >= num_rows]] = -1
    return _without_deleted(table, fragment_ids, offsets)


def _without_deleted(
    table: TableVersion, fragment_ids: RowOffsets, offsets: RowOffsets, *, among: Set[int] | None = None
) -> tuple[RowOffsets, RowOffsets]:
    """Replace the fragment ids and offsets of deleted rows by -1, of all fragments or of some, given by id."""
    groups = []
    for number, mine in positions_by_value(fragment_ids):
        fragment = table.manifest.fragment(number) if among is None or number in among else None
        if fragment is not None:
            groups.append((table.scan(fragment, Schema(())), mine))
    load_deleted_rows(scan for scan, _ in groups)
    for scan, mine in groups:
        fragment_ids[mine[np.isin(offsets[mine], scan.deleted_rows())]] = -1
    return fragment_ids, np.where(fragment_ids < 0, -1, offsets)
