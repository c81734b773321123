"""Entries of a manifest about the indices of a table.

Indices are built and read elsewhere; every operation has to know which of them it makes incomplete or useless. An index
covers the fragments of its bitmap; the bitmap may name fragments that no longer exist.
"""

from __future__ import annotations

import dataclasses
import time
import uuid as uuids
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyroaring
from google.protobuf.message import DecodeError

from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2

FRAGMENT_REUSE_INDEX = "__lance_frag_reuse"
"""Not an index of a column: it maps the fragments that a compaction replaced to the new ones."""

MEM_WAL_INDEX = "__lance_mem_wal"
"""Not an index of a column: the state of write-ahead logs."""

SYSTEM_INDICES = frozenset({FRAGMENT_REUSE_INDEX, MEM_WAL_INDEX})
"""Names that indices of columns cannot have."""


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    """One index, or a part of one: parts share a name.

    Parameters
    ----------
    uuid : str
        Names the directory of its files.
    name : str
    fields : tuple of int
        The ids of the fields it is about.
    dataset_version : int
        The version it was built on.
    fragment_ids : pyroaring.FrozenBitMap, optional
        The fragments that it covers; None if it does not say.
    type_url : str
        What kind of index it is; empty if it does not say.
    message : table_pb2.IndexMetadata
        As stored. Never changed: it is kept for all else.
    """

    uuid: str
    name: str
    fields: tuple[int, ...]
    dataset_version: int
    fragment_ids: pyroaring.FrozenBitMap | None
    type_url: str
    message: table_pb2.IndexMetadata = field(repr=False)

    @property
    def base_id(self) -> int | None:
        """Key of the directory of its files in `Manifest.bases`; None if they are in the table itself."""
        return self.message.base_id if self.message.HasField("base_id") else None

    @property
    def is_system(self) -> bool:
        """True if the index is about the table rather than a column."""
        return self.name in SYSTEM_INDICES

    def covered_ids(self) -> npt.NDArray[np.int64]:
        """Return the fragments that it covers, ascending; none if it does not say."""
        return np.array(() if self.fragment_ids is None else self.fragment_ids.to_array(), np.int64)

    def covers_any(self, fragment_ids: Iterable[int]) -> bool:
        """Tell whether the index covers one of some fragments; where it does not say, it may."""
        covered = self.fragment_ids
        return covered is None or any(fragment_id in covered for fragment_id in fragment_ids)

    def with_base(self, base_id: int) -> IndexMetadata:
        """Return the index as one whose files lie in another directory of the manifest, unless they do already."""
        if self.base_id is not None:
            return self
        message = table_pb2.IndexMetadata()
        message.CopyFrom(self.message)
        message.base_id = base_id
        return dataclasses.replace(self, message=message)

    def in_table(self) -> IndexMetadata:
        """Return the index as one whose files lie in the table itself."""
        if self.base_id is None:
            return self
        message = table_pb2.IndexMetadata()
        message.CopyFrom(self.message)
        message.ClearField("base_id")
        return dataclasses.replace(self, message=message)

    def with_fragments(self, fragment_ids: Iterable[int]) -> IndexMetadata:
        """Return the index as one that covers these fragments."""
        covered = pyroaring.FrozenBitMap(fragment_ids)
        message = table_pb2.IndexMetadata()
        message.CopyFrom(self.message)
        message.fragment_bitmap = covered.serialize()
        return dataclasses.replace(self, fragment_ids=covered, message=message)


def parse_index_section(data: bytes) -> tuple[IndexMetadata, ...]:
    """Build the indices of a manifest from their protobuf.

    Raises
    ------
    CorruptFileError
        If it is malformed.
    """
    try:
        section = table_pb2.IndexSection.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"malformed index section: {error}") from error
    return tuple(parse_index(message) for message in section.indices)


def serialize_index_section(indices: Sequence[IndexMetadata]) -> bytes:
    """Return the protobuf of the indices of a manifest."""
    section = table_pb2.IndexSection(indices=[index.message for index in indices])
    return section.SerializeToString(deterministic=True)


