"""Manifests: one file a version, which says all that the table holds.

    [u32 size | IndexSection] [u32 size | Transaction] u32 size | Manifest | i64 position of the Manifest
    | u16 major 0 | u16 minor 2 | "LANC"

All integers are little-endian. The manifest names the positions of the two sections before it. Readers look for the
transaction's in different fields according to their age, so that both are written. What a newer writer put into a
manifest, and is not known here, survives in its successors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_format.datatypes import Schema, parse_schema, serialize_fields, serialize_metadata
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.proto import table_pb2
from lance_format.table import feature_flags
from lance_format.table.feature_flags import FeatureFlag
from lance_format.table.fragment import FragmentMetadata, check_unique_ids, parse_fragment, serialize_fragment
from lance_format.version import STABLE, FileVersion

MAX_MANIFEST_BYTES = 1 << 30
"""No manifest is larger; it would describe some ten million fragments."""

_FOOTER = struct.Struct("<qHH4s")
_SIZE = struct.Struct("<I")
_MAGIC = b"LANC"
_FORMAT_NUMBERS = (0, 2)
_MAX_INLINE_TRANSACTION_BYTES = 20 << 20
_WRITER_LIBRARY = "pyspark-lance"
_WRITER_VERSION = "0.1.0"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a table.

    Parameters
    ----------
    version : int
    timestamp_ns : int
        When it was committed: nanoseconds since the epoch, UTC.
    schema : Schema
    fragments : tuple of FragmentMetadata
        By ascending id.
    file_version : FileVersion
        What data files are to be unless the writer says otherwise.
    transaction_file : str
        The name of the transaction that made it; empty if it has no file.
    inline_transaction : bytes, optional
        The same transaction, where the manifest file has a copy.
    index_section : bytes, optional
        The indices, as protobuf.
    message : table_pb2.Manifest
        As stored. Never changed: successors start from a copy.
    """

    version: int
    timestamp_ns: int
    schema: Schema
    fragments: tuple[FragmentMetadata, ...]
    file_version: FileVersion
    transaction_file: str
    inline_transaction: bytes | None
    index_section: bytes | None
    message: table_pb2.Manifest = field(repr=False, compare=False)

    @property
    def max_fragment_id(self) -> int:
        """The highest fragment id ever used, as far as is known; -1 if there is none."""
        stated = self.message.max_fragment_id if self.message.HasField("max_fragment_id") else -1
        return max(stated, max((fragment.id for fragment in self.fragments), default=-1))

    def check_writable(self, where: str) -> None:
        """Raise `NotSupportedError` unless this library can write successors."""
        feature_flags.check_writable(self.message.reader_feature_flags | self.message.writer_feature_flags, where)
        if self.message.base_paths:
            raise NotSupportedError(f"{where} cannot be written: it has files outside of its directory (base paths)")


def parse_manifest(data: bytes, *, path: str, version: int) -> Manifest:
    """Build a manifest from the content of its file.

    Parameters
    ----------
    data : bytes
    path : str
        What error messages call the file.
    version : int
        What its name says.

    Raises
    ------
    CorruptFileError
        If it is malformed, or contradicts itself or its name.
    NotSupportedError
        If it has features that are not supported.
    """
    try:
        return _parse(data, path, version)
    except DecodeError as error:
        raise CorruptFileError(f"malformed manifest: {error}", path=path) from error
    except CorruptFileError as error:
        if error.path is not None:
            raise
        raise CorruptFileError(error.what, path=path, offset=error.offset) from error


def serialize_manifest(manifest: Manifest) -> bytes:
    """Return the content of a manifest's file."""
    message = table_pb2.Manifest()
    message.CopyFrom(manifest.message)
    content = bytearray()
    if manifest.index_section is not None:
        message.index_section = len(content)
        content += _SIZE.pack(len(manifest.index_section)) + manifest.index_section
    transaction = manifest.inline_transaction
    if transaction is not None and len(transaction) <= _MAX_INLINE_TRANSACTION_BYTES:
        message.transaction_section = message.transaction_section_deprecated = len(content)
        content += _SIZE.pack(len(transaction)) + transaction
    position = len(content)
    body = message.SerializeToString(deterministic=True)
    content += _SIZE.pack(len(body)) + body + _FOOTER.pack(position, *_FORMAT_NUMBERS, _MAGIC)
    if len(content) > MAX_MANIFEST_BYTES:
        raise NotSupportedError(
            f"the manifest would have {len(content)} bytes, more than the {MAX_MANIFEST_BYTES} that are read;"
            " write fewer, larger fragments"
        )
    return bytes(content)


