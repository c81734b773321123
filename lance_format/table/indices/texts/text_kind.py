"""INVERTED indices that this library makes. Tasks tokenize the texts of their fragments, and write a part each."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyroaring
from google.protobuf.message import DecodeError

from lance_format.datatypes import Field
from lance_format.errors import LanceError, NotSupportedError
from lance_format.kernels.texts.posting_lists import BLOCK_ROWS
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import index_pb2
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.part_rows import PartRows, cut
from lance_format.table.indices.row_finder import RowIds, is_of_version
from lance_format.table.indices.row_kind import RowIndexKind
from lance_format.table.indices.texts.gathered_tokens import GatheredTokens
from lance_format.table.indices.texts.index_files import METADATA_FILE, NEWEST_VERSION, load_facts
from lance_format.table.indices.texts.partition_file import (
    FORMAT_VERSION,
    POSITION_METADATA,
    POSTING_METADATA,
    write_partition,
)
from lance_format.table.indices.written_parts import OpenFile, write_file
from lance_format.table.versions.table_version import TableVersion
from lance_format.texts.token_rules import SPLITTERS, TokenRules
from lance_format.texts.tokenizing import Tokenizer, joined_texts

_LOGGER = logging.getLogger(__name__)
_BYTES_AT_ONCE = 4 << 20
"""Of texts that are tokenized together."""

_MOST_OCCURRENCES = 1 << 23
"""Of tokens, from which on a partition gets no more texts."""

_METADATA_COLUMNS = [pa.field("deleted_fragments", pa.binary(), nullable=False)]


@dataclass(frozen=True, slots=True)
class TextIndexKind(RowIndexKind):
    """Kind of a text index. Its parameters are those of `TokenRules`."""

    def configure(self, parameters: Mapping[str, Any], field: Field) -> Mapping[str, Any]:
        """See `IndexKind.configure`."""
        if field.logical_type == "json":
            raise NotSupportedError(f"column {field.name!r} has JSON, which {self.name} indices made here cannot hold")
        RowIndexKind.configure(self, {}, field)
        return dataclasses.asdict(TokenRules.asked(parameters))

    def knows(self, index: IndexMetadata) -> bool:
        """See `IndexKind.knows`."""
        details = _parse_details(index)
        return (
            details is not None
            and details.base_tokenizer in ("", *SPLITTERS)
            and details.block_size in (0, BLOCK_ROWS)
            and is_of_version(index, NEWEST_VERSION)
        )

    def stored_details(self, table: TableVersion, index: IndexMetadata) -> Mapping[str, Any]:
        """See `IndexKind.stored_details`."""
        try:
            rules = load_facts(table, index).rules
        except LanceError as error:  # The index is about to be written again, perhaps because it is damaged.
            _LOGGER.info("index %r gets the rules that the manifest tells: %s", index.name, error)
            rules = _told_rules(index)
        return dataclasses.asdict(rules)

    def told(self, index: IndexMetadata) -> Mapping[str, Any]:
        """See `IndexKind.told`: the parameters of the index, but stop words of its own."""
        return dataclasses.asdict(_told_rules(index))

    def serialize_details(self, parameters: Mapping[str, Any]) -> bytes:
        """See `RowIndexKind.serialize_details`."""
        rules = TokenRules(**parameters)
        told = {field.name for field in dataclasses.fields(rules)} - {"language", "custom_stop_words"}
        details = index_pb2.TextIndexDetails(
            language=json.dumps(rules.language),
            block_size=BLOCK_ROWS,
            format_version=FORMAT_VERSION,
            **{name: getattr(rules, name) for name in told},
        )
        return details.SerializeToString(deterministic=True)


def write_texts(rows: PartRows, parameters: Mapping[str, Any], open_file: OpenFile) -> dict[str, int]:
    """Write the files of a part; see `lance_format.table.indices.row_kind.WriteRows`."""
    rules = TokenRules(**parameters)
    tokenizer = Tokenizer(rules)
    sizes: dict[str, int] = {}
    gathered, number = GatheredTokens(tokenizer), 0
    for texts, ids in _slices(rows):
        gathered.add(texts, ids)
        if gathered.num_occurrences >= _MOST_OCCURRENCES:
            sizes |= write_partition(open_file, number, gathered, with_positions=rules.with_position)
            gathered, number = GatheredTokens(tokenizer), number + 1
    if gathered.num_documents or not number:
        sizes |= write_partition(open_file, number, gathered, with_positions=rules.with_position)
        number += 1
    metadata = {
        **POSTING_METADATA,
        **(POSITION_METADATA if rules.with_position else {}),
        b"params": rules.serialize().encode(),
        b"partitions": json.dumps([*range(number)]).encode(),
        b"token_set_format": b"fst",
    }
    row = [pa.array([pyroaring.BitMap().serialize()], pa.binary())]
    sizes[METADATA_FILE] = write_file(open_file, METADATA_FILE, _METADATA_COLUMNS, [row], metadata)
    return sizes


def _slices(rows: PartRows) -> Iterator[tuple[pa.Array, RowIds]]:
    """Yield texts that are not null and the ids of their rows, some at a time. Lists are joined."""
    is_list = pa.types.is_nested(rows.value_type)
    for values, ids in rows:
        if values.null_count and not is_list:
            kept = values.is_valid()
            values, ids = values.filter(kept), ids[np.asarray(kept.to_numpy(zero_copy_only=False))]
        for texts, text_ids in cut(values, ids, _BYTES_AT_ONCE):
            yield joined_texts(texts) if is_list else texts, text_ids


def _parse_details(index: IndexMetadata) -> index_pb2.TextIndexDetails | None:
    try:
        return index_pb2.TextIndexDetails.FromString(index.message.index_details.value)
    except DecodeError:
        return None


def _told_rules(index: IndexMetadata) -> TokenRules:
    """Return the rules that the metadata of an index tells: all but stop words of its own."""
    details = _parse_details(index)
    if details is None or not details.base_tokenizer:
        return TokenRules()
    told = {
        field.name: getattr(details, field.name)
        for field in dataclasses.fields(TokenRules)
        if field.name != "custom_stop_words"
    }
    told["max_token_length"] = details.max_token_length if details.HasField("max_token_length") else None
    told["language"] = details.language.strip('"') or TokenRules().language  # JSON, and absent from early releases.
    return TokenRules.asked(told)
