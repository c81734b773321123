"""Sets of rows of a table, gathered while a change is planned: the rows that it replaces or deletes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import numpy as np
import pyroaring

from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import run_together
from lance_format.row_numbers import distinct, from_bitmap, to_bitmap
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.deletion_file import RowOffsets, write_deleted_rows
from lance_format.table.fragments.row_columns import LiveRows, created_at_of, row_ids_of
from lance_format.table.row_ids.row_id_sequence import RowIdSequence, serialize_row_ids
from lance_format.table.row_ids.row_version_sequence import RowVersionSequence, serialize_row_versions
from lance_format.table.versions.table_version import Draft


@dataclass(slots=True)
class RowSet:
    """Some rows of a table, by fragment; at most a few bytes per row."""

    _offsets: dict[int, pyroaring.BitMap] = field(default_factory=dict)

    def add(self, rows: LiveRows) -> None:
        """Add rows."""
        known = self._offsets.setdefault(rows.scan.fragment.id, pyroaring.BitMap())
        known |= to_bitmap(rows.offsets)

    def add_offsets(self, fragment_id: int, offsets: pyroaring.BitMap) -> int:
        """Add rows of a fragment by offset, and return the number of new ones."""
        known = self._offsets.setdefault(fragment_id, pyroaring.BitMap())
        before = len(known)
        known |= offsets
        return len(known) - before

    def bitmaps(self) -> Iterator[tuple[int, pyroaring.BitMap]]:
        """Yield the fragments of the rows, and the offsets of the rows there."""
        yield from self._offsets.items()

    def update(self, other: RowSet) -> None:
        """Add the rows of another set."""
        for fragment_id, offsets in other._offsets.items():
            known = self._offsets.setdefault(fragment_id, pyroaring.BitMap())
            known |= offsets

    def __len__(self) -> int:
        return sum(len(offsets) for offsets in self._offsets.values())

    def offsets(self, fragment_id: int) -> RowOffsets:
        """Return the offsets of the rows in a fragment, ascending."""
        return from_bitmap(self._offsets.get(fragment_id, pyroaring.BitMap()))

    def fragment_ids(self) -> Iterator[int]:
        """Yield the fragments of the rows."""
        yield from self._offsets


@dataclass(frozen=True, slots=True)
class MarkedRows:
    """Fragments whose rows were marked as deleted.

    Parameters
    ----------
    updated : tuple of FragmentMetadata
        Fragments with new deletion files.
    emptied : frozenset of int
        The ids of fragments without live rows.
    """

    updated: tuple[FragmentMetadata, ...]
    emptied: frozenset[int]


def mark_deleted(draft: Draft, rows: RowSet) -> MarkedRows:
    """Write deletion files for live rows of a table, those of several fragments side by side.

    Parameters
    ----------
    draft : Draft
        The deletion files are added to it.
    rows : RowSet
    """
    table = draft.table
    found = [table.manifest.fragment(fragment_id) for fragment_id in sorted(rows.fragment_ids())]

    def mark(fragment: FragmentMetadata) -> FragmentMetadata | None:
        scan = table.scan(fragment, table.manifest.schema.select([]))
        deleted = distinct(np.concatenate([scan.deleted_rows(), rows.offsets(fragment.id)]))
        if deleted.size == scan.physical_rows():
            return None
        version = table.manifest.version
        file = write_deleted_rows(table.directory, fragment, deleted, read_version=version, paths=draft.paths)
        return dataclasses.replace(fragment, deletion_file=file, physical_rows=scan.physical_rows())

    present = [fragment for fragment in found if fragment is not None]
    marked = run_together(table.store, [functools.partial(mark, fragment) for fragment in present])
    emptied = (fragment.id for fragment, left in zip(present, marked, strict=True) if left is None)
    return MarkedRows(tuple(left for left in marked if left is not None), frozenset(emptied))


@dataclass(slots=True)
class MovedRows:
    """Ids and versions that rewritten rows keep in a table with stable row ids."""

    _ids: list[RowIdSequence] = field(default_factory=list)
    _created_at: list[RowVersionSequence] = field(default_factory=list)

    def add(self, rows: LiveRows) -> None:
        """Add rows in the order of writing."""
        ids = row_ids_of(rows.scan)
        if ids is None:
            return
        made = created_at_of(rows.scan)
        self._ids.append(ids.select(rows.offsets))
        self._created_at.append(
            RowVersionSequence.constant(1, rows.offsets.size) if made is None else made.select(rows.offsets)
        )

    def add_named(self, ids: RowIdSequence, created_at: RowVersionSequence) -> None:
        """Add rows by their ids and the versions that made them, in the order of writing."""
        self._ids.append(ids)
        self._created_at.append(created_at)

    def name(self, fragments: Sequence[FragmentMetadata]) -> list[FragmentMetadata]:
        """Return the written fragments with the ids of the rows that moved there.

        Parameters
        ----------
        fragments : sequence of FragmentMetadata
            The moved rows come first in them, in the order of their addition.
        """
        ids, made = RowIdSequence.concatenate(self._ids), RowVersionSequence.concatenate(self._created_at)
        named = []
        row = 0
        for fragment in fragments:
            stop = min(row + fragment.physical_rows, len(ids))
            if stop > row:
                fragment = dataclasses.replace(
                    fragment,
                    row_id_meta=serialize_row_ids(ids.slice(row, stop)),
                    created_at_version_meta=serialize_row_versions(made.slice(row, stop)),
                )
            named.append(fragment)
            row = stop
        return named


def gather(rows: Iterable[LiveRows]) -> RowSet:
    """Return rows as a set."""
    found = RowSet()
    for some in rows:
        found.add(some)
    return found
