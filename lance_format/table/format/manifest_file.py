"""The file of a manifest, one per version.

    u32 16 | "LANCESUM" | u64 checksum of all that follows
    [u32 size | IndexSection] [u32 size | Transaction] [u32 size | VersionAuxData] u32 size | Manifest
    | i64 position of the Manifest | u16 major 0 | u16 minor 2 | "LANC"

All integers are little-endian. The manifest has the positions of the sections before it, except the checksum. Other
writers do not write that, and other readers do not see it; the build metadata of the writer's version promises it. Old
and new readers find the position of the transaction in different fields; both are written. Fields of newer writers that
this library does not know survive in the manifests of later versions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import struct
from collections.abc import Iterator, Mapping

from google.protobuf.message import DecodeError

from lance_format.checksums import checksum32, checksum64
from lance_format.datatypes import parse_schema
from lance_format.errors import ChecksumError, CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.proto import table_pb2
from lance_format.table.format import feature_flags
from lance_format.table.format.base_paths import BasePath, check_known_bases, parse_base_paths
from lance_format.table.format.feature_flags import FeatureFlag
from lance_format.table.format.fragment import check_known_fields
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.index_metadata import IndexMetadata, parse_index_section, serialize_index_section
from lance_format.table.format.manifest import Manifest
from lance_format.version import STABLE, FileVersion

MAX_MANIFEST_BYTES = 1 << 30
"""No manifest is larger; it would describe some ten million fragments."""
_FOOTER = struct.Struct("<qHH4s")
_SIZE = struct.Struct("<I")
_MAGIC = b"LANC"
_CHECKSUM = struct.Struct("<I8sQ")
_CHECKSUM_HEAD = (16, b"LANCESUM")
_REMEDY = (
    "the storage, or what copied it, has damaged it: restore it from a copy, or open another version;"
    " verify_checksums=False reads what is there"
)
_FORMAT_NUMBERS = (0, 2)
_SECONDS = range(-62_135_510_400, 253_402_214_400)  # the years 1 to 9999 in every time zone
_MAX_REMEMBERED_BYTES = 64 << 20
_REMEMBERED = 2

_remembered_fragments: dict[str, FragmentList] = {}
"""Fragments parsed last, by the directory of the table: those of the next version are mostly the same."""


def parse_manifest(
    data: bytes, *, path: str, version: int, verifies: bool = True, allowed: tuple[str, ...] = ()
) -> Manifest:
    """Build a manifest from the content of its file.

    Parameters
    ----------
    data : bytes
    path : str
        Of the file in the store: a directory of the table's directory, and the name.
    version : int
        What its name says.
    verifies : bool
        Whether its checksum is compared, if it has one.
    allowed : tuple of str
        The directories outside of the table that may have files of it; see `parse_base_paths`.

    Raises
    ------
    ChecksumError
        If it is not what was written.
    CorruptFileError
        If it is malformed, or contradicts itself or its name.
    NotSupportedError
        If it has features that are not supported.
    """
    parse = _parse if len(data) > _MAX_REMEMBERED_BYTES else _parse_once
    with _naming(path):
        return parse(data, path, version, verifies, allowed)


def parse_transaction_of(data: bytes, *, path: str, version: int, verifies: bool = True) -> tuple[str, bytes | None]:
    """Read the transaction of a manifest's file without parsing the rest.

    Parameters
    ----------
    data, path, version, verifies
        See `parse_manifest`.

    Returns
    -------
    transaction_file : str
    inline_transaction : bytes or None
        See `Manifest`.

    Raises
    ------
    CorruptFileError, NotSupportedError
        See `parse_manifest`.
    """
    with _naming(path):
        message, _, position = _parse_message(data, path, version, verifies)
        return message.transaction_file, _inline_transaction(message, data, position)


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Add the path of a malformed file to errors."""
    try:
        yield
    except DecodeError as error:
        raise CorruptFileError(f"malformed manifest: {error}", path=path) from error
    except CorruptFileError as error:
        if error.path is not None:
            raise
        raise error.retold(error.what, path=path) from error


