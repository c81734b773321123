"""The places of rows of a version, by their ids or their addresses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.datatypes import Schema
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import positions_by_value
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.reader import FragmentReader, load_deleted_rows
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
    unread : dict of int to FragmentReader
        Fragments, by id, whose deleted rows are still in the index.
    """

    fragments: FragmentList
    index: RowIdIndex
    unread: dict[int, FragmentReader]

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
        rest = [scan for position, (scan, _) in enumerate(known) if position not in shared]
        return cls(
            table.manifest.fragments,
            index,
            {scan.fragment.id: scan for scan in rest if scan.fragment.deletion_file is not None},
        )

    @property
    def size_bytes(self) -> int:
        """Size in memory, once all deleted rows are read."""
        return self.index.size_bytes + 8 * int(self.fragments.columns.num_deleted_rows.clip(0).sum())

    def find(self, row_ids: npt.NDArray[np.uint64]) -> tuple[RowOffsets, RowOffsets]:
        """See `find_row_ids`."""
        fragment_ids, offsets = self.index.find(row_ids)
        return _without_deleted(fragment_ids, offsets, self.unread)


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
        return cached.find
    known = _KnownIds.of(table)
    table.cache.put(key, known, known.size_bytes)
    return known.find


def find_addresses(table: TableVersion, addresses: npt.NDArray[np.uint64]) -> tuple[RowOffsets, RowOffsets]:
    """Return the fragment ids of rows and their offsets there; -1 for addresses of rows that do not exist.

    Parameters
    ----------
    table : TableVersion
    addresses : uint64[num_rows]
        `fragment << 32 | offset in its files`.
    """
    fragment_ids, offsets = split_addresses(addresses)
    scans: dict[int, FragmentReader] = {}
    for number, mine in positions_by_value(fragment_ids):
        fragment = table.manifest.fragment(number)
        if fragment is None:
            fragment_ids[mine] = -1
            continue
        scans[number] = table.scan(fragment, Schema(()))
        fragment_ids[mine[offsets[mine] >= scans[number].physical_rows()]] = -1
    return _without_deleted(fragment_ids, offsets, scans)


def _without_deleted(
    fragment_ids: RowOffsets, offsets: RowOffsets, scans: Mapping[int, FragmentReader]
) -> tuple[RowOffsets, RowOffsets]:
    """Replace the fragment ids and offsets of deleted rows by -1, of those fragments that are given by id."""
    groups = [(scans[number], mine) for number, mine in positions_by_value(fragment_ids) if number in scans]
    load_deleted_rows(scan for scan, _ in groups)
    for scan, mine in groups:
        fragment_ids[mine[np.isin(offsets[mine], scan.deleted_rows())]] = -1
    return fragment_ids, np.where(fragment_ids < 0, -1, offsets)
