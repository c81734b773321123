"""Rows that one version inserted, updated and deleted, found by comparing it with the version before it.

Fragments that both versions have in the very same form are skipped, and no values are read. A fragment with the same id
and rows in both versions changed by its deletion file (rows are gone, or back) or by its data files (values were
replaced in place). All rows of other fragments are gone, or new. With stable row ids, a row that is gone here and new
there is the same row if its id is the same: it was updated if the version of its last update differs, and moved if not.
A restore also undoes updates that no row records (`Undone`). Without stable row ids an updated row is deleted and
inserted. A rewrite only moves rows.

Memory is needed for the rows that one version both removed and added, about 50 bytes each. Pure inserts and deletes
need a bitmap per fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import field
from types import NoneType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyroaring

from lance_format.datatypes import Schema
from lance_format.errors import NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import distinct, to_bitmap
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import created_at_of, last_updated_at_of, row_ids_of
from lance_format.table.transaction.operations import (
    DataReplacement,
    Delete,
    Merge,
    Operation,
    OtherOperation,
    Overwrite,
    Restore,
    Rewrite,
    Update,
)
from lance_format.table.versions.table_version import TableVersion

INSERT, DELETE, PREIMAGE, POSTIMAGE = "insert", "delete", "update_preimage", "update_postimage"

_SAME_ROWS = (Update, DataReplacement, Merge, Delete)
"""Operations after which a fragment of the same id has the same rows, whatever its data files are."""
_ORDER = (DELETE, PREIMAGE, POSTIMAGE, INSERT)
_MAX_CHANGE_ROWS = 1 << 20
_KnownOperation: TypeAlias = Operation | OtherOperation | None
_Numbers: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RowChange:
    """Rows of one fragment that a version changed in the same way.

    Parameters
    ----------
    kind : {"insert", "delete", "update_preimage", "update_postimage"}
        An update has two changes: the values before and after it.
    version : int
        The version that has the values: the changing one, or the one before it.
    fragment_id : int
        The fragment of that version that has the rows.
    num_rows : int
    offsets : bytes, optional
        The offsets of the rows in the fragment, as a portable Roaring bitmap. None for all live rows.
    """

    kind: str
    version: int
    fragment_id: int
    num_rows: int
    offsets: bytes | None = None

    def rows(self) -> RowOffsets | None:
        """Return the offsets of the rows, ascending, `int64[num_rows]`, or None for all live rows."""
        if self.offsets is None:
            return None
        return np.array(pyroaring.BitMap.deserialize(self.offsets), np.int64)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a fragment of one version; all live ones if `offsets` is None."""

    scan: FragmentReader
    offsets: RowOffsets | None = None

    @property
    def is_empty(self) -> bool:
        """True if it is known that there are no rows."""
        return self.offsets is not None and not self.offsets.size

    def known(self) -> RowOffsets:
        """Return the offsets of the rows."""
        if self.offsets is not None:
            return self.offsets
        return _live(self.scan, self.scan.deleted_rows())


@dataclass(frozen=True, slots=True)
class ComparedFields:
    """The fields whose values are compared. A field in only one of the sets counts as absent from the other version.

    Parameters
    ----------
    before, after : frozenset of int
        Field ids in the earlier and in the later version.
    """

    before: frozenset[int]
    after: frozenset[int]

    @classmethod
    def of(
        cls, before: Schema, after: Schema, columns: Sequence[str] | None, dropped: Set[int], *, with_new: bool
    ) -> ComparedFields:
        """Return the fields of some columns.

        Parameters
        ----------
        before, after : Schema
        columns : sequence of str, optional
            Names of columns of the later version, by default all.
        dropped : set of int
            Ids of fields of the earlier version that the later one lacks. Their values before update all rows.
        with_new : bool
            Whether to include fields that the earlier version lacks. Values of an added column then update all rows.
        """
        now = _field_ids(after, columns)
        known = now & _field_ids(before)
        return cls(known | dropped, now if with_new else known)