def serialize_manifest(manifest: Manifest) -> bytes:
    """Return the content of a manifest's file.

    Raises
    ------
    NotSupportedError
        If the manifest is too large.
    """
    message = table_pb2.Manifest()
    message.CopyFrom(manifest.message)
    message.writer_version.build_metadata = _promise(message)
    content = bytearray(_CHECKSUM.size)
    if manifest.indices:
        indices = serialize_index_section(manifest.indices)
        message.index_section = len(content)
        content += _SIZE.pack(len(indices)) + indices
    transaction = manifest.inline_transaction
    if transaction is not None and manifest.stores_transaction:
        message.transaction_section = message.transaction_section_deprecated = len(content)
        content += _SIZE.pack(len(transaction)) + transaction
    if manifest.auxiliary_section is not None:
        message.version_aux_data = len(content)
        content += _SIZE.pack(len(manifest.auxiliary_section)) + manifest.auxiliary_section
    position = len(content)
    body = _serialize_message(message, manifest.fragments)
    content += _SIZE.pack(len(body)) + body + _FOOTER.pack(position, *_FORMAT_NUMBERS, _MAGIC)
    _CHECKSUM.pack_into(content, 0, *_CHECKSUM_HEAD, checksum64(memoryview(content)[_CHECKSUM.size :]))
    if len(content) > MAX_MANIFEST_BYTES:
        raise NotSupportedError(
            f"the manifest would have {len(content)} bytes, more than the {MAX_MANIFEST_BYTES} that are read;"
            " write fewer, larger fragments"
        )
    return bytes(content)


def _serialize_message(message: table_pb2.Manifest, fragments: FragmentList) -> bytes:
    """Return the protobuf of a manifest, its fields in ascending order as all writers put them."""
    schema = table_pb2.Manifest(fields=message.fields)
    del message.fields[:]
    stored = table_pb2.FragmentsOfManifest(fragments=fragments.serialize())
    return b"".join([part.SerializeToString(deterministic=True) for part in (schema, stored, message)])


def _parse_message(data: bytes, path: str, version: int, verifies: bool) -> tuple[table_pb2.Manifest, list[bytes], int]:
    """Return the protobuf of a manifest without fragments, that of the fragments only, and its offset."""
    is_summed = verifies and _check_sum(data)
    if len(data) < _FOOTER.size:
        raise CorruptFileError(f"a manifest has at least {_FOOTER.size} bytes; this one has {len(data)}")
    position, major, minor, magic = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != _MAGIC:
        raise CorruptFileError(f"a manifest ends with {_MAGIC!r}; this one ends with {magic!r}", offset=len(data) - 4)
    if major != _FORMAT_NUMBERS[0]:
        raise NotSupportedError(f"{path}: manifests of format {major}.{minor} are not supported")
    end = len(data) - _FOOTER.size
    stored = table_pb2.FragmentsOfManifest.FromString(_section(data, position, end, "manifest"))
    fragments = list(stored.fragments)
    stored.ClearField("fragments")
    message = table_pb2.Manifest.FromString(stored.SerializeToString())
    if verifies and not is_summed and message.writer_version.build_metadata == _promise(message):
        raise ChecksumError(f"the manifest has lost its checksum; {_REMEDY}")
    if message.version != version:
        raise CorruptFileError(f"the manifest is of version {message.version}, its name says {version}")
    return message, fragments, position


def _promise(message: table_pb2.Manifest) -> str:
    """Return the build metadata, of its writer's version, of a manifest that begins with a checksum.

    It names the version and the transaction, because pylance copies the writer's version when it restores or clones.
    """
    return f"checksum.{message.version}.{checksum32(message.transaction_file.encode()):08x}"


def has_checksum(data: bytes) -> bool:
    """Return whether the file of a manifest begins with a checksum."""
    return len(data) >= _CHECKSUM.size and _CHECKSUM.unpack_from(data)[:2] == _CHECKSUM_HEAD


def _check_sum(data: bytes) -> bool:
    """Raise `ChecksumError` if a manifest is not what was written; return whether it has a checksum."""
    if not has_checksum(data):
        return False
    if checksum64(memoryview(data)[_CHECKSUM.size :]) != _CHECKSUM.unpack_from(data)[-1]:
        raise ChecksumError(f"the {len(data)} bytes of the manifest are not those that were written; {_REMEDY}")
    return True


def _parse(
    data: bytes,
    path: str,
    version: int,
    verifies: bool,
    allowed: tuple[str, ...],
    known: FragmentList | None = None,
) -> Manifest:
    message, stored, position = _parse_message(data, path, version, verifies)
    check_known_fields(message)
    feature_flags.check_readable(message.reader_feature_flags, f"version {version} of the table ({path})")
    bases = parse_base_paths(message, _root_of(path), allowed)
    indices: tuple[IndexMetadata, ...] = ()
    if message.HasField("index_section"):
        indices = parse_index_section(_section(data, message.index_section, position, "index section"))
    fragments = FragmentList.parse(stored, known)
    manifest = _from_message(message, fragments, _inline_transaction(message, data, position), indices, bases)
    return dataclasses.replace(manifest, auxiliary_section=_auxiliary_section(message, data, position))


