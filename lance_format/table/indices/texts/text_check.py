"""Reading of the whole content of a part of a text index, which searches read token by token."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lance_format.errors import CorruptFileError
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.named_rows import NamedRows
from lance_format.table.indices.opening import index_path
from lance_format.table.indices.texts.index_files import (
    FIRST_FORM_FILES,
    METADATA_FILE,
    PartFile,
    load_facts,
    open_file,
)
from lance_format.table.indices.texts.partition import Partition
from lance_format.table.indices.texts.posting_list import read_lists
from lance_format.table.versions.table_version import TableVersion
from lance_format.texts.bm25 import mean_length

_POSTINGS_AT_ONCE = 1 << 20
_TOKENS_AT_ONCE = 4096


def check_part(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> None:  # noqa: ARG001
    """Read all partitions; see `CheckPart`."""
    facts = load_facts(table, index)
    rows = NamedRows(table, index, by_id=table.manifest.stable_row_ids)
    for name in [METADATA_FILE] if facts.is_used else FIRST_FORM_FILES:
        with open_file(table, index, name) as file:
            file.check(0, file.num_rows)
    for number in facts.partitions:
        partition = Partition(table, index, number)
        documents = partition.documents
        rows.check(documents.row_ids, index_path(table, index, partition.file_name("docs")))
        with open_file(table, index, partition.file_name("tokens")) as file:
            file.check(0, file.num_rows)
            tokens = partition.dictionary
            tokens.check()
        with open_file(table, index, partition.file_name("invert")) as file:
            if tokens.num_tokens != file.num_rows:
                raise CorruptFileError(f"{file.num_rows} posting lists for {tokens.num_tokens} tokens", path=file.path)
            mean = mean_length(documents.num_tokens, documents.lengths.size)
            for start, stop in _groups(file):
                wanted = list(range(start, stop))
                read_lists(file, wanted, documents.lengths, mean, with_positions=facts.rules.with_position)
                file.check(start, stop)


def _groups(file: PartFile) -> Iterator[tuple[int, int]]:
    """Yield ranges of tokens with about as many postings, and not too many of them."""
    lengths = file.read("_length")
    if lengths.null_count:
        raise CorruptFileError("the length of a posting list is null", path=file.path)
    ends, start = np.cumsum(lengths.to_numpy(), dtype=np.int64), 0
    while start < ends.size:
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + _POSTINGS_AT_ONCE, side="right"))
        stop = min(max(stop, start + 1), start + _TOKENS_AT_ONCE)
        yield start, stop
        start = stop