def _field_ids(schema: Schema, columns: Sequence[str] | None = None) -> frozenset[int]:
    chosen = schema.fields if columns is None else [field for field in schema.fields if field.name in columns]
    return frozenset(node.id for field in chosen for node in field.walk())


@dataclass(frozen=True, slots=True, eq=False)
class Undone:
    """Changes of versions that a restore undoes, as far as the lineage of rows does not tell them.

    Parameters
    ----------
    row_ids : ndarray of uint64
        Ids of rows whose values were replaced in place while the version of their last update stayed.
    field_ids : frozenset of int
        Ids of fields that one of the versions lacks. A later field of such an id may be another one.
    """

    row_ids: _Numbers
    field_ids: frozenset[int]


def find_unrecorded_updates(
    before: TableVersion, after: TableVersion, operation: _KnownOperation, fields: Set[int]
) -> list[_Numbers]:
    """Find rows whose values a version replaced in place, in fragments where it is the last update of no row.

    Parameters
    ----------
    before, after : TableVersion
        Two successive versions of a table with stable row ids.
    operation : Operation or OtherOperation, optional
        The operation that made the later one, if it is known.
    fields : set of int
        Ids of the fields whose values are compared.

    Returns
    -------
    list of ndarray of uint64
        The row ids, by fragment; deleted rows too.
    """
    if not isinstance(operation, (Update, DataReplacement, Merge, OtherOperation, NoneType)):
        return []
    compared = ComparedFields(frozenset(fields), frozenset(fields))
    old = _by_id(before, after, compared)
    found = []
    for fragment_id, now in _by_id(after, before, compared).items():
        was = old.get(fragment_id)
        if was is None or not _has_same_rows(was, now, operation) or not _has_other_values(was, now, compared):
            continue
        scan, rows = _scan(after, now), np.arange(now.physical_rows)
        if np.array_equal(_updated_at(_scan(before, was), rows), _updated_at(scan, rows)):
            found.append(_ids(scan, rows))
    return found


def find_row_changes(
    before: TableVersion,
    after: TableVersion,
    operation: _KnownOperation,
    fields: ComparedFields,
    undone: Callable[[], Undone | None] | None = None,
) -> list[RowChange]:
    """Find the rows that a version changed.

    Parameters
    ----------
    before, after : TableVersion
        Two successive versions.
    operation : Operation or OtherOperation, optional
        The operation that made the later one, if it is known.
    fields : ComparedFields
    undone : callable, optional
        Returns what a restore undoes, or None if that is unknown: all rows that moved count as updated then. Called
        only if rows moved.

    Returns
    -------
    list of RowChange
        Deletes and values before updates first.

    Raises
    ------
    NotSupportedError
        If two fragments of a version have the same id.
    """
    if isinstance(operation, Rewrite):
        return []
    old, new = _by_id(before, after, fields), _by_id(after, before, fields)
    finder = _Finder(before, after, isinstance(operation, Restore), undone)
    gone, come = [], []
    for fragment_id in sorted(old.keys() | new.keys()):
        was, now = old.get(fragment_id), new.get(fragment_id)
        if was is not None and now is not None and _has_same_rows(was, now, operation):
            removed, added = finder.compare(_scan(before, was), _scan(after, now), fields)
            gone.append(removed)
            come.append(added)
            continue
        gone += [] if was is None else [_Rows(_scan(before, was))]
        come += [] if now is None else [_Rows(_scan(after, now))]
    gone, come = [rows for rows in gone if not rows.is_empty], [rows for rows in come if not rows.is_empty]
    if not gone or not come or not after.manifest.stable_row_ids or isinstance(operation, Overwrite):
        finder.add(before, DELETE, gone)
        finder.add(after, INSERT, come)
    else:
        finder.match(gone, come, fields.before ^ fields.after)
    return sorted(finder.found, key=lambda change: _ORDER.index(change.kind))


