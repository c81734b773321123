"""The indexed and the other rows of a column that is searched."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np

from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file.columns.field_paths import quoted_path
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import map_together
from lance_format.table.format.field_paths import find_field
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import FRAGMENT_REUSE_INDEX, IndexMetadata
from lance_format.table.indices.catalog import kind_of, path_of
from lance_format.table.indices.texts.index_files import load_facts
from lance_format.table.indices.texts.partition import Partition
from lance_format.table.text_search.flat_search import check_searchable
from lance_format.table.versions.table_version import TableVersion
from lance_format.texts.token_rules import PLAIN
from lance_format.texts.tokenizing import Tokenizer

_KIND = "Inverted"


@dataclass(frozen=True, slots=True, eq=False)
class SearchTarget:
    """A column that is searched.

    Parameters
    ----------
    column : str
    path : tuple of Field
        The fields from a column of the table to it.
    tokenizer : Tokenizer
    partitions : tuple of Partition
        Of its index; none if it has no index.
    others : tuple of FragmentMetadata
        The fragments that the index does not cover.
    """

    column: str
    path: tuple[Field, ...]
    tokenizer: Tokenizer
    partitions: tuple[Partition, ...]
    others: tuple[FragmentMetadata, ...]

    @classmethod
    def of(cls, table: TableVersion, column: str) -> SearchTarget:
        """Find the index of a column, if it has one.

        Raises
        ------
        InvalidInputError
            If there is no such column, or it has no texts.
        NotSupportedError
            If the index is of a form that is not known here.
        CorruptFileError
            If a file of the index is malformed.
        """
        path = find_field(table.manifest.schema, column)
        check_searchable(path)
        parts = parts_of(table.manifest.indices, path[-1].id)
        facts = list(map_together(table.store, functools.partial(load_facts, table), parts))
        rules = [found.rules for found in facts]
        if any(found != rules[0] for found in rules):
            raise NotSupportedError(
                f"the parts of index {parts[0].name!r} make tokens by different rules; make it again"
            )
        used = [(index, found) for index, found in zip(parts, facts, strict=True) if found.is_used]
        if any(index.name == FRAGMENT_REUSE_INDEX for index in table.manifest.indices):
            used = []  # Rows have moved since, so that the index names them by former addresses.
        partitions = tuple(Partition(table, index, number) for index, found in used for number in found.partitions)
        covered = np.concatenate([np.zeros(0, np.int64), *(index.covered_ids() for index, _ in used)])
        fragments = table.manifest.fragments
        others = np.flatnonzero(~np.isin(fragments.columns.ids, covered))
        return cls(
            column,
            path,
            Tokenizer(rules[0] if rules else PLAIN),
            partitions,
            tuple(fragments[position] for position in others.tolist()),
        )

    @property
    def has_positions(self) -> bool:
        """True if its index, if there is one, has the positions of tokens."""
        return not self.partitions or self.tokenizer.rules.with_position


def parts_of(indices: Sequence[IndexMetadata], field_id: int) -> list[IndexMetadata]:
    """Return the parts of the first text index of a field."""
    found = [index for index in indices if kind_of(index) == _KIND and index.fields == (field_id,)]
    return [index for index in found if index.name == found[0].name]


def indexed_columns(table: TableVersion) -> list[str]:
    """Return the columns that have text indices.

    Raises
    ------
    InvalidInputError
        If there is none.
    """
    fields = {index.fields[0]: None for index in _text_indices(table.manifest.indices)}
    if not fields:
        raise InvalidInputError(
            "no column has an INVERTED index; name the columns to search, as in {'query': …, 'columns': […]}"
        )
    paths = (path_of(table.manifest.schema.fields, field_id) for field_id in fields)
    return [quoted_path(field.name for field in path) for path in paths]


def _text_indices(indices: Iterable[IndexMetadata]) -> list[IndexMetadata]:
    return [index for index in indices if kind_of(index) == _KIND and len(index.fields) == 1]
