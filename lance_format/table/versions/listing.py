"""Finding versions in a listing of thousands of names without parsing each."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lance_format.errors import CorruptFileError
from lance_format.table.format.layout import ManifestNaming, parse_manifest_name

_LENGTH_OF_V2 = len("18446744073709551614.manifest")


class ManifestNames(Mapping[int, str]):
    """The manifest file of each version, by ascending version.

    Names of scheme V2 have one length, and the first of them is that of the latest version. The others are parsed when
    another version is looked up. If the listing is a beginning only, all is listed when a version is looked up that is
    not in it, and versions since are left out.

    Parameters
    ----------
    listed : sequence of str
        The files of a versions directory, in any order; all, or those of the lowest names.
    rest : callable, optional
        Lists all of them; None if `listed` has them.

    Raises
    ------
    CorruptFileError
        If the two schemes of names are mixed.
    """

    __slots__ = ("_beginning", "_latest_name", "_listed", "_parsed", "_rest", "latest", "naming")

    latest: int
    """The latest version; 0 if there is none."""

    naming: ManifestNaming
    """The naming scheme."""

    def __init__(self, listed: Sequence[str], rest: Callable[[], Sequence[str]] | None = None) -> None:
        self._rest = rest
        self._parsed: dict[int, str] | None = None
        self._beginning: dict[int, str] | None = None
        latest = _latest_by_name(listed)
        if latest is None and rest is not None:  # Names of scheme V1 are not in the order of the versions.
            listed, self._rest = rest(), None
            latest = _latest_by_name(listed)
        self._listed = listed
        if latest is not None:
            (self.latest, self.naming), self._latest_name = latest
            return
        found = [(parsed, name) for name in listed if (parsed := parse_manifest_name(name)) is not None]
        namings = {naming for (_, naming), _ in found}
        if len(namings) > 1:
            raise CorruptFileError("manifests of both naming schemes are mixed")
        self.latest, self._latest_name = max(((version, name) for (version, _), name in found), default=(0, ""))
        self.naming = namings.pop() if namings else ManifestNaming.V2

    def __bool__(self) -> bool:
        return self.latest > 0

    def __getitem__(self, version: int) -> str:
        if version == self.latest > 0:
            return self._latest_name
        if not 0 < version < self.latest:
            raise KeyError(version)
        if self._rest is None and self._parsed is None and self.naming is ManifestNaming.V2:
            name = self.naming.file_name(version)
            if name not in self._listed:
                raise KeyError(version)
            return name
        if self._rest is not None:
            if self._beginning is None:
                self._beginning = _parse(self._listed, self.latest)
            if version >= min(self._beginning):  # The listing has all from there on.
                return self._beginning[version]
        return self._all()[version]

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[int, str]:
        if self._parsed is None:
            listed = self._listed if self._rest is None else [*self._rest(), self._latest_name]
            self._parsed = _parse(listed, self.latest)
        return self._parsed


def _latest_by_name(listed: Sequence[str]) -> tuple[tuple[int, ManifestNaming], str] | None:
    """Return the latest version and its file if only names of scheme V2 are listed, else None."""
    may_be_v2 = [len(name) == _LENGTH_OF_V2 for name in listed]
    name = min(itertools.compress(listed, may_be_v2), default="")
    first = parse_manifest_name(name)
    others = itertools.compress(listed, map(operator.not_, may_be_v2))
    if first is None or first[1] is not ManifestNaming.V2 or any(map(parse_manifest_name, others)):
        return None
    return first, name


def _parse(listed: Iterable[str], latest: int) -> dict[int, str]:
    """Return the files of the versions up to the latest one, by ascending version."""
    found = ((parsed[0], name) for name in listed if (parsed := parse_manifest_name(name)) is not None)
    return dict(sorted((version, name) for version, name in found if version <= latest))
