"""Finding versions in a listing of thousands of names without parsing each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lance_format.errors import CorruptFileError
from lance_format.table.format.layout import ManifestNaming, parse_manifest_name

_LENGTH_OF_V2 = len("18446744073709551614.manifest")


class ManifestNames(Mapping[int, str]):
    """The manifest file of each version, by ascending version.

    Names of scheme V2 have one length, and the first of them is that of the latest version. The others are parsed when
    another version is looked up.

    Parameters
    ----------
    listed : sequence of str
        The files of a versions directory, in any order.

    Raises
    ------
    CorruptFileError
        If the two schemes of names are mixed.
    """

    __slots__ = ("_latest_name", "_listed", "_parsed", "latest", "naming")

    latest: int
    """The latest version; 0 if there is none."""

    naming: ManifestNaming
    """The naming scheme."""

    def __init__(self, listed: Sequence[str]) -> None:
        self._listed = listed
        self._parsed: dict[int, str] | None = None
        known = [name for name in listed if len(name) == _LENGTH_OF_V2]
        name = min(known, default="")
        first = parse_manifest_name(name)
        others = [name for name in listed if len(name) != _LENGTH_OF_V2] if len(known) < len(listed) else []
        if first is not None and first[1] is ManifestNaming.V2 and not any(map(parse_manifest_name, others)):
            (self.latest, self.naming), self._latest_name = first, name
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
        if version > self.latest:
            raise KeyError(version)
        return self._all()[version]

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[int, str]:
        if self._parsed is None:
            found = ((parsed[0], name) for name in self._listed if (parsed := parse_manifest_name(name)) is not None)
            self._parsed = dict(sorted(found))
        return self._parsed