@dataclass(slots=True)
class _Finder:
    """Collector of the changes between two versions.

    Parameters
    ----------
    before, after : TableVersion
    is_restored : bool
        Whether an earlier version came back. Rows with the same id may be different rows then, created by different
        versions, and the lineage does not name rows whose values were replaced without it in between.
    found : list of RowChange
    """

    before: TableVersion
    after: TableVersion
    is_restored: bool
    undone: Callable[[], Undone | None] | None
    found: list[RowChange] = field(default_factory=list)

    def add(self, table: TableVersion, kind: str, parts: Iterable[_Rows]) -> None:
        """Note the same change of some rows."""
        version = table.manifest.version
        for rows in parts:
            fragment_id, offsets = rows.scan.fragment.id, rows.offsets
            if offsets is None:
                self.found.append(RowChange(kind, version, fragment_id, rows.scan.num_rows()))
                continue
            for start in range(0, offsets.size, _MAX_CHANGE_ROWS):
                part = offsets[start : start + _MAX_CHANGE_ROWS]
                self.found.append(RowChange(kind, version, fragment_id, part.size, to_bitmap(part).serialize()))

    def compare(self, was: FragmentReader, now: FragmentReader, fields: ComparedFields) -> tuple[_Rows, _Rows]:
        """Compare a fragment whose physical rows stayed the same.

        Returns
        -------
        tuple of _Rows and _Rows
            Rows of the earlier version that are gone, and rows of the later one that are back.
        """
        deleted_before, deleted_after = was.deleted_rows(), now.deleted_rows()
        if _has_other_values(was.fragment, now.fragment, fields):
            rows = _live(now, distinct(np.concatenate([deleted_before, deleted_after])))
            if fields.before == fields.after and not self.is_restored:
                rows = self._touched(was, now, rows)
            stable = self.after.manifest.stable_row_ids
            self.add(self.before, PREIMAGE if stable else DELETE, [_Rows(was, rows)])
            self.add(self.after, POSTIMAGE if stable else INSERT, [_Rows(now, rows)])
        gone = np.setdiff1d(deleted_after, deleted_before, assume_unique=True)
        back = np.setdiff1d(deleted_before, deleted_after, assume_unique=True)
        return _Rows(was, gone), _Rows(now, back)

    def _touched(self, was: FragmentReader, now: FragmentReader, rows: RowOffsets) -> RowOffsets:
        """Return the rows that were updated in place; all if the lineage names none."""
        changed = _updated_at(was, rows) != _updated_at(now, rows)
        return rows[changed] if changed.any() else rows

    def match(self, gone: Sequence[_Rows], come: Sequence[_Rows], lone: frozenset[int]) -> None:
        """Tell updates and moves from deletes and inserts, by stable row ids.

        A row that moved is also updated if one of its fragments has values of a field that only one version has.
        """
        old, new = _Identities.of(gone, lone), _Identities.of(come, lone)
        both, in_old, in_new = np.intersect1d(old.ids, new.ids, assume_unique=True, return_indices=True)
        is_same = np.ones(both.size, np.bool_)
        if self.is_restored:
            is_same = old.created_at[in_old] == new.created_at[in_new]
        is_updated = old.updated_at[in_old] != new.updated_at[in_new]
        is_updated |= old.has_lone[in_old] | new.has_lone[in_new]
        if self.undone is not None and (is_same & ~is_updated).any():
            undone = self.undone()
            if undone is None:
                is_updated[:] = True
            else:
                is_updated |= np.isin(both, undone.row_ids)
                is_updated |= _has_values(gone, undone.field_ids)[in_old] | _has_values(come, undone.field_ids)[in_new]
        for table, parts, kinds, places, alone, image in (
            (self.before, gone, old, in_old, DELETE, PREIMAGE),
            (self.after, come, new, in_new, INSERT, POSTIMAGE),
        ):
            codes = np.zeros(kinds.ids.size, np.int8)
            codes[places[is_same]] = np.where(is_updated[is_same], 1, 2)
            for rows, part in zip(parts, np.split(codes, kinds.ends[:-1]), strict=True):
                offsets = rows.known()
                self.add(table, alone, [_Rows(rows.scan, offsets[part == 0])])
                self.add(table, image, [_Rows(rows.scan, offsets[part == 1])])