def _auxiliary_section(message: table_pb2.Manifest, data: bytes, position: int) -> bytes | None:
    """Return the serialized `VersionAuxData`; a position outside of the file is ignored, as by pylance."""
    if not message.version_aux_data:
        return None
    try:
        return _section(data, message.version_aux_data, position, "auxiliary data")
    except CorruptFileError:
        return None


def _inline_transaction(message: table_pb2.Manifest, data: bytes, position: int) -> bytes | None:
    for member in ("transaction_section", "transaction_section_deprecated"):
        if message.HasField(member):
            return _section(data, getattr(message, member), position, "transaction")
    return None


@functools.lru_cache(maxsize=_REMEMBERED)
def _parse_once(data: bytes, path: str, version: int, verifies: bool, allowed: tuple[str, ...]) -> Manifest:
    """Parse bytes unless they were just parsed: a change is mostly planned and committed on the same version."""
    root = _root_of(path)
    made = _parse(data, path, version, verifies, allowed, _remembered_fragments.pop(root, None))
    if len(_remembered_fragments) >= _REMEMBERED:
        _remembered_fragments.clear()
    _remembered_fragments[root] = made.fragments
    return made


def _root_of(path: str) -> str:
    return path.rsplit("/", 2)[0]


def _section(data: bytes, position: int, end: int, what: str) -> bytes:
    """Return the protobuf at a position, which must end by `end`."""
    if not 0 <= position <= end - _SIZE.size:
        raise CorruptFileError(f"the {what} is said to start at byte {position} of {end}")
    (size,) = _SIZE.unpack_from(data, position)
    start = position + _SIZE.size
    if size > end - start:
        raise CorruptFileError(f"the {what} is said to have {size} bytes; {end - start} are left", offset=position)
    return data[start : start + size]


def _from_message(
    message: table_pb2.Manifest,
    fragments: FragmentList,
    transaction: bytes | None,
    indices: tuple[IndexMetadata, ...],
    bases: Mapping[int, BasePath],
) -> Manifest:
    columns = fragments.columns
    stable_row_ids = bool(message.reader_feature_flags & FeatureFlag.STABLE_ROW_IDS)
    nameless = columns.ids[~columns.has_row_ids]
    if stable_row_ids and nameless.size:
        raise CorruptFileError(f"fragment {nameless[0]} has no row ids, which its table promises")
    check_known_bases(fragments, indices, bases)
    stated = message.max_fragment_id if message.HasField("max_fragment_id") else -1
    return Manifest(
        version=message.version,
        timestamp_ns=_parse_timestamp(message),
        schema=parse_schema(message.fields, message.schema_metadata),
        fragments=fragments,
        file_version=_parse_file_version(message, fragments),
        max_fragment_id=max(stated, int(columns.ids.max(initial=-1))),
        indices=indices,
        config=dict(message.config),
        table_metadata=dict(message.table_metadata),
        stable_row_ids=stable_row_ids,
        next_row_id=message.next_row_id,
        branch=message.branch if message.HasField("branch") else None,
        bases=bases,
        transaction_file=message.transaction_file,
        inline_transaction=transaction,
        ancestors=message.ancestors,
        message=message,
    )


def _parse_timestamp(message: table_pb2.Manifest) -> int:
    timestamp = message.timestamp
    if timestamp.seconds not in _SECONDS or not 0 <= timestamp.nanos < 10**9:
        raise CorruptFileError(f"the manifest was committed {timestamp.seconds} s {timestamp.nanos} ns after 1970")
    return int(timestamp.seconds * 10**9 + timestamp.nanos)


def _parse_file_version(message: table_pb2.Manifest, fragments: FragmentList) -> FileVersion:
    if not message.HasField("data_format"):
        return _file_version_of_early_release(message, fragments)
    if message.data_format.file_format != "lance":
        raise NotSupportedError(f"the table has data files of format {message.data_format.file_format[:100]!r}")
    try:
        return FileVersion.parse(message.data_format.version)
    except InvalidInputError as error:
        raise NotSupportedError(f"the table has data files of an unknown version: {error}") from error


def _file_version_of_early_release(message: table_pb2.Manifest, fragments: FragmentList) -> FileVersion:
    """Return the file version of a manifest without `data_format`: that of its files, else that of a flag."""
    for file in (file for fragment in fragments for file in fragment.stored_files()):
        return FileVersion.from_manifest(file.file_major_version, file.file_minor_version) or FileVersion.V2_0
    flags = message.reader_feature_flags | message.writer_feature_flags
    return STABLE if flags & FeatureFlag.V2_FORMAT else FileVersion.V0_1
