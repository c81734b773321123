"""File format versions: names, aliases, numbers on disk, and the permitted content of each.

No other module compares versions: the differences between them are fields of `FileVersion`.
"""

from __future__ import annotations

import enum
from typing import Any

from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Profile:
    name: str
    footer: tuple[int, int]
    manifest: tuple[int, int]
    readable: bool = False
    writable: bool = False
    obstacle: str = ""
    array_encodings: bool = False
    page_table: bool = False
    large_chunks: bool = False
    inline_constants: bool = False
    maps: bool = False
    blob_extension: bool = False
    compressed_dictionaries: bool = False
    compressed_null_levels: bool = False
    run_length_levels: bool = False


_UNSTABLE = (
    "the reference implementation declares it unstable and may change it without notice, and its pages are messages of"
    " their own ('PlanarLayout') that no document describes"
)
_SINCE_2_2: dict[str, Any] = {
    "large_chunks": True,
    "inline_constants": True,
    "maps": True,
    "blob_extension": True,
    "compressed_dictionaries": True,
    "compressed_null_levels": True,
    "run_length_levels": True,
}


class FileVersion(enum.Enum):
    """A version of the file format, and the profile of its files."""

    V0_1 = _Profile("0.1", (0, 2), (0, 2), readable=True, array_encodings=True, page_table=True)
    V2_0 = _Profile("2.0", (0, 3), (2, 0), readable=True, writable=True, array_encodings=True)
    V2_1 = _Profile("2.1", (2, 1), (2, 1), readable=True, writable=True)
    V2_2 = _Profile("2.2", (2, 2), (2, 2), readable=True, writable=True, **_SINCE_2_2)
    V2_3 = _Profile("2.3", (2, 3), (2, 3), obstacle=_UNSTABLE, **_SINCE_2_2)

    def __str__(self) -> str:
        return self.value.name

    @property
    def footer_numbers(self) -> tuple[int, int]:
        """Major and minor number in a file's footer."""
        return self.value.footer

    @property
    def manifest_numbers(self) -> tuple[int, int]:
        """Major and minor number in a manifest's data files."""
        return self.value.manifest

    @property
    def has_array_encodings(self) -> bool:
        """True if pages are array encodings, and lists and structs are columns too, instead of leaves and layouts."""
        return self.value.array_encodings

    @property
    def has_page_table(self) -> bool:
        """True if pages are listed in one table, and do not describe themselves."""
        return self.value.page_table

    @property
    def has_levels(self) -> bool:
        """True if pages have layouts, whose levels encode the layers above values, as from 2.1 on."""
        return not (self.has_page_table or self.has_array_encodings)

    @property
    def has_large_chunks(self) -> bool:
        """True if mini-block chunk words and buffer sizes are 32 bits wide instead of 16."""
        return self.value.large_chunks

    @property
    def has_constant_values(self) -> bool:
        """True if a constant page may hold a value, instead of nulls only."""
        return self.value.inline_constants

    @property
    def has_maps(self) -> bool:
        """True if files may hold maps, fixed-size lists of structs, and packed structs with strings."""
        return self.value.maps

    @property
    def has_compressed_dictionaries(self) -> bool:
        """True if the dictionary of a page may be compressed by zstd or LZ4."""
        return self.value.compressed_dictionaries

    @property
    def has_compressed_null_levels(self) -> bool:
        """True if the levels of a page of nulls may be compressed."""
        return self.value.compressed_null_levels

    @property
    def has_run_length_levels(self) -> bool:
        """True if levels may be run-length encoded."""
        return self.value.run_length_levels

    @property
    def has_blob_extension(self) -> bool:
        """True if tables have an extension type for blobs, instead of byte strings that are marked."""
        return self.value.blob_extension

    @classmethod
    def parse(cls, text: str) -> FileVersion:
        """Resolve a version or alias, in any case, as pylance does.

        Raises
        ------
        InvalidInputError
            If there is no such version.
        """
        version = _NAMES.get(text.strip().lower()) if isinstance(text, str) else None
        if version is None:
            raise InvalidInputError(f"unknown file format version {text!r}; use one of {', '.join(sorted(_NAMES))}")
        return version

    @property
    def all_manifest_numbers(self) -> tuple[tuple[int, int], ...]:
        """Major and minor numbers of data files of this version in manifests of all releases."""
        return tuple(numbers for numbers, version in _MANIFESTS.items() if version is self)

    @classmethod
    def from_manifest(cls, major: int, minor: int) -> FileVersion | None:
        """Return the version of a data file with these numbers in a manifest, or None."""
        return _MANIFESTS.get((major, minor))

    @classmethod
    def from_footer(cls, major: int, minor: int) -> FileVersion | None:
        """Return the version whose files end with these numbers, or None."""
        return _FOOTERS.get((major, minor))

    def require_readable(self, what: str) -> None:
        """Raise `NotSupportedError` unless files of this version can be read."""
        if not self.value.readable:
            reason = self.value.obstacle and f": {self.value.obstacle}"
            raise NotSupportedError(f"{what} has file format version {self}, which cannot be read{reason or ' yet'}")

    def require_writable(self) -> None:
        """Raise `NotSupportedError` unless files of this version can be written."""
        if not self.value.writable:
            supported = ", ".join(str(version) for version in FileVersion if version.value.writable)
            reason = self.value.obstacle and f": {self.value.obstacle}"
            way_out = f"; {WAY_OUT_OF_0_1}" if self.has_page_table else ""
            raise NotSupportedError(
                f"writing file format version {self} is not supported{reason}; use one of {supported}{way_out}"
            )

    def require_changeable(self) -> None:
        """Raise `NotSupportedError` unless rows and columns of tables with files of this version can be changed.

        Files of format 0.1 are written for such changes, but not for new tables or new rows.
        """
        if not self.has_page_table:
            self.require_writable()


STABLE = FileVersion.V2_2
WAY_OUT_OF_0_1 = (
    'optimize.compact_files(data_storage_version="2.2") takes a table of format 0.1 to a newer one, and so does'
    ' overwriting it with data_storage_version="2.2"'
)
"""Remedy for a table that cannot be changed as requested because its files are of format 0.1."""
NEXT = FileVersion.V2_3

_NAMES: dict[str, FileVersion] = {
    **{str(version): version for version in FileVersion},
    "0.3": FileVersion.V2_0,
    "legacy": FileVersion.V0_1,
    "stable": STABLE,
    "next": NEXT,
}
_MANIFESTS: dict[tuple[int, int], FileVersion] = {
    **{version.manifest_numbers: version for version in FileVersion},
    (0, 0): FileVersion.V0_1,
    (0, 1): FileVersion.V0_1,
    (0, 3): FileVersion.V2_0,
}
_FOOTERS: dict[tuple[int, int], FileVersion] = {
    **{version.footer_numbers: version for version in FileVersion},
    (0, 1): FileVersion.V0_1,
    (2, 0): FileVersion.V2_0,
}
