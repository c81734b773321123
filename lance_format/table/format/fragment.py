"""Fragments of a table and their files, as values, and how manifests and messages spell them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import Any, TypeAlias

from google.protobuf.json_format import ParseError
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.file_entries import DataFile, DeletionFile, DeletionFileType, ExternalFile
from lance_format.table.format.fragment_json import fragment_from_json, fragment_to_json
from lance_format.table.format.layout import check_relative_path, check_segment

MAX_ROWS = 2**32
"""Maximum number of rows per fragment: an address has 32 bits for the offset."""

MAX_FRAGMENT_ID = 2**32 - 1

RowSequence: TypeAlias = bytes | ExternalFile
"""Something about every row of a fragment, as protobuf: in the manifest itself, or in a file."""


@dataclass(frozen=True, slots=True)
class FragmentMetadata:
    """A manifest's entry of one fragment.

    Parameters
    ----------
    id : int
        0 while the fragment is not part of a table; the commit assigns it.
    files : tuple of DataFile
    physical_rows : int
        Number of rows in the files, deleted ones included; 0 in tables of early releases, which do not record it.
    deletion_file : DeletionFile, optional
    row_id_meta : bytes or ExternalFile, optional
        The id of every physical row, in tables with stable row ids; see `lance_format.table.row_ids.row_id_sequence`.
        An uncommitted fragment may have fewer: the commit assigns ids to the remaining rows.
    created_at_version_meta, last_updated_at_version_meta : bytes or ExternalFile, optional
        The versions that created and last updated every row, in such tables.
    origin : bytes, optional
        The protobuf that the fragment, or its predecessor, was parsed from. It keeps fields of newer writers.
    serialized : bytes, optional
        The same if nothing has changed since; not a parameter.
    """

    id: int
    files: tuple[DataFile, ...]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_id_meta: RowSequence | None = None
    created_at_version_meta: RowSequence | None = None
    last_updated_at_version_meta: RowSequence | None = None
    origin: bytes | None = field(default=None, repr=False, compare=False)
    serialized: bytes | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def field_ids(self) -> frozenset[int]:
        """The fields that its files hold."""
        return frozenset(field_id for file in self.files for field_id in file.fields if field_id >= 0)

    @property
    def num_rows(self) -> int | None:
        """Number of live rows; None if the table does not say."""
        deleted = 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows
        if self.physical_rows == 0 or (self.deletion_file is not None and deleted == 0):
            return None
        return self.physical_rows - deleted

    @property
    def known_bytes(self) -> int:
        """Size of the data files, without those whose size the table does not record."""
        return sum(file.file_size_bytes or 0 for file in self.files)

    def stored_files(self) -> Sequence[DataFile]:
        """Return the data files, and those without columns that the table still names."""
        named = _parse_origin(self).files
        if len(named) <= len(self.files):
            return self.files
        return [parse_data_file(file, f"fragment {self.id}") for file in named]

    @property
    def overlays(self) -> list[Any]:
        """The files that lie over its data; none, since tables that have such files are refused."""
        return []

    @property
    def num_deletions(self) -> int:
        """Number of deleted rows; 0 also if the table does not say."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold of the fragment, in the form of pylance; see `from_json`."""
        return fragment_to_json(serialize_fragment(self))

    @classmethod
    def from_json(cls, json_data: str | bytes | Mapping[str, Any]) -> FragmentMetadata:
        """Rebuild what `to_json` returned, here or in pylance, validated like a manifest.

        Parameters
        ----------
        json_data : str, bytes or mapping
            As text, or as `json.loads` returns it.

        Raises
        ------
        InvalidInputError
            If it is malformed.
        """
        try:
            message = fragment_from_json(json_data)
            if not message.files:
                raise ValueError("it has no data file")
            return parse_fragment(message)
        except (ParseError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            raise InvalidInputError(f"malformed fragment metadata: {error}") from error


def read_fragments(values: Iterable[Mapping[str, Any]]) -> Iterator[FragmentMetadata]:
    """Rebuild several fragments; see `FragmentMetadata.from_json`."""
    return map(FragmentMetadata.from_json, values)


def load_fragment(data: bytes) -> FragmentMetadata:
    """Build a fragment from its protobuf in a manifest.

    Raises
    ------
    DecodeError
        If it is no protobuf.
    CorruptFileError, NotSupportedError
        See `parse_fragment`; also if a field has another wire type than it should.
    """
    message = table_pb2.DataFragment.FromString(data)
    check_known_fields(message)
    for file in message.files:
        check_known_fields(file)
    if message.HasField("deletion_file"):
        check_known_fields(message.deletion_file)
    fragment = _from_message(message, data)
    object.__setattr__(fragment, "serialized", data)  # Frozen, and not to be carried over by `dataclasses.replace`.
    return fragment


def check_known_fields(message: Message) -> None:
    """Check the wire types of known fields.

    Protobuf treats a field of another wire type as unknown: without this check a damaged tag would silently drop a data
    file.

    Raises
    ------
    CorruptFileError
        If a known field has another wire type.
    """
    strays = UnknownFieldSet(message)
    for stray in (strays[index] for index in range(len(strays))):
        known = message.DESCRIPTOR.fields_by_number.get(stray.field_number)
        if known is not None:
            raise CorruptFileError(f"field {known.name} of a {message.DESCRIPTOR.name} has wire type {stray.wire_type}")


def parse_fragment(message: table_pb2.DataFragment) -> FragmentMetadata:
    """Build a fragment from its protobuf.

    Data files without columns are dropped.

    Raises
    ------
    CorruptFileError
        If it contradicts itself, or names a file outside of the table's directories.
    NotSupportedError
        If its deletion file is of an unknown kind.
    """
    return _from_message(message, message.SerializeToString())


def _from_message(message: table_pb2.DataFragment, origin: bytes) -> FragmentMetadata:
    where = f"fragment {message.id}"
    if message.physical_rows > MAX_ROWS:
        raise CorruptFileError(f"{where} has {message.physical_rows} rows; at most {MAX_ROWS} are possible")
    if message.id > MAX_FRAGMENT_ID:
        raise CorruptFileError(f"{where}: the id does not fit 32 bits")
    files = [parse_data_file(file, where) for file in message.files]
    for file in files:
        live = [field for field in file.fields if field >= 0]
        if len(live) != len(set(live)):
            raise CorruptFileError(f"{where} has a field twice in the data file {file.path}")
    deletion = None
    if message.HasField("deletion_file"):
        deletion = _parse_deletion_file(message.deletion_file, message.physical_rows, where)
    return FragmentMetadata(
        message.id,
        tuple([file for file in files if not file.is_dead]),
        message.physical_rows,
        deletion,
        _parse_sequence(message, "row_id_sequence", where),
        _parse_sequence(message, "created_at_version_sequence", where),
        _parse_sequence(message, "last_updated_at_version_sequence", where),
        origin,
    )


def serialize_fragment(fragment: FragmentMetadata) -> table_pb2.DataFragment:
    """Return the protobuf of a fragment."""
    message = _parse_origin(fragment)
    stored = {file.path: file for file in _parse_origin(fragment).files}
    message.id, message.physical_rows = fragment.id, fragment.physical_rows
    del message.files[:]
    for file in fragment.files:
        if file.path in stored:
            message.files.append(stored[file.path])
            _set_data_file(message.files[-1], file)
        else:
            _set_data_file(message.files.add(), file)
    _set_deletion_file(message, fragment.deletion_file)
    for sequence, inline, external in (
        (fragment.row_id_meta, "inline_row_ids", "external_row_ids"),
        (fragment.created_at_version_meta, "inline_created_at_versions", "external_created_at_versions"),
        (fragment.last_updated_at_version_meta, "inline_last_updated_at_versions", "external_last_updated_at_versions"),
    ):
        if sequence is None:
            message.ClearField(inline)
            message.ClearField(external)
        elif isinstance(sequence, bytes):
            setattr(message, inline, sequence)
        else:
            shared = table_pb2.ExternalFile(path=sequence.path, offset=sequence.offset, size=sequence.size)
            getattr(message, external).CopyFrom(shared)
    return message


def _parse_origin(fragment: FragmentMetadata) -> table_pb2.DataFragment:
    return table_pb2.DataFragment.FromString(fragment.origin or b"")


def without_dropped_files(fragment: FragmentMetadata, field_ids: Set[int]) -> FragmentMetadata:
    """Return a fragment without the data files that hold none of some fields.

    One of them stays where all would go, and rows are null in every column: pylance reads no fragment without files.
    """
    files = tuple(file for file in fragment.files if not field_ids.isdisjoint(file.fields)) or fragment.files[:1]
    return fragment if len(files) == len(fragment.files) else dataclasses.replace(fragment, files=files)


_DELETION_TYPES = {
    table_pb2.DeletionFile.ARROW_ARRAY: DeletionFileType.ARROW_ARRAY,
    table_pb2.DeletionFile.BITMAP: DeletionFileType.BITMAP,
}
_DELETION_TYPE_NUMBERS = {file_type: number for number, file_type in _DELETION_TYPES.items()}


def parse_data_file(message: table_pb2.DataFile, where: str) -> DataFile:
    """Build a data file from its protobuf; see `parse_fragment`."""
    check_segment(message.path, f"a data file of {where}")
    fields, columns = tuple(message.fields), tuple(message.column_indices)
    if columns and len(columns) != len(fields):
        raise CorruptFileError(
            f"{where}: data file {message.path} lists {len(fields)} fields but {len(columns)} columns"
        )
    return DataFile(
        message.path,
        fields,
        columns,
        message.file_major_version,
        message.file_minor_version,
        message.file_size_bytes,
        message.base_id if message.HasField("base_id") else None,
    )


def serialize_data_file(file: DataFile) -> table_pb2.DataFile:
    """Return the protobuf of a data file."""
    message = table_pb2.DataFile()
    _set_data_file(message, file)
    return message


def _set_data_file(message: table_pb2.DataFile, file: DataFile) -> None:
    message.path = file.path
    message.fields[:] = file.fields
    message.column_indices[:] = file.column_indices
    message.file_major_version, message.file_minor_version = file.file_major_version, file.file_minor_version
    message.file_size_bytes = file.file_size_bytes
    _set_base(message, file.base_id)


def _set_deletion_file(message: table_pb2.DataFragment, deletion: DeletionFile | None) -> None:
    if deletion is None:
        message.ClearField("deletion_file")
        return
    stored = message.deletion_file
    if (stored.read_version, stored.id) != (deletion.read_version, deletion.id):
        stored.Clear()
    stored.file_type = _DELETION_TYPE_NUMBERS[deletion.file_type]
    stored.read_version, stored.id = deletion.read_version, deletion.id
    stored.num_deleted_rows = deletion.num_deleted_rows
    _set_base(stored, deletion.base_id)
    message.deletion_file.SetInParent()


def _set_base(message: table_pb2.DataFile | table_pb2.DeletionFile, base_id: int | None) -> None:
    if base_id is None:
        message.ClearField("base_id")
    else:
        message.base_id = base_id


def _parse_sequence(message: table_pb2.DataFragment, kind: str, where: str) -> RowSequence | None:
    member = message.WhichOneof(kind)
    if member is None:
        return None
    value = getattr(message, member)
    if isinstance(value, bytes):
        return value
    check_relative_path(value.path, f"{kind.replace('_', ' ')} of {where}")
    return ExternalFile(value.path, value.offset, value.size)


def _parse_deletion_file(message: table_pb2.DeletionFile, physical_rows: int, where: str) -> DeletionFile:
    file_type = _DELETION_TYPES.get(message.file_type)
    if file_type is None:
        raise NotSupportedError(f"{where} has a deletion file of the unknown kind {message.file_type}")
    if message.num_deleted_rows > (physical_rows or MAX_ROWS):
        raise CorruptFileError(f"{where} has {physical_rows} rows, {message.num_deleted_rows} of them deleted")
    base_id = message.base_id if message.HasField("base_id") else None
    return DeletionFile(message.read_version, message.id, file_type, message.num_deleted_rows, base_id)
