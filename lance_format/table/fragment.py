"""Fragments of a table and their files, as values, and how manifests and messages spell them."""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.proto import table_pb2
from lance_format.table.naming import DATA_DIRECTORY, DELETIONS_DIRECTORY, check_segment

_MAX_ROWS = 2**32  # A row's address has 32 bits for its place in the fragment.


class DeletionFileType(enum.Enum):
    """How a deletion file lists rows, and its suffix."""

    ARROW_ARRAY = "arrow"
    BITMAP = "bin"


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """Names the file that lists the deleted rows of a fragment.

    Parameters
    ----------
    file_type : DeletionFileType
    read_version, id : int
        Parts of the file's name.
    num_deleted_rows : int
        0 if the table does not say.
    """

    file_type: DeletionFileType
    read_version: int
    id: int
    num_deleted_rows: int

    def path(self, fragment_id: int) -> str:
        """Return the path of the file, relative to the table."""
        return f"{DELETIONS_DIRECTORY}/{fragment_id}-{self.read_version}-{self.id}.{self.file_type.value}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a fragment; it holds all rows of some columns.

    Parameters
    ----------
    name : str
        Within the data directory.
    fields : tuple of int
        The ids of the fields it holds; negative where a field has since been replaced.
    column_indices : tuple of int
        For each of them its column in the file; -1 if it has none. Empty in files of format 0.1.
    file_major_version, file_minor_version : int
    size_bytes : int
        0 if the table does not say.
    """

    name: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    file_major_version: int
    file_minor_version: int
    size_bytes: int

    @property
    def path(self) -> str:
        """The path of the file, relative to the table."""
        return f"{DATA_DIRECTORY}/{self.name}"


@dataclass(frozen=True, slots=True)
class FragmentMetadata:
    """What a manifest says about one fragment.

    Parameters
    ----------
    id : int
        0 while the fragment is not part of a table; the commit assigns it.
    files : tuple of DataFile
    physical_rows : int
        The rows in its files, deleted ones included; 0 in tables of early releases, which do not say.
    deletion_file : DeletionFile, optional
    """

    id: int
    files: tuple[DataFile, ...]
    physical_rows: int
    deletion_file: DeletionFile | None = None

    @property
    def num_rows(self) -> int | None:
        """How many rows are left; None if the table does not say."""
        deleted = 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows
        if self.physical_rows == 0 or (self.deletion_file is not None and deleted == 0):
            return None
        return self.physical_rows - deleted

    def to_json(self) -> str:
        """Return the fragment as text; see `from_json`."""
        deletion = self.deletion_file
        return json.dumps(
            {
                "id": self.id,
                "files": [
                    {
                        "path": file.name,
                        "fields": file.fields,
                        "column_indices": file.column_indices,
                        "file_major_version": file.file_major_version,
                        "file_minor_version": file.file_minor_version,
                        "file_size_bytes": file.size_bytes,
                    }
                    for file in self.files
                ],
                "physical_rows": self.physical_rows,
                "deletion_file": deletion
                and {
                    "file_type": deletion.file_type.value,
                    "read_version": deletion.read_version,
                    "id": deletion.id,
                    "num_deleted_rows": deletion.num_deleted_rows,
                },
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> FragmentMetadata:
        """Rebuild what `to_json` wrote, validated like a manifest.

        Raises
        ------
        InvalidInputError
            If the text is malformed.
        """
        try:
            message = _message_from_json(json.loads(text))
            return parse_fragment(message)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidInputError(f"malformed fragment metadata: {error}") from error


def parse_fragment(message: table_pb2.DataFragment) -> FragmentMetadata:
    """Build a fragment from its protobuf.

    Raises
    ------
    CorruptFileError
        If it contradicts itself, or names a file outside of the table's directories.
    NotSupportedError
        If its files lie elsewhere.
    """
    where = f"fragment {message.id}"
    if message.physical_rows > _MAX_ROWS:
        raise CorruptFileError(f"{where} has {message.physical_rows} rows; at most {_MAX_ROWS} are possible")
    if message.id > 2**32 - 1:
        raise CorruptFileError(f"{where}: the id does not fit 32 bits")
    if not message.files:
        raise CorruptFileError(f"{where} has no data file")
    files = tuple(_parse_data_file(file, where) for file in message.files)
    live = [field for file in files for field in file.fields if field >= 0]
    if len(live) != len(set(live)):
        raise CorruptFileError(f"{where} has a field in two data files")
    deletion = None
    if message.HasField("deletion_file"):
        deletion = _parse_deletion_file(message.deletion_file, message.physical_rows, where)
    return FragmentMetadata(message.id, files, message.physical_rows, deletion)


def serialize_fragment(fragment: FragmentMetadata, *, fragment_id: int | None = None) -> table_pb2.DataFragment:
    """Return the protobuf of a fragment, under another id if one is given."""
    message = table_pb2.DataFragment(
        id=fragment.id if fragment_id is None else fragment_id,
        files=[
            table_pb2.DataFile(
                path=file.name,
                fields=file.fields,
                column_indices=file.column_indices,
                file_major_version=file.file_major_version,
                file_minor_version=file.file_minor_version,
                file_size_bytes=file.size_bytes,
            )
            for file in fragment.files
        ],
        physical_rows=fragment.physical_rows,
    )
    if fragment.deletion_file is not None:
        deletion = fragment.deletion_file
        message.deletion_file.CopyFrom(
            table_pb2.DeletionFile(
                file_type=_DELETION_TYPE_NUMBERS[deletion.file_type],
                read_version=deletion.read_version,
                id=deletion.id,
                num_deleted_rows=deletion.num_deleted_rows,
            )
        )
    return message


def check_unique_ids(fragments: Sequence[FragmentMetadata]) -> None:
    """Raise `CorruptFileError` if two fragments have one id."""
    seen: set[int] = set()
    for fragment in fragments:
        if fragment.id in seen:
            raise CorruptFileError(f"fragment {fragment.id} is listed twice")
        seen.add(fragment.id)


_DELETION_TYPES = {
    table_pb2.DeletionFile.ARROW_ARRAY: DeletionFileType.ARROW_ARRAY,
    table_pb2.DeletionFile.BITMAP: DeletionFileType.BITMAP,
}
_DELETION_TYPE_NUMBERS = {file_type: number for number, file_type in _DELETION_TYPES.items()}


def _parse_data_file(message: table_pb2.DataFile, where: str) -> DataFile:
    check_segment(message.path, f"a data file of {where}")
    if message.HasField("base_id"):
        raise NotSupportedError(f"{where} has a data file outside of the table (base path {message.base_id})")
    if message.column_indices and len(message.column_indices) != len(message.fields):
        raise CorruptFileError(
            f"{where}: data file {message.path} lists {len(message.fields)} fields"
            f" but {len(message.column_indices)} columns"
        )
    return DataFile(
        message.path,
        tuple(message.fields),
        tuple(message.column_indices),
        message.file_major_version,
        message.file_minor_version,
        message.file_size_bytes,
    )


def _parse_deletion_file(message: table_pb2.DeletionFile, physical_rows: int, where: str) -> DeletionFile:
    file_type = _DELETION_TYPES.get(message.file_type)
    if file_type is None:
        raise NotSupportedError(f"{where} has a deletion file of the unknown kind {message.file_type}")
    if message.HasField("base_id"):
        raise NotSupportedError(f"{where} has a deletion file outside of the table (base path {message.base_id})")
    if physical_rows and message.num_deleted_rows > physical_rows:
        raise CorruptFileError(f"{where} has {physical_rows} rows, {message.num_deleted_rows} of them deleted")
    return DeletionFile(file_type, message.read_version, message.id, message.num_deleted_rows)


def _message_from_json(value: Any) -> table_pb2.DataFragment:
    _check_keys(value, {"id": int, "files": list, "physical_rows": int, "deletion_file": (dict, type(None))})
    message = table_pb2.DataFragment(id=value["id"], physical_rows=value["physical_rows"])
    for file in value["files"]:
        _check_keys(file, _DATA_FILE_KEYS)
        message.files.append(table_pb2.DataFile(**file))
    deletion = value["deletion_file"]
    if deletion is not None:
        _check_keys(deletion, {"file_type": str, "read_version": int, "id": int, "num_deleted_rows": int})
        number = _DELETION_TYPE_NUMBERS[DeletionFileType(deletion.pop("file_type"))]
        message.deletion_file.CopyFrom(table_pb2.DeletionFile(file_type=number, **deletion))
    return message


_DATA_FILE_KEYS: dict[str, Any] = {
    "path": str,
    "fields": list,
    "column_indices": list,
    "file_major_version": int,
    "file_minor_version": int,
    "file_size_bytes": int,
}


def _check_keys(value: Any, kinds: dict[str, Any]) -> None:
    if not isinstance(value, dict) or value.keys() != kinds.keys():
        raise ValueError(f"an object of {', '.join(kinds)} is expected")
    for key, kind in kinds.items():
        if not isinstance(value[key], kind) or isinstance(value[key], bool):
            raise ValueError(f"{key} is {value[key]!r}")
