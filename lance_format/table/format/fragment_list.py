"""The fragments of a version, parsed on demand."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import compress, count
from typing import TypeAlias, overload

import numpy as np

from lance_format.errors import CorruptFileError
from lance_format.table.format.fragment import FragmentMetadata, load_fragment, serialize_fragment
from lance_format.table.format.fragment_arrays import FragmentColumns, columns_of, scan_fragments
from lance_format.table.format.protobuf_scan import Integers

_FEW = 64  # Fragments that are parsed sooner than scanned.
_ID_BITS = 32
_Entry: TypeAlias = bytes | FragmentMetadata


class FragmentList(Sequence[FragmentMetadata]):
    """An immutable sequence of fragments that creates objects on access.

    Other fragments stay bytes of a manifest, even in derived lists.

    Parameters
    ----------
    fragments : iterable of FragmentMetadata
    """

    __slots__ = ("_columns", "_entries")

    def __init__(self, fragments: Iterable[FragmentMetadata] = ()) -> None:
        self._entries: list[_Entry] = list(fragments)
        self._columns: FragmentColumns | None = None

    @classmethod
    def of(cls, fragments: Iterable[FragmentMetadata]) -> FragmentList:
        """Return fragments as a list; themselves, if they are one."""
        return fragments if isinstance(fragments, FragmentList) else cls(fragments)

    @classmethod
    def parse(cls, stored: Sequence[bytes], known: FragmentList | None = None) -> FragmentList:
        """Return the fragments of a manifest.

        Parameters
        ----------
        stored : sequence of bytes
            The protobuf of each.
        known : FragmentList, optional
            Fragments parsed before, those of a near version as a rule: the ones at the start and the end that both have
            are taken over.

        Raises
        ------
        CorruptFileError
            If one is malformed, or two share their id and a data file.
        NotSupportedError
            If one has a file of an unknown kind.
        """
        first, last = cls(), cls()
        if known is not None:
            before = known.serialize()
            num_first = _num_alike(stored, before)
            rest, left = stored[num_first:], before[num_first:]
            num_last = _num_alike(rest[::-1], left[::-1])
            first, last = known._part(0, num_first), known._part(len(known) - num_last, len(known))
            stored = rest[: len(rest) - num_last]
        new = cls._of(list(stored), scan_fragments(stored)) if len(stored) > _FEW else cls(map(load_fragment, stored))
        made = first._followed_by(new)._followed_by(last)
        made._check_repeated()
        return made

    @classmethod
    def _of(cls, entries: list[_Entry], columns: FragmentColumns) -> FragmentList:
        made = cls()
        made._entries, made._columns = entries, columns
        return made

    def _part(self, start: int, stop: int) -> FragmentList:
        if stop - start in (0, len(self)):
            return self if stop > start else FragmentList()
        return self._of(self._entries[start:stop], self.columns.select(slice(start, stop)))

    def _followed_by(self, others: FragmentList) -> FragmentList:
        if not len(self) or not len(others):
            return self if len(self) else others
        columns = FragmentColumns.concatenate([self.columns, others.columns])
        return self._of([*self._entries, *others._entries], columns)

    @property
    def columns(self) -> FragmentColumns:
        """Properties of all fragments, as arrays."""
        if self._columns is None:
            self._columns = columns_of(self)
        return self._columns

    @property
    def ids(self) -> frozenset[int]:
        """The ids of all fragments."""
        return frozenset(self.columns.ids.tolist())

    def _check_repeated(self) -> None:
        repeated, seen = self.repeated_ids, set()
        for position in np.flatnonzero(np.isin(self.columns.ids, _as_ids(repeated))).tolist() if repeated else ():
            for file in self[position].files:
                key = (self[position].id, file.base_id, file.path)
                if key in seen:
                    raise CorruptFileError(f"fragment {key[0]} is listed twice, with the data file {file.path}")
                seen.add(key)

    @property
    def repeated_ids(self) -> frozenset[int]:
        """The ids that several fragments have, which writers of early releases let happen."""
        ids = np.sort(self.columns.ids)
        return frozenset(ids[1:][ids[1:] == ids[:-1]].tolist())

    @property
    def numbers(self) -> Integers:
        """The ids, made unique: each fragment has 2**32 more than the last of its id: int64[num_fragments]."""
        numbers, repeated = self.columns.ids, self.repeated_ids
        if not repeated:
            return numbers
        numbers = numbers.copy()
        for fragment_id in repeated:
            positions = np.flatnonzero(numbers == fragment_id)
            numbers[positions] += np.arange(positions.size) << _ID_BITS
        return numbers

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, position: int) -> FragmentMetadata: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[FragmentMetadata, ...]: ...

    def __getitem__(self, position: int | slice) -> FragmentMetadata | tuple[FragmentMetadata, ...]:
        if isinstance(position, slice):
            return tuple(self[each] for each in range(len(self))[position])
        entry = self._entries[position]
        if isinstance(entry, bytes):
            entry = self._entries[position] = load_fragment(entry)
        return entry

    def __iter__(self) -> Iterator[FragmentMetadata]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FragmentList | tuple):
            return len(self) == len(other) and all(mine == yours for mine, yours in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # Like a list; what it holds may be large.

    def __repr__(self) -> str:
        return f"FragmentList({list(self)!r})"

    def find(self, number: int) -> FragmentMetadata | None:
        """Return the fragment of an id, the first one if several have it, or of one of `numbers`; None for others."""
        ids = self.columns.ids
        position = int(np.searchsorted(ids, number))
        if position == ids.size or ids[position] != number:  # The ids of a foreign manifest may not ascend.
            positions = np.flatnonzero(self.numbers == number)
            if not positions.size:
                return None
            position = int(positions[0])
        return self[position]

    def beyond(self, others: FragmentList) -> Iterator[FragmentMetadata]:
        """Yield the fragments that another list does not have in the very same form."""
        known = set(others.serialize())
        for position, stored in enumerate(self.serialize()):
            if stored not in known:
                yield self[position]

    def changed(self, updated: Iterable[FragmentMetadata] = (), removed: Set[int] = frozenset()) -> FragmentList:
        """Return the fragments with some replaced, by id, and others removed.

        Parameters
        ----------
        updated : iterable of FragmentMetadata
            The replacements. Those of unknown or removed ids are ignored.
        removed : set of int
            Ids.

        Raises
        ------
        CorruptFileError
            If two fragments have one of these ids.
        """
        ids, entries = self.columns.ids, list(self._entries)
        after = {fragment.id: fragment for fragment in updated}
        ambiguous = self.repeated_ids & (after.keys() | removed)
        if ambiguous:
            raise CorruptFileError(
                f"fragment {min(ambiguous)} is listed twice, so that it can be read, but not changed; overwrite the"
                " table, or restore a version without that"
            )
        replaced = np.flatnonzero(np.isin(ids, _as_ids(after)))
        new = [after[fragment_id] for fragment_id in ids[replaced].tolist()]
        for position, fragment in zip(replaced.tolist(), new, strict=True):
            entries[position] = fragment
        columns = self.columns.replace(replaced, columns_of(new))
        if not removed:
            return FragmentList._of(entries, columns)
        kept = np.flatnonzero(~np.isin(ids, _as_ids(removed)))
        return FragmentList._of([entries[position] for position in kept.tolist()], columns.select(kept))

    def extended(self, added: Iterable[FragmentMetadata]) -> FragmentList:
        """Return the fragments with others after them."""
        return self._followed_by(FragmentList(added))

    def by_id(self) -> FragmentList:
        """Return the fragments by ascending id."""
        ids = self.columns.ids
        if (ids[1:] >= ids[:-1]).all():
            return self
        order = np.argsort(ids, kind="stable")
        return FragmentList._of([self._entries[position] for position in order.tolist()], self.columns.select(order))

    def serialize(self) -> list[bytes]:
        """Return the protobuf of each, as `parse` takes it: the very bytes it gave, unless a fragment was changed."""
        return [entry if isinstance(entry, bytes) else _serialized(entry) for entry in self._entries]


def _num_alike(mine: Sequence[bytes], yours: Sequence[bytes]) -> int:
    """Return how many items two sequences have in common at their start."""
    return next(compress(count(), map(operator.ne, mine, yours)), min(len(mine), len(yours)))


def _serialized(fragment: FragmentMetadata) -> bytes:
    return fragment.serialized or serialize_fragment(fragment).SerializeToString(deterministic=True)


def _as_ids(ids: Set[int] | Mapping[int, object]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(sorted(ids), np.int64)