def parse_index(message: table_pb2.IndexMetadata) -> IndexMetadata:
    """Build one index from its protobuf.

    Raises
    ------
    CorruptFileError
        If its identity or its bitmap is malformed.
    """
    try:
        identity = uuids.UUID(bytes=message.uuid.uuid)
    except ValueError as error:
        raise CorruptFileError(f"index {message.name[:100]!r} has a malformed uuid: {error}") from error
    return IndexMetadata(
        uuid=str(identity),
        name=message.name,
        fields=tuple(message.fields),
        dataset_version=message.dataset_version,
        fragment_ids=_parse_bitmap(message),
        type_url=message.index_details.type_url if message.HasField("index_details") else "",
        message=message,
    )


def new_index(
    name: str,
    field_id: int,
    details: tuple[str, bytes],
    *,
    uuid: uuids.UUID,
    version: int,
    fragment_ids: Iterable[int],
    files: Mapping[str, int],
    index_version: int = 0,
) -> IndexMetadata:
    """Return the metadata of a part of an index whose files have been written.

    Parameters
    ----------
    name : str
        Of the index.
    field_id : int
        Of the column.
    details : (str, bytes)
        The name of the protobuf of its kind, such as "lance.table.BTreeIndexDetails", and its bytes.
    uuid : uuid.UUID
        Names the directory of its files.
    version : int
        The table version that it was made from.
    fragment_ids : iterable of int
        The fragments that it covers.
    files : mapping of str to int
        Its files, and their sizes in bytes.
    index_version : int
        The version of the form of its kind.
    """
    message = table_pb2.IndexMetadata(
        uuid=table_pb2.UUID(uuid=uuid.bytes),
        fields=[field_id],
        name=name,
        dataset_version=version,
        fragment_bitmap=pyroaring.BitMap(fragment_ids).serialize(),
        index_version=index_version,
        created_at=time.time_ns() // 10**6,
        files=[table_pb2.IndexFile(path=path, size_bytes=size) for path, size in files.items()],
    )
    kind, message.index_details.value = details
    message.index_details.type_url = f"/{kind}"
    return parse_index(message)


def retain_relevant(
    indices: Sequence[IndexMetadata], field_ids: frozenset[int], fragment_ids: frozenset[int]
) -> tuple[IndexMetadata, ...]:
    """Return the indices that remain useful for a table with some fields and fragments.

    Indices of dropped fields are removed. So are parts without a fragment, except one per index, which allows its
    update.
    A vector index without fragments is removed, since it cannot be trained on nothing.

    Parameters
    ----------
    indices : sequence of IndexMetadata
    field_ids : frozenset of int
        The fields of the table.
    fragment_ids : frozenset of int
        The fragments of the table.
    """
    alive = [index for index in indices if index.is_system or field_ids.issuperset(index.fields)]
    parts: dict[str, list[IndexMetadata]] = defaultdict(list)
    for index in alive:
        parts[index.name].append(index)
    kept = {index.uuid for same in parts.values() for index in _retain_parts(same, fragment_ids)}
    return tuple(index for index in alive if index.name == FRAGMENT_REUSE_INDEX or index.uuid in kept)


def _retain_parts(parts: list[IndexMetadata], fragment_ids: frozenset[int]) -> list[IndexMetadata]:
    full = [index for index in parts if index.fragment_ids is not None and index.covers_any(fragment_ids)]
    if full:
        return full
    oldest = min(parts, key=lambda index: index.dataset_version)
    return [] if oldest.type_url.endswith("VectorIndexDetails") else [oldest]


def _parse_bitmap(message: table_pb2.IndexMetadata) -> pyroaring.FrozenBitMap | None:
    if not message.fragment_bitmap:
        return None
    try:
        return pyroaring.FrozenBitMap.deserialize(message.fragment_bitmap)
    except (ValueError, IndexError) as error:
        raise CorruptFileError(f"index {message.name[:100]!r} has a malformed bitmap of fragments: {error}") from error
