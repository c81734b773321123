"""The manifest of the next version, from the state that an operation made of the previous one."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, MutableMapping
from typing import TypeVar

import numpy as np

from lance_format.datatypes import Schema, serialize_fields, serialize_metadata
from lance_format.errors import InvalidInputError
from lance_format.proto import table_pb2
from lance_format.table.format.base_paths import check_known_bases
from lance_format.table.format.feature_flags import FeatureFlag
from lance_format.table.format.fragment_arrays import version_number
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.key_rules import check_primary_key
from lance_format.table.format.lineage import remember
from lance_format.table.format.manifest import Manifest

_WRITER_LIBRARY = "pyspark-lance"
_V = TypeVar("_V", str, bytes)
_REBUILT = (
    "version_aux_data",
    "index_section",
    "transaction_section",
    "transaction_section_deprecated",
    "ancestors",
)


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
        The result of an operation on the previous manifest, possibly without its protobuf message.
    transaction_file : str
    inline_transaction : bytes
    now_ns : int
        Nanoseconds since the epoch, UTC.
    version : int, optional
        Version of the new manifest, by default the next one.
    """
    message = table_pb2.Manifest()
    message.CopyFrom(state.message)
    for stale in _REBUILT:
        message.ClearField(stale)
    fragments = state.fragments.by_id()
    check_known_bases(fragments, state.indices, state.bases)  # Fragments may come from a caller.
    _check_have_files(fragments)
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


def _check_have_files(fragments: FragmentList) -> None:
    """Check that a fragment that is new or has changed has a data file: no version that has one without can be read."""
    for place in np.flatnonzero(fragments.columns.num_files == 0).tolist():
        fragment = fragments[place]
        if not fragment.files and fragment.serialized is None:
            raise InvalidInputError(
                f"fragment {fragment.id} would have no data file, and the table could not be read; nothing was changed:"
                " give the fragment a file, or delete it if it has no rows"
            )


@functools.cache  # It takes milliseconds to look up.
def _library_version() -> str:
    from importlib import metadata  # imports `email` and `csv`, which only commits need

    try:
        return metadata.version(_WRITER_LIBRARY)
    except metadata.PackageNotFoundError:  # The package is used without having been installed.
        return "0.0.0"


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