def make_successor(
    previous: Manifest | None,
    *,
    fragments_kept: bool,
    fragments_added: Sequence[FragmentMetadata],
    schema: Schema | None = None,
    file_version: FileVersion | None = None,
    transaction_file: str,
    inline_transaction: bytes,
    now_ns: int,
) -> Manifest:
    """Return the manifest that follows another one, or the first.

    Parameters
    ----------
    previous : Manifest, optional
    fragments_kept : bool
        Whether the previous fragments, and with them the indices, stay.
    fragments_added : sequence of FragmentMetadata
        They get new ids, which no fragment of the table ever had.
    schema : Schema, optional
        The previous one if not given.
    file_version : FileVersion, optional
        The previous one if not given.
    transaction_file : str
    inline_transaction : bytes
    now_ns : int
        Nanoseconds since the epoch, UTC.
    """
    message = table_pb2.Manifest()
    if previous is not None:
        message.CopyFrom(previous.message)
    for stale in ("tag", "version_aux_data", "index_section", "transaction_section", "transaction_section_deprecated"):
        message.ClearField(stale)
    if not fragments_kept:
        del message.fragments[:]
    _add_fragments(message, fragments_added, 0 if previous is None else previous.max_fragment_id + 1)
    if schema is not None:
        _set_schema(message, schema)
    format_version = file_version or (previous.file_version if previous else STABLE)
    if file_version is not None or previous is None:
        message.data_format.file_format, message.data_format.version = "lance", str(format_version)
    message.version = 1 if previous is None else previous.version + 1
    message.timestamp.seconds, message.timestamp.nanos = divmod(now_ns, 10**9)
    message.transaction_file = transaction_file
    message.writer_version.CopyFrom(table_pb2.Manifest.WriterVersion(library=_WRITER_LIBRARY, version=_WRITER_VERSION))
    _set_flags(message, format_version)
    kept_indices = previous.index_section if previous is not None and fragments_kept else None
    return _from_message(message, inline_transaction, kept_indices)


def _parse(data: bytes, path: str, version: int) -> Manifest:
    if len(data) < _FOOTER.size:
        raise CorruptFileError(f"a manifest has at least {_FOOTER.size} bytes; this one has {len(data)}")
    position, major, minor, magic = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != _MAGIC:
        raise CorruptFileError(f"a manifest ends with {_MAGIC!r}; this one ends with {magic!r}", offset=len(data) - 4)
    if major != _FORMAT_NUMBERS[0]:
        raise NotSupportedError(f"{path}: manifests of format {major}.{minor} are not supported")
    end = len(data) - _FOOTER.size
    message = table_pb2.Manifest.FromString(_section(data, position, end, "manifest"))
    _check_known_fields(message)
    for fragment in message.fragments:
        _check_known_fields(fragment)
        for file in fragment.files:
            _check_known_fields(file)
    if message.version != version:
        raise CorruptFileError(f"the manifest is of version {message.version}, its name says {version}")
    feature_flags.check_readable(message.reader_feature_flags, f"version {version} of the table ({path})")
    if message.base_paths:
        raise NotSupportedError(f"{path}: the table has files outside of its directory (base paths)")
    transaction = None
    if message.HasField("transaction_section"):
        transaction = _section(data, message.transaction_section, position, "transaction")
    elif message.HasField("transaction_section_deprecated"):
        transaction = _section(data, message.transaction_section_deprecated, position, "transaction")
    indices = None
    if message.HasField("index_section"):
        indices = _section(data, message.index_section, position, "index section")
    return _from_message(message, transaction, indices)


