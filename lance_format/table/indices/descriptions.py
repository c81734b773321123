"""Descriptions of the indices of a table, for users."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.catalog import kind_of, path_of
from lance_format.table.indices.index_kinds import made_here
from lance_format.table.indices.vectors.vector_index import VECTOR
from lance_format.table.indices.vectors.vector_kind import vector_form_of
from lance_format.table.versions.table_version import TableVersion


@dataclass(frozen=True, slots=True)
class IndexSegmentDescription:
    """A part of an index.

    Parameters
    ----------
    uuid : str
        Names the directory of its files.
    fragment_ids : set of int, optional
        The fragments that it covers, of which some may be gone; None if it does not say.
    index_version : int
        Version of its format.
    dataset_version_at_last_update : int
        The version of the table that it was built on.
    created_at : datetime.datetime, optional
        In UTC; None if it does not say.
    size_bytes : int, optional
        Of its files; None if it does not say.
    base_id : int, optional
        Key of the directory that has its files, where that is not the table itself.
    """

    uuid: str
    fragment_ids: set[int] | None
    index_version: int
    dataset_version_at_last_update: int
    created_at: datetime.datetime | None
    size_bytes: int | None
    base_id: int | None


@dataclass(frozen=True, slots=True)
class IndexDescription:
    """An index.

    Parameters
    ----------
    name : str
    index_type : str
        As "BTree" or "IVF_PQ".
    type_url : str
        As manifests say it; empty if they do not.
    fields : list of int
        The ids of its columns.
    field_names : list of str
        Their dotted paths.
    num_rows_indexed : int
        Live rows of the fragments that it covers.
    total_size_bytes : int, optional
        Of its files; None if a part does not say.
    details : mapping of str to object
        What the manifest tells of vectors (`metric_type`, `compression`, `hnsw`) and of texts (their tokenizer).
    segments : list of IndexSegmentDescription
    """

    name: str
    index_type: str
    type_url: str
    fields: list[int]
    field_names: list[str]
    num_rows_indexed: int
    total_size_bytes: int | None
    details: Mapping[str, Any]
    segments: list[IndexSegmentDescription]

    @property
    def num_segments(self) -> int:
        """The number of its parts."""
        return len(self.segments)


def type_of(index: IndexMetadata) -> str:
    """Return the kind of an index in pylance's spelling; of vectors, with the form that they have."""
    kind = kind_of(index)
    return vector_form_of(index) or kind if kind == VECTOR else kind


def list_indices(table: TableVersion) -> list[dict[str, Any]]:
    """Return the parts of all indices as dictionaries; see `LanceDataset.list_indices`."""
    return [
        {
            "name": index.name,
            "type": type_of(index),
            "uuid": index.uuid,
            "fields": _field_names(table, index),
            "version": index.dataset_version,
            "fragment_ids": _fragment_ids(index),
            "base_id": index.base_id,
        }
        for index in table.manifest.indices
        if not index.is_system
    ]


def describe_indices(table: TableVersion) -> list[IndexDescription]:
    """Return all indices; see `LanceDataset.describe_indices`."""
    listed = sorted((index for index in table.manifest.indices if not index.is_system), key=lambda index: index.name)
    return [_describe(table, list(parts)) for _, parts in itertools.groupby(listed, key=lambda index: index.name)]


def _describe(table: TableVersion, parts: Sequence[IndexMetadata]) -> IndexDescription:
    first, segments = parts[0], [_describe_part(part) for part in parts]
    sizes = [segment.size_bytes for segment in segments if segment.size_bytes is not None]
    kind = made_here(first)
    return IndexDescription(
        first.name,
        type_of(first),
        first.type_url,
        list(first.fields),
        _field_names(table, first),
        sum(_num_rows(table, part) for part in parts),
        sum(sizes) if len(sizes) == len(segments) else None,
        {} if kind is None else kind.told(first),
        segments,
    )


def _describe_part(index: IndexMetadata) -> IndexSegmentDescription:
    message, created = index.message, None
    if message.HasField("created_at"):
        created = datetime.datetime.fromtimestamp(message.created_at / 1000, datetime.UTC)
    return IndexSegmentDescription(
        index.uuid,
        _fragment_ids(index),
        message.index_version,
        index.dataset_version,
        created,
        sum(file.size_bytes for file in message.files) if message.files else None,
        index.base_id,
    )


def _num_rows(table: TableVersion, index: IndexMetadata) -> int:
    is_covered = np.isin(table.manifest.fragments.columns.ids, index.covered_ids())
    return int(table.num_rows()[is_covered].sum())


def _fragment_ids(index: IndexMetadata) -> set[int] | None:
    return None if index.fragment_ids is None else set(index.fragment_ids)


def _field_names(table: TableVersion, index: IndexMetadata) -> list[str]:
    paths = (path_of(table.manifest.schema.fields, field_id) for field_id in index.fields)
    return [".".join(field.name for field in path) for path in paths if path]
