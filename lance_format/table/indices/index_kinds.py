"""The kinds of indices that this library makes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lance_format.errors import NotSupportedError
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.catalog import kind_of
from lance_format.table.indices.index_kind import IndexKind
from lance_format.table.indices.kinds import (
    bitmap_index,
    bloom_filter_index,
    btree_index,
    label_list_index,
    ngram_index,
)
from lance_format.table.indices.kinds.bitmap_file import write_bitmaps
from lance_format.table.indices.kinds.bloom_filter_file import BLOOM_PARAMETERS, write_bloom_filters
from lance_format.table.indices.kinds.bloom_filter_index import can_hash
from lance_format.table.indices.kinds.btree_file import BTREE_PARAMETERS, write_btree
from lance_format.table.indices.kinds.label_list_file import write_label_lists
from lance_format.table.indices.kinds.label_list_index import has_labels
from lance_format.table.indices.kinds.ngram_file import write_trigrams
from lance_format.table.indices.kinds.ngram_index import is_text
from lance_format.table.indices.row_finder import UnusableError
from lance_format.table.indices.row_kind import RowIndexKind
from lance_format.table.indices.texts import text_check
from lance_format.table.indices.texts.partition_file import FORMAT_VERSION
from lance_format.table.indices.texts.text_kind import TextIndexKind, write_texts
from lance_format.table.indices.vectors.quantizations import QUANTIZATIONS
from lance_format.table.indices.vectors.vector_index import VECTOR, check_vectors
from lance_format.table.indices.vectors.vector_kind import VectorKind, vector_kind_of
from lance_format.table.indices.zones.zone_map_kind import ZoneMapKind
from lance_format.table.versions.table_version import TableVersion
from lance_format.texts.tokenizing import has_texts

_LOGGER = logging.getLogger(__name__)
_ALL: tuple[IndexKind[Any, Any], ...] = (
    ZoneMapKind(),
    RowIndexKind(
        "BTREE", "lance.table.BTreeIndexDetails", write_btree, btree_index.check_part, parameters=BTREE_PARAMETERS
    ),
    RowIndexKind("BITMAP", "lance.table.BitmapIndexDetails", write_bitmaps, bitmap_index.check_part),
    RowIndexKind(
        "LABEL_LIST",
        "lance.table.LabelListIndexDetails",
        write_label_lists,
        label_list_index.check_part,
        has_labels,
        "lists of numbers, booleans, strings, binary values, dates and times",
        version=1,
    ),
    RowIndexKind(
        "BLOOMFILTER",
        "lance.index.pb.BloomFilterIndexDetails",
        write_bloom_filters,
        bloom_filter_index.check_part,
        can_hash,
        "integers, floating-point numbers of 32 and 64 bits, strings, binary values, dates and times",
        BLOOM_PARAMETERS,
        by_address=True,
    ),
    RowIndexKind("NGRAM", "lance.table.NGramIndexDetails", write_trigrams, ngram_index.check_part, is_text, "strings"),
    TextIndexKind(
        "INVERTED",
        "lance.table.InvertedIndexDetails",
        write_texts,
        text_check.check_part,
        has_texts,
        "strings and lists of strings",
        version=FORMAT_VERSION,
    ),
    *(VectorKind(f"IVF_{name}", found) for name, found in QUANTIZATIONS.items()),
    *(VectorKind(f"IVF_HNSW_{name}", found, has_graphs=True) for name, found in QUANTIZATIONS.items() if found.decodes),
)

KINDS: Mapping[str, IndexKind[Any, Any]] = MappingProxyType({kind.name: kind for kind in _ALL})


def made_here(index: IndexMetadata) -> IndexKind[Any, Any] | None:
    """Return the kind of an index; None if this library does not make it."""
    name = kind_of(index)
    return kind_called((vector_kind_of(index) or "") if name == VECTOR else name)


def check_content(table: TableVersion, index: IndexMetadata) -> None:
    """Read the whole content of a part of an index as searches do; nothing if they do not use it.

    Raises
    ------
    CorruptFileError
        If it is malformed, or names rows that there are not.
    DatasetNotFoundError
        If a file is missing.
    """
    kind = made_here(index)
    try:
        if kind is not None:
            kind.check(table, index)
        elif kind_of(index) == VECTOR:  # Of vectors of bytes, say, which are not made here.
            check_vectors(table, index)
    except (NotSupportedError, UnusableError) as error:
        _LOGGER.info("the content of index %r is not read: %s", index.name, error)


def kind_called(name: str) -> IndexKind[Any, Any] | None:
    """Return the kind of a name, in any case, with underscores or without; None if it is not made here."""
    spelled = name.upper().replace("_", "")
    spelled = "INVERTED" if spelled == "FTS" else spelled
    return next((kind for kind in KINDS.values() if kind.name.replace("_", "") == spelled), None)
