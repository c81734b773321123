"""Manifests: one file a version, which says all that the table holds.

    [u32 size | IndexSection] [u32 size | Transaction] [u32 size | VersionAuxData] u32 size | Manifest
    | i64 position of the Manifest | u16 major 0 | u16 minor 2 | "LANC"

All integers are little-endian. The manifest names the positions of the sections before it. Readers look for the
transaction's in different fields according to their age, so that both are written. What a newer writer put into a
manifest, and is not known here, survives in its successors.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import struct
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of_package
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError

from lance_format.datatypes import Schema, parse_schema, serialize_fields, serialize_metadata
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.proto import table_pb2
from lance_format.table.format import feature_flags
from lance_format.table.format.base_paths import check_known_bases, parse_base_paths
from lance_format.table.format.feature_flags import FeatureFlag
from lance_format.table.format.fragment import FragmentMetadata, check_known_fields
from lance_format.table.format.fragment_arrays import version_number
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.index_metadata import IndexMetadata, parse_index_section, serialize_index_section
from lance_format.table.format.key_rules import check_primary_key
from lance_format.table.format.lineage import remember
from lance_format.version import STABLE, FileVersion

MAX_MANIFEST_BYTES = 1 << 30
"""No manifest is larger; it would describe some ten million fragments."""

_FOOTER = struct.Struct("<qHH4s")
_SIZE = struct.Struct("<I")
_MAGIC = b"LANC"
_FORMAT_NUMBERS = (0, 2)
_SECONDS = range(-62_135_510_400, 253_402_214_400)  # the years 1 to 9999 in every time zone
_MAX_INLINE_TRANSACTION_BYTES = 20 << 20
_MAX_REMEMBERED_BYTES = 64 << 20
_WRITER_LIBRARY = "pyspark-lance"
_V = TypeVar("_V", str, bytes)
_REBUILT = (
    "version_aux_data",
    "index_section",
    "transaction_section",
    "transaction_section_deprecated",
    "ancestors",
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a table, existing or in preparation.

    Parameters
    ----------
    version : int
    timestamp_ns : int
        Time of the commit: nanoseconds since the epoch, UTC.
    schema : Schema
    fragments : FragmentList
        By ascending id.
    file_version : FileVersion
        Default version of new data files.
    max_fragment_id : int
        The highest known fragment id ever used; -1 if there is none.
    indices : tuple of IndexMetadata
    config, table_metadata : mapping of str to str
    stable_row_ids : bool
        Whether rows keep their ids when they move.
    next_row_id : int
        Id of the next new row in such tables.
    branch : str or None
        The branch of the version; None for the main one.
    bases : mapping of int to str
        Paths in the store of directories of a branch's parents, by the ids that files refer to.
    transaction_file : str
        The file name of the transaction that made the version; empty if it has no file.
    inline_transaction : bytes, optional
        The same transaction if the manifest file has a copy.
    ancestors : bytes
        The transactions of earlier versions; see `lance_format.table.format.lineage`.
    auxiliary_section : bytes, optional
        The serialized `VersionAuxData`; see `auxiliary_data`.
    message : table_pb2.Manifest
        The stored message without the fragments. Never modified: successors start from a copy.
    """

    version: int
    timestamp_ns: int
    schema: Schema
    fragments: FragmentList
    file_version: FileVersion
    max_fragment_id: int = -1
    indices: tuple[IndexMetadata, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    table_metadata: Mapping[str, str] = field(default_factory=dict)
    stable_row_ids: bool = False
    next_row_id: int = 0
    branch: str | None = None
    bases: Mapping[int, str] = field(default_factory=dict)
    transaction_file: str = ""
    inline_transaction: bytes | None = None
    ancestors: bytes = b""
    auxiliary_section: bytes | None = None
    message: table_pb2.Manifest = field(default_factory=table_pb2.Manifest, repr=False, compare=False)

    @property
    def tag(self) -> str:
        """The tag that writers before tags had files of their own gave it; empty if there is none."""
        return self.message.tag

    @property
    def auxiliary_data(self) -> dict[str, bytes]:
        """Data that a writer keeps with the table, by key; parsed on demand, since nothing depends on it.

        Raises
        ------
        CorruptFileError
            If it is malformed.
        """
        try:
            return dict(table_pb2.VersionAuxData.FromString(self.auxiliary_section or b"").metadata)
        except DecodeError as error:
            raise CorruptFileError(f"the auxiliary data of version {self.version} is malformed: {error}") from error

    def fragment(self, fragment_id: int) -> FragmentMetadata | None:
        """Return the fragment of an id, or None if there is none."""
        return self.fragments.find(fragment_id)

    @property
    def stores_transaction(self) -> bool:
        """True if the file holds the transaction; only very large ones do not."""
        return self.inline_transaction is not None and len(self.inline_transaction) <= _MAX_INLINE_TRANSACTION_BYTES

    @property
    def next_field_id(self) -> int:
        """An id that no field of the table has, nor one that its files still hold."""
        known = [-1, *(field.id for field in self.schema.walk())]
        return max(*known, int(self.fragments.columns.max_field_ids.max(initial=-1))) + 1

    def with_new_fragments(self, added: Iterable[FragmentMetadata]) -> Manifest:
        """Add fragments under new ids, which no fragment of the table ever had."""
        first = self.max_fragment_id + 1
        new = [dataclasses.replace(fragment, id=first + index) for index, fragment in enumerate(added)]
        return dataclasses.replace(self, fragments=self.fragments.extended(new), max_fragment_id=first + len(new) - 1)

    def check_writable(self, where: str) -> None:
        """Raise `NotSupportedError` unless this library can write successors."""
        feature_flags.check_writable(self.message.reader_feature_flags | self.message.writer_feature_flags, where)


def parse_manifest(data: bytes, *, path: str, version: int) -> Manifest:
    """Build a manifest from the content of its file.

    Parameters
    ----------
    data : bytes
    path : str
        Of the file in the store: a directory of the table's directory, and the name.
    version : int
        What its name says.

    Raises
    ------
    CorruptFileError
        If it is malformed, or contradicts itself or its name.
    NotSupportedError
        If it has features that are not supported.
    """
    parse = _parse if len(data) > _MAX_REMEMBERED_BYTES else _parse_once
    with _naming(path):
        return parse(data, path, version)


def parse_transaction_of(data: bytes, *, path: str, version: int) -> tuple[str, bytes | None]:
    """Read the transaction of a manifest's file without parsing the rest.

    Parameters
    ----------
    data, path, version
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
        message, _, position = _parse_message(data, path, version)
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
        raise CorruptFileError(error.what, path=path, offset=error.offset) from error


def serialize_manifest(manifest: Manifest) -> bytes:
    """Return the content of a manifest's file.

    Raises
    ------
    NotSupportedError
        If the manifest is too large.
    """
    message = table_pb2.Manifest()
    message.CopyFrom(manifest.message)
    content = bytearray()
    if manifest.indices:
        indices = serialize_index_section(manifest.indices)
        message.index_section = len(content)
        content += _SIZE.pack(len(indices)) + indices
    transaction = manifest.inline_transaction
    if transaction is not None and manifest.stores_transaction:
        message.transaction_section = message.transaction_section_deprecated = len(content)
        content += _SIZE.pack(len(transaction)) + transaction
    if manifest.auxiliary_section is not None:
        content = content or bytearray(_SIZE.pack(0))  # Position 0 means that there is none.
        message.version_aux_data = len(content)
        content += _SIZE.pack(len(manifest.auxiliary_section)) + manifest.auxiliary_section
    position = len(content)
    body = _serialize_message(message, manifest.fragments)
    content += _SIZE.pack(len(body)) + body + _FOOTER.pack(position, *_FORMAT_NUMBERS, _MAGIC)
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


def first_manifest(schema: Schema, file_version: FileVersion, *, stable_row_ids: bool = False) -> Manifest:
    """Return a manifest without rows and version, the base of the first commit.

    Parameters
    ----------
    schema : Schema
    file_version : FileVersion
        Default version of data files.
    stable_row_ids : bool
        Whether rows keep their ids when they move.
    """
    return Manifest(0, 0, schema, FragmentList(), file_version, stable_row_ids=stable_row_ids)


def make_successor(
    previous: Manifest | None,
    state: Manifest,
    *,
    transaction_file: str,
    inline_transaction: bytes,
    now_ns: int,
    version: int | None = None,
) -> Manifest:
    """Return the manifest that follows another one, or the first.

    Parameters
    ----------
    previous : Manifest, optional
    state : Manifest
        What an operation made of the previous one, whose protobuf it need not know.
    transaction_file : str
    inline_transaction : bytes
    now_ns : int
        Nanoseconds since the epoch, UTC.
    version : int, optional
        Of the new manifest; the next one if not given.
    """
    message = table_pb2.Manifest()
    message.CopyFrom(state.message)
    for stale in _REBUILT:
        message.ClearField(stale)
    fragments = state.fragments.by_id()
    check_known_bases(fragments, state.indices, state.bases)  # Fragments may come from a caller.
    based_on_previous = previous is not None and state.message is previous.message
    if state.max_fragment_id >= 0:
        message.max_fragment_id = state.max_fragment_id
    if previous is None or not based_on_previous or state.schema != previous.schema:
        check_primary_key(state.schema)
        _set_schema(message, state.schema)
    if previous is None or not based_on_previous or state.file_version is not previous.file_version:
        message.data_format.file_format, message.data_format.version = "lance", str(state.file_version)
    _set_map(message.config, state.config)
    _set_map(message.table_metadata, state.table_metadata)
    message.next_row_id = state.next_row_id
    following = 1 if previous is None else previous.version + 1
    message.version = following if version is None else version
    message.timestamp.seconds, message.timestamp.nanos = divmod(now_ns, 10**9)
    message.transaction_file = transaction_file
    message.ancestors = b"" if previous is None else remember(previous)
    message.writer_version.CopyFrom(
        table_pb2.Manifest.WriterVersion(library=_WRITER_LIBRARY, version=_library_version())
    )
    _set_flags(message, state)
    return dataclasses.replace(
        state,
        version=message.version,
        timestamp_ns=now_ns,
        fragments=fragments,
        transaction_file=transaction_file,
        inline_transaction=inline_transaction,
        ancestors=message.ancestors,
        message=message,
    )


@functools.cache  # It takes milliseconds to look up.
def _library_version() -> str:
    try:
        return version_of_package(_WRITER_LIBRARY)
    except PackageNotFoundError:  # The package is used without having been installed.
        return "0.0.0"


def _parse_message(data: bytes, path: str, version: int) -> tuple[table_pb2.Manifest, Sequence[bytes], int]:
    """Return the protobuf of a manifest without fragments, that of the fragments only, and its offset."""
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
    if message.version != version:
        raise CorruptFileError(f"the manifest is of version {message.version}, its name says {version}")
    return message, fragments, position


def _parse(data: bytes, path: str, version: int) -> Manifest:
    message, stored, position = _parse_message(data, path, version)
    check_known_fields(message)
    feature_flags.check_readable(message.reader_feature_flags, f"version {version} of the table ({path})")
    bases = parse_base_paths(message, path.rsplit("/", 2)[0])
    indices: tuple[IndexMetadata, ...] = ()
    if message.HasField("index_section"):
        indices = parse_index_section(_section(data, message.index_section, position, "index section"))
    manifest = _from_message(message, stored, _inline_transaction(message, data, position), indices, bases)
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


@functools.lru_cache(maxsize=2)
def _parse_once(data: bytes, path: str, version: int) -> Manifest:
    """Parse bytes unless they were just parsed: a change is mostly planned and committed on the same version."""
    return _parse(data, path, version)


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
    stored: Sequence[bytes],
    transaction: bytes | None,
    indices: tuple[IndexMetadata, ...],
    bases: Mapping[int, str],
) -> Manifest:
    fragments = FragmentList.parse(stored)
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
    """Return the file version of a manifest without `data_format`: that of its files, else a flag tells."""
    for file in (file for fragment in fragments for file in fragment.stored_files()):
        return FileVersion.from_manifest(file.file_major_version, file.file_minor_version) or FileVersion.V2_0
    flags = message.reader_feature_flags | message.writer_feature_flags
    return STABLE if flags & FeatureFlag.V2_FORMAT else FileVersion.V0_1


def _set_schema(message: table_pb2.Manifest, schema: Schema) -> None:
    del message.fields[:]
    message.fields.extend(serialize_fields(schema.fields))
    _set_map(message.schema_metadata, serialize_metadata(schema.metadata))


def _set_map(stored: MutableMapping[str, _V], values: Mapping[str, _V]) -> None:
    if dict(stored) != values:
        stored.clear()
        stored.update(values)


def _set_flags(message: table_pb2.Manifest, state: Manifest) -> None:
    """Set the feature flags; the flag for files of several versions is never removed."""
    flags = FeatureFlag(message.reader_feature_flags & FeatureFlag.MIXED_FILE_VERSIONS)
    columns = state.fragments.columns
    if columns.num_deleted_rows.any():
        flags |= FeatureFlag.DELETION_FILES
    if state.stable_row_ids:
        flags |= FeatureFlag.STABLE_ROW_IDS
    known = [version_number(*numbers) for numbers in state.file_version.all_manifest_numbers]
    alike = np.isin(columns.lowest_versions, known) & np.isin(columns.highest_versions, known)
    if (~alike & (columns.num_files > 0)).any():
        flags |= FeatureFlag.MIXED_FILE_VERSIONS
    if message.base_paths:
        flags |= FeatureFlag.BASE_PATHS
    message.reader_feature_flags = flags
    message.writer_feature_flags = flags | (FeatureFlag.TABLE_CONFIG if message.config else 0)
