"""The files of a fragment as values: what manifests say about each, and what becomes of that as JSON."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any, Protocol

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.layout import DATA_DIRECTORY, DELETIONS_DIRECTORY
from lance_format.version import FileVersion

TOMBSTONE = -2
"""Stands for a field of a data file that another file holds since."""


class DeletionFileType(enum.StrEnum):
    """Form of the rows in a deletion file."""

    ARROW_ARRAY = "array"
    BITMAP = "bitmap"


_SUFFIXES = {DeletionFileType.ARROW_ARRAY: "arrow", DeletionFileType.BITMAP: "bin"}


def _deletion_file_type(name: Any) -> DeletionFileType:
    try:
        return DeletionFileType(name)
    except ValueError as error:
        kinds = " or ".join(repr(str(kind)) for kind in DeletionFileType)
        raise InvalidInputError(f"file_type of a deletion file is {name!r}; {kinds} is needed") from error


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """Names the file that lists the deleted rows of a fragment.

    Parameters
    ----------
    read_version, id : int
        Parts of the file's name.
    file_type : DeletionFileType
    num_deleted_rows : int
        0 if the table does not say.
    base_id : int, optional
        Where it lies, by `Manifest.bases`; in the table itself if not given.
    """

    read_version: int
    id: int
    file_type: DeletionFileType
    num_deleted_rows: int
    base_id: int | None = None

    def __post_init__(self) -> None:
        if type(self.file_type) is not DeletionFileType:  # Users give its name.
            object.__setattr__(self, "file_type", _deletion_file_type(self.file_type))

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Return the path of the file, relative to where it lies, or below a directory."""
        name = f"{fragment_id}-{self.read_version}-{self.id}.{_SUFFIXES[self.file_type]}"
        path = f"{DELETIONS_DIRECTORY}/{name}"
        return path if base_uri is None else f"{base_uri.rstrip('/')}/{path}"

    def asdict(self) -> dict[str, Any]:
        """Return its parts by their names, as JSON can hold them."""
        return {**dataclasses.asdict(self), "file_type": str(self.file_type)}

    def json(self) -> str:
        """Return it as text; see `from_json`."""
        return json.dumps(self.asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, json_data: str | bytes) -> DeletionFile:
        """Rebuild what `json` returned, here or in pylance.

        Raises
        ------
        InvalidInputError
            If it is malformed.
        """
        try:
            found = cls(**json.loads(json_data))
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInputError(f"malformed deletion file: {error}") from error
        numbers = (found.read_version, found.id, found.num_deleted_rows, found.base_id or 0)
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise InvalidInputError(f"malformed deletion file: {numbers} are no whole numbers from 0 on")
        return found


class DescribesFiles(Protocol):
    """Object that knows how a table describes a data file: a `LanceDataset`."""

    def _describe_file(self, name: str, base_id: int | None) -> DataFile: ...


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a fragment; it holds all rows of some columns.

    Parameters
    ----------
    path : str
        Within the data directory.
    fields : tuple of int
        The ids of the fields it holds; negative where a field has since been replaced. Any sequence becomes a tuple.
    column_indices : tuple of int
        For each of them its column in the file; -1 if it has none. Empty in files of format 0.1.
    file_major_version, file_minor_version : int
    file_size_bytes : int
        0 if the table does not say, as None becomes.
    base_id : int, optional
        Where it lies, by `Manifest.bases`; in the table itself if not given.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...] = ()
    file_major_version: int = 0
    file_minor_version: int = 0
    file_size_bytes: int = 0
    base_id: int | None = None

    def __post_init__(self) -> None:
        if type(self.fields) is not tuple or type(self.column_indices) is not tuple or self.file_size_bytes is None:
            given = {"fields": tuple(self.fields), "column_indices": tuple(self.column_indices or ())}
            for name, value in {**given, "file_size_bytes": self.file_size_bytes or 0}.items():
                object.__setattr__(self, name, value)  # Frozen, and users give lists.

    @staticmethod
    def create(dataset: DescribesFiles, path: str, *, base_id: int | None = None) -> DataFile:
        """Describe a file that was written into the directory `data` of a table, for `LanceOperation.DataReplacement`.

        Parameters
        ----------
        dataset : LanceDataset
        path : str
            Its name there.
        base_id : int, optional
            The directory that it lies in, if not that of the table.

        Raises
        ------
        SchemaMismatchError
            If its columns are not the table's.
        DatasetNotFoundError
            If there is no such file.
        """
        return dataset._describe_file(path, base_id)

    @property
    def exact_size_bytes(self) -> int | None:
        """Its size, or None if the table does not say it: pylance up to 7 recorded too few bytes for files of 0.1."""
        version = FileVersion.from_manifest(self.file_major_version, self.file_minor_version)
        return None if version is not None and version.has_page_table else self.file_size_bytes or None

    def field_ids(self) -> list[int]:
        """Return the fields that it holds, as `fields` has them."""
        return list(self.fields)

    @property
    def is_dead(self) -> bool:
        """True if every field that the file holds has since been replaced."""
        return 0 < len(self.fields) == self.fields.count(TOMBSTONE)

    @property
    def relative_path(self) -> str:
        """The path of the file, relative to where it lies."""
        return f"{DATA_DIRECTORY}/{self.path}"


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A part of a file that several fragments share.

    Parameters
    ----------
    path : str
        Relative to the table.
    offset, size : int
        In bytes.
    """

    path: str
    offset: int
    size: int
