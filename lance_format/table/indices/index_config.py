"""Requests for indices: the kind, its parameters, and whether a column can have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.blob_fields import has_blobs
from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.indices.index_kind import IndexKind
from lance_format.table.indices.index_kinds import KINDS, kind_called


@checked_methods
@dataclass(frozen=True, slots=True)
class IndexConfig:
    """A kind of index and its parameters.

    Parameters
    ----------
    index_type : str
        "ZONEMAP", "BTREE", "BITMAP", "LABEL_LIST", "BLOOMFILTER" or "NGRAM", for text search "INVERTED" or "FTS", or of
        vectors "IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ" or "IVF_HNSW_SQ".
    parameters : mapping of str to object
        Of ZONEMAP: `rows_per_zone`, by default 8192: smaller zones skip more rows and make a larger index. `use_seeds`:
        whether to update the index from statistics in data files, even if these leave open which rows are null, and
        whether pylance stores them in its files too; by default for values of more than 8 bytes. Of BTREE:
        `zone_size`, by default 4096: the number of values that are read together. Of BLOOMFILTER: `number_of_items`, by
        default 8192: the number of rows per zone, and `probability`, by default 0.00057: that a zone is read in vain.
        Of vectors: see `LanceDataset.create_index`, whose `metric` is called `distance_type`, too. Of INVERTED, with
        pylance's defaults: `with_position`: whether to store positions, which phrases need. `base_tokenizer`: "simple",
        "whitespace", "raw" or "ngram". `language`, `stem`, `remove_stop_words` and `custom_stop_words`.
        `max_token_length`: words of as many bytes and more are dropped. `lower_case` and `ascii_folding`: whether case
        and accents are ignored. Of "ngram" only, `min_ngram_length`, `max_ngram_length` and `prefix_only`. The others
        have none.
    """

    index_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def parse_config(asked: str | IndexConfig, field: Field) -> tuple[IndexKind[Any, Any], Any]:
    """Parse the configuration of an index, and return its kind and the parameters, with defaults filled in.

    Raises
    ------
    InvalidInputError
        If a parameter is invalid.
    NotSupportedError
        If the index type is another one, or cannot hold the values of the column.
    """
    name = asked if isinstance(asked, str) else getattr(asked, "index_type", None)
    parameters = {} if isinstance(asked, str) else dict(getattr(asked, "parameters", None) or {})
    *others, last = KINDS
    known = f"{', '.join(others)} and {last}"
    if not isinstance(name, str):
        raise InvalidInputError(f"index_type is {asked!r}; {known}, or an IndexConfig is needed")
    kind = kind_called(name)
    if kind is None:
        raise NotSupportedError(f"indices of type {name} cannot be made; {known} can, and pylance makes others")
    return kind, kind.configure(parameters, field)


def check_indexable(path: Sequence[Field], column: str) -> None:
    """Check that a column can have an index.

    Raises
    ------
    NotSupportedError
        If zones cannot hold its values.
    """
    field = path[-1]
    if any(parent.logical_type != "struct" for parent in path[:-1]):
        raise NotSupportedError(f"column {column!r} is inside of lists, which cannot be indexed")
    if has_blobs(field) or field.logical_type == "null":
        kind = "has blobs" if has_blobs(field) else "is of type null"
        raise NotSupportedError(f"column {column!r} {kind}, which cannot be indexed")