@dataclass(frozen=True, slots=True, eq=False)
class _Identities:
    """Ids and lineage of rows of several fragments, one after the other."""

    ids: _Numbers
    created_at: _Numbers
    updated_at: _Numbers
    has_lone: npt.NDArray[np.bool_]
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[_Rows], lone: frozenset[int]) -> _Identities:
        """Read them, and whether their fragments have values of some fields."""
        offsets = [rows.known() for rows in parts]
        pairs = list(zip([rows.scan for rows in parts], offsets, strict=True))
        return cls(
            np.concatenate([_ids(scan, rows) for scan, rows in pairs]),
            np.concatenate([_created_at(scan, rows) for scan, rows in pairs]),
            np.concatenate([_updated_at(scan, rows) for scan, rows in pairs]),
            _has_values(parts, lone),
            np.cumsum([rows.size for rows in offsets]),
        )


def _has_values(parts: Sequence[_Rows], fields: frozenset[int]) -> npt.NDArray[np.bool_]:
    """Return whether the fragment of each row has values of some fields."""
    pairs = [(bool(_files_of(rows.scan.fragment, fields)), rows.known().size) for rows in parts]
    return np.concatenate([np.full(size, has) for has, size in pairs])


def _by_id(table: TableVersion, other: TableVersion, fields: ComparedFields) -> dict[int, FragmentMetadata]:
    """Return the fragments that another version does not have in the very same form, or has other values in."""
    fragments = table.manifest.fragments
    found = list(fragments.beyond(other.manifest.fragments))
    if fields.before != fields.after:  # a restored column may have been in the files all the time
        known = {fragment.id for fragment in found}
        found += [x for x in fragments if x.id not in known and _has_other_values(x, x, fields)]
    by_id = {fragment.id: fragment for fragment in found}
    if len(by_id) < len(found):
        raise NotSupportedError(
            f"version {table.manifest.version} of {table.root} lists two fragments of one id, so that its changes"
            " cannot be found; overwrite the table"
        )
    return by_id


def _scan(table: TableVersion, fragment: FragmentMetadata) -> FragmentReader:
    return table.scan(fragment, Schema(()))


def _has_same_rows(was: FragmentMetadata, now: FragmentMetadata, operation: _KnownOperation) -> bool:
    if isinstance(operation, Overwrite) or was.physical_rows != now.physical_rows:
        return False
    if isinstance(operation, _SAME_ROWS):
        return True
    return not {file.path for file in was.files}.isdisjoint(file.path for file in now.files)


def _has_other_values(was: FragmentMetadata, now: FragmentMetadata, fields: ComparedFields) -> bool:
    """Return whether a field is in another data file, or only one of the two has it."""
    return _files_of(was, fields.before) != _files_of(now, fields.after)


def _files_of(fragment: FragmentMetadata, fields: frozenset[int]) -> dict[int, str]:
    """Return the data file of each field that has one."""
    return {number: file.path for file in fragment.files for number in file.fields if number in fields}


def _live(scan: FragmentReader, deleted: RowOffsets) -> RowOffsets:
    kept = np.ones(scan.physical_rows(), np.bool_)
    kept[deleted] = False
    return np.flatnonzero(kept)


def _ids(scan: FragmentReader, rows: RowOffsets) -> _Numbers:
    sequence = row_ids_of(scan)
    return np.uint64(scan.fragment.id << 32) | rows.astype(np.uint64) if sequence is None else sequence.take(rows)


def _created_at(scan: FragmentReader, rows: RowOffsets) -> _Numbers:
    sequence = created_at_of(scan)
    return np.ones(rows.size, np.uint64) if sequence is None else sequence.take(rows)


def _updated_at(scan: FragmentReader, rows: RowOffsets) -> _Numbers:
    sequence = last_updated_at_of(scan)
    return np.ones(rows.size, np.uint64) if sequence is None else sequence.take(rows)
