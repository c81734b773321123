"""Rows that a task changes, each once, identified by their addresses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyroaring

from lance_format.errors import InvalidInputError, RepeatedRowError
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import to_bitmap
from lance_format.table.changes.rows.replaced_rows import RowSet
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import created_at_of, last_updated_at_of, row_ids_of
from lance_format.table.row_ids.index import split_addresses
from lance_format.table.versions.table_version import TableVersion

Addresses = npt.NDArray[np.uint64]
"""Addresses of rows: the fragment's id in the upper 32 bits, the offset in the fragment in the lower ones."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Ids and versions of rows in a table with stable row ids, in the order of their addresses.

    Parameters
    ----------
    ids, created_at, last_updated_at : uint64[num_rows]
    """

    ids: npt.NDArray[np.uint64]
    created_at: npt.NDArray[np.uint64]
    last_updated_at: npt.NDArray[np.uint64]


class ClaimedRows:
    """The rows that a task has changed so far.

    Parameters
    ----------
    table : TableVersion
        The version that the change was planned on.
    """

    def __init__(self, table: TableVersion) -> None:
        self._table = table
        self._scans: dict[int, tuple[FragmentReader, pyroaring.BitMap]] = {}
        self.rows = RowSet()

    def claim_again(self, addresses: Addresses) -> None:
        """Note rows as changed, some of which may have been noted before.

        Parameters
        ----------
        addresses : uint64[num_rows]
            Rows that are live in the version that the change was planned on, in any order.

        Raises
        ------
        InvalidInputError
            If there is no such row.
        """
        for fragment_id, _, offsets in _by_fragment(addresses):
            _, rows = self._live_rows(fragment_id, offsets)
            self.rows.add_offsets(fragment_id, rows)

    def claim(self, addresses: Addresses) -> Lineage:
        """Note rows as changed, and return their lineage.

        Parameters
        ----------
        addresses : uint64[num_rows]
            Live rows, in any order.

        Raises
        ------
        InvalidInputError
            If there is no such row.
        RepeatedRowError
            If it was changed before.
        """
        ids, made = np.empty(addresses.size, np.uint64), np.ones(addresses.size, np.uint64)
        changed = np.ones(addresses.size, np.uint64)
        for fragment_id, places, offsets in _by_fragment(addresses):
            scan = self._claim(fragment_id, offsets)
            row_ids, created_at, updated_at = row_ids_of(scan), created_at_of(scan), last_updated_at_of(scan)
            if row_ids is not None:
                ids[places] = row_ids.take(offsets)
            if created_at is not None:
                made[places] = created_at.take(offsets)
            changed[places] = made[places] if updated_at is None else updated_at.take(offsets)
        return Lineage(ids, made, changed)

    def _claim(self, fragment_id: int, offsets: npt.NDArray[np.int64]) -> FragmentReader:
        scan, rows = self._live_rows(fragment_id, offsets)
        if self.rows.add_offsets(fragment_id, rows) != offsets.size:
            raise RepeatedRowError(
                f"a row of fragment {fragment_id} of {self._table.root} is changed twice, so its result is ambiguous;"
                " change each row once"
            )
        return scan

    def _live_rows(self, fragment_id: int, offsets: npt.NDArray[np.int64]) -> tuple[FragmentReader, pyroaring.BitMap]:
        """Return a fragment, and rows of it after a check that they are live."""
        scan, deleted = self._scan(fragment_id)
        last, physical_rows = int(offsets.max()), scan.physical_rows()
        where = f"fragment {fragment_id} of {self._table.root}"
        if last >= physical_rows:
            raise InvalidInputError(f"there is no row {last} in {where}, which has {physical_rows}")
        rows = to_bitmap(offsets)
        if rows.intersect(deleted):
            raise InvalidInputError(f"row {(rows & deleted)[0]} of {where} is deleted already")
        return scan, rows

    def _scan(self, fragment_id: int) -> tuple[FragmentReader, pyroaring.BitMap]:
        """Return a fragment and its deleted rows; both are looked up once."""
        if fragment_id not in self._scans:
            manifest = self._table.manifest
            fragment = manifest.fragment(fragment_id)
            if fragment is None:
                raise InvalidInputError(
                    f"version {manifest.version} of {self._table.root} has no fragment {fragment_id}"
                )
            scan = self._table.scan(fragment, manifest.schema.select([]))
            self._scans[fragment_id] = scan, to_bitmap(scan.deleted_rows())
        return self._scans[fragment_id]


def _by_fragment(addresses: Addresses) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield per fragment of the rows: its id, positions among the addresses, and offsets in the fragment."""
    fragment_ids, offsets = split_addresses(addresses)
    order = np.argsort(fragment_ids, kind="stable")
    starts = np.flatnonzero(np.diff(fragment_ids[order], prepend=-1))
    for places in np.split(order, starts[1:]):
        if places.size:
            yield int(fragment_ids[places[0]]), places, offsets[places]