def _check_known_fields(message: Message) -> None:
    """Refuse a field that is known, but has another wire type than it should.

    Protobuf keeps such a field as an unknown one: without this check a damaged tag would silently drop a fragment.
    """
    strays = UnknownFieldSet(message)
    for stray in (strays[index] for index in range(len(strays))):
        known = message.DESCRIPTOR.fields_by_number.get(stray.field_number)
        if known is not None:
            raise CorruptFileError(f"field {known.name} of a {message.DESCRIPTOR.name} has wire type {stray.wire_type}")


def _section(data: bytes, position: int, end: int, what: str) -> bytes:
    """Return the protobuf at a position, which must end by `end`."""
    if not 0 <= position <= end - _SIZE.size:
        raise CorruptFileError(f"the {what} is said to start at byte {position} of {end}")
    (size,) = _SIZE.unpack_from(data, position)
    start = position + _SIZE.size
    if size > end - start:
        raise CorruptFileError(f"the {what} is said to have {size} bytes; {end - start} are left", offset=position)
    return data[start : start + size]


def _from_message(message: table_pb2.Manifest, transaction: bytes | None, indices: bytes | None) -> Manifest:
    fragments = tuple(parse_fragment(fragment) for fragment in message.fragments)
    check_unique_ids(fragments)
    return Manifest(
        version=message.version,
        timestamp_ns=message.timestamp.seconds * 10**9 + message.timestamp.nanos,
        schema=parse_schema(message.fields, message.schema_metadata),
        fragments=fragments,
        file_version=_parse_file_version(message),
        transaction_file=message.transaction_file,
        inline_transaction=transaction,
        index_section=indices,
        message=message,
    )


def _parse_file_version(message: table_pb2.Manifest) -> FileVersion:
    if not message.HasField("data_format"):
        return _file_version_of_early_release(message)
    if message.data_format.file_format != "lance":
        raise NotSupportedError(f"the table has data files of format {message.data_format.file_format[:100]!r}")
    try:
        return FileVersion.parse(message.data_format.version)
    except InvalidInputError as error:
        raise NotSupportedError(f"the table has data files of an unknown version: {error}") from error


def _file_version_of_early_release(message: table_pb2.Manifest) -> FileVersion:
    """Return what a manifest without `data_format` implies: a flag told 2.0 from 0.1, and files tell the rest."""
    if not (message.reader_feature_flags | message.writer_feature_flags) & FeatureFlag.V2_FORMAT:
        return FileVersion.V0_1
    for file in (file for fragment in message.fragments for file in fragment.files):
        numbers = (file.file_major_version, file.file_minor_version)
        return next((version for version in FileVersion if version.manifest_numbers == numbers), FileVersion.V2_0)
    return STABLE


def _add_fragments(message: table_pb2.Manifest, added: Iterable[FragmentMetadata], first_id: int) -> None:
    fragment_id = first_id
    for fragment in added:
        message.fragments.append(serialize_fragment(fragment, fragment_id=fragment_id))
        fragment_id += 1
    if fragment_id > first_id:
        message.max_fragment_id = fragment_id - 1


def _set_schema(message: table_pb2.Manifest, schema: Schema) -> None:
    del message.fields[:]
    message.fields.extend(serialize_fields(schema.fields))
    message.schema_metadata.clear()
    message.schema_metadata.update(serialize_metadata(schema.metadata))


def _set_flags(message: table_pb2.Manifest, file_version: FileVersion) -> None:
    """State what the table needs from now on; that its files are of several versions is never taken back."""
    flags = FeatureFlag(message.reader_feature_flags & FeatureFlag.MIXED_FILE_VERSIONS)
    if any(fragment.HasField("deletion_file") for fragment in message.fragments):
        flags |= FeatureFlag.DELETION_FILES
    numbers = {(file.file_major_version, file.file_minor_version) for x in message.fragments for file in x.files}
    if numbers - {file_version.manifest_numbers}:
        flags |= FeatureFlag.MIXED_FILE_VERSIONS
    message.reader_feature_flags = flags
    message.writer_feature_flags = flags | (FeatureFlag.TABLE_CONFIG if message.config else 0)
