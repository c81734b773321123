"""`FieldHistory`: which fields of the versions of a branch are the same, whatever ids they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError, VersionNotFoundError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations import Merge, Overwrite, Restore
from lance_format.table.transaction.transaction import Transaction

_Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """The ids that fields of a version had in the version before it, and the version that it restored."""

    former: dict[int, int]
    restored: int | None


class FieldHistory:
    """The fields of the versions of a branch.

    Parameters
    ----------
    load : callable
        Returns the manifest of a version and the transaction that made it; raises `VersionNotFoundError`.
    """

    def __init__(self, load: Callable[[int], tuple[Manifest, Transaction | None]]) -> None:
        self._load = load
        self._steps: dict[int, _Step] = {}
        self._kept_since: dict[tuple[int, frozenset[int]], int] = {}

    def ids(self, version: int) -> list[int]:
        """Return the ids of the fields of a version, those inside of others too."""
        return [field.id for field in self._load(version)[0].schema.walk()]

    def keeps(self, version: int, later: int, ids: frozenset[int]) -> bool:
        """Return whether fields of some ids are the same in two versions that have them.

        They are not if a version in between lacks one, as a compaction may have freed its id for another, or if an
        overwrite numbered them differently. Most often a data file that both versions have tells that they are.
        Otherwise the versions in between are read.

        Parameters
        ----------
        version, later : int
        ids : frozenset of int

        Returns
        -------
        bool
            True if that is unknown, because a version in between is not there.
        """
        if self._kept_since.get((later, ids), later) <= version:
            return True
        try:
            if not self._share_files(version, later, ids):
                for step in map(self._step, range(version + 1, later + 1)):
                    is_earlier = step.restored is not None and step.restored < version
                    if is_earlier or any(step.former.get(number) != number for number in ids):
                        return False
        except VersionNotFoundError:
            return True
        self._kept_since[later, ids] = version
        return True

    def _share_files(self, version: int, later: int, ids: frozenset[int]) -> bool:
        """Return whether data files that two versions have, of the first fragment, hold the fields."""
        before, after = self._load(version)[0], self._load(later)[0]
        for fragment in before.fragments[:1]:
            found = after.fragments.find(fragment.id)
            kept = {file.path: set(file.fields) for file in (() if found is None else found.files)}
            held = {number for file in fragment.files for number in file.fields if number in kept.get(file.path, ())}
            return held.issuperset(field.id for field in before.schema.walk() if field.id in ids and not field.children)
        return False

    def former_ids(self, version: int, later: int) -> dict[int, int]:
        """Return the ids that the columns of a later version had in a version that has them.

        Casts give columns other ids, and the id of a column that was dropped may become that of another one. Overwrites
        with other columns number them from 0 again: fields of the same names are the same then.

        Parameters
        ----------
        version, later : int

        Returns
        -------
        dict of int to int
            Former ids by the later ones.

        Raises
        ------
        VersionNotFoundError
            If a version in between is not there.
        InvalidInputError
            If the later version is an earlier one.
        """
        if later < version:
            raise InvalidInputError(f"version {later} is earlier than version {version}")
        steps = {version: {number: number for number in self.ids(version)}}
        for number in range(version + 1, later + 1):
            step = self._step(number)
            if step.restored is None:
                before = steps[number - 1]
                found = {made: before[former] for made, former in step.former.items() if former in before}
            elif step.restored >= version:
                found = steps[step.restored]
            else:
                found = {old: new for new, old in self.former_ids(step.restored, version).items()}
            steps[number] = found
        return steps[later]

    def _step(self, version: int) -> _Step:
        """Read how a version came by its columns. A column that is cast keeps its place."""
        if version not in self._steps:
            transaction = self._load(version)[1]
            operation = None if transaction is None else transaction.operation
            made = self.ids(version)
            former = {number: number for number in made}
            if isinstance(operation, Merge) and version > 1:
                known = self.ids(version - 1)
                if len(known) == len(made):
                    pairs = zip(known, made, strict=True)
                    former |= {new: old for old, new in pairs if old not in made and new not in known}
            elif isinstance(operation, Overwrite) and version > 1:
                before, after = (self._load(number)[0].schema.fields for number in (version - 1, version))
                if before != after:
                    known_paths = _ids_by_path(before)
                    paths = _ids_by_path(after)
                    former = {paths[path]: known_paths[path] for path in paths.keys() & known_paths.keys()}
            restored = operation.version if isinstance(operation, Restore) else None
            self._steps[version] = _Step(former, restored)
        return self._steps[version]


def _ids_by_path(fields: Iterable[Field], above: _Path = (), kind: str = "struct") -> dict[_Path, int]:
    """Return the ids of fields by their names in structs, and by their places in lists and maps.

    Parameters
    ----------
    fields : iterable of Field
    above : tuple of str or int
        The path of the field that they are below.
    kind : str
        The logical type of that field; `entries` for the entries of a map.
    """
    found: dict[_Path, int] = {}
    for place, field in enumerate(fields):
        path = (*above, field.name if kind == "struct" else place)
        below = "entries" if kind == "map" else field.logical_type
        found |= {path: field.id, **_ids_by_path(field.children, path, below)}
    return found
