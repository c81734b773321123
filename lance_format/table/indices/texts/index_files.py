"""The files of a part of a text index.

| file | rows | columns |
|---|---|---|
| `metadata.lance` | | metadata of the schema: `params`, the rules of tokens, and `partitions`, numbers of partitions |
| `part_<number>_tokens.lance` | 1 | `_token_fst_bytes`: the tokens; see `dictionary.py` |
| the same, of early releases | per token | `_token`: string, and `_token_id`: uint32, row of its posting list |
| `part_<number>_docs.lance` | per document | `_rowid`: uint64, and `_num_tokens`: uint32 |
| `part_<number>_invert.lance` | per token | `_posting`: blocks, `_length`: uint32, number of documents, and positions |

Those of the first form, up to 0.26, are `tokens.lance`, whose metadata has the rules, `docs.lance` and `invert.lance`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from lance_format.errors import CorruptFileError, DatasetNotFoundError, NotSupportedError
from lance_format.file import ColumnProjection, FileReader, column_indices
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.opening import index_path, naming, opening
from lance_format.table.indices.single_rows import check_single_rows
from lance_format.table.versions.table_version import TableVersion
from lance_format.texts.token_rules import TokenRules

METADATA_FILE = "metadata.lance"
NEWEST_VERSION = 2
"""The latest form of posting lists that is known here."""

_BLOCKS = pa.list_(pa.large_binary())
_KNOWN: Mapping[str, pa.DataType] = {
    "_token_fst_bytes": pa.large_binary(),
    "_token": pa.string(),
    "_token_id": pa.uint32(),
    "_rowid": pa.uint64(),
    "_num_tokens": pa.uint32(),
    "_posting": _BLOCKS,
    "_length": pa.uint32(),
    "_position": pa.list_(_BLOCKS),
    "_compressed_position": pa.large_binary(),
    "_position_block_offset": pa.list_(pa.uint32()),
}
_BATCH_ROWS = 1 << 16
FIRST_FORM_FILES = ("tokens.lance", "docs.lance", "invert.lance")
_TOKEN_FORMS = (None, b"arrow", b"fst")


class PartFile:
    """A file that is read in parts; a context manager made by `open_file`.

    Parameters
    ----------
    reader : FileReader
    path : str
    """

    def __init__(self, reader: FileReader, path: str) -> None:
        self._reader = reader
        self.path = path
        indices = column_indices(reader.schema, reader.version)
        self._columns = {field.name: ColumnProjection(field, indices) for field in reader.schema.fields}

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._reader.num_rows

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of the schema."""
        return dict(self._reader.schema.metadata)

    def has(self, name: str) -> bool:
        """Return whether there is a column."""
        return name in self._columns

    def read(self, name: str) -> pa.Array:
        """Read a whole column."""
        column = self._column(name)
        batches = list(self._reader.read([column], 0, self.num_rows, batch_size=_BATCH_ROWS))
        arrays = [_typed(batch.column(0), name) for batch in batches]
        return pa.concat_arrays(arrays) if arrays else pa.array([], _KNOWN[name])

    def take(self, name: str, rows: list[int]) -> pa.Array:
        """Read a column of some rows, in their order.

        Raises
        ------
        CorruptFileError
            If there is no such row.
        """
        if any(not 0 <= row < self.num_rows for row in rows):
            raise CorruptFileError(f"row {max(rows)} is needed, and there are {self.num_rows}", path=self.path)
        distinct, places = np.unique(np.array(rows, np.int64), return_inverse=True)
        batch = self._reader.take([self._column(name)], distinct)
        return _typed(batch.column(0), name).take(pa.array(places))

    def check(self, start: int, stop: int) -> None:
        """Read all columns of some rows, together and one by one, also those that are not used here.

        Raises
        ------
        CorruptFileError
            If they are malformed.
        """
        columns = list(self._columns.values())
        for batch in self._reader.read(columns, start, stop, batch_size=_BATCH_ROWS):
            check_single_rows(self._reader, columns, start, batch, self.path)
            start += batch.num_rows

    def _column(self, name: str) -> ColumnProjection:
        found = self._columns.get(name)
        if found is None or not _is_like(found.field.to_arrow_type(), _KNOWN[name]):
            kind = "no" if found is None else str(found.field.to_arrow_type())
            raise CorruptFileError(f"there is {kind} column {name} of {_KNOWN[name]}", path=self.path)
        return found


def _is_like(found: pa.DataType, known: pa.DataType) -> bool:
    if pa.types.is_list(found) and pa.types.is_list(known):
        return _is_like(found.value_type, known.value_type)
    return bool(found == known)


def _typed(array: pa.Array, name: str) -> pa.Array:
    return array if array.type == _KNOWN[name] else array.cast(_KNOWN[name])


@contextlib.contextmanager
def open_file(table: TableVersion, index: IndexMetadata, name: str) -> Iterator[PartFile]:
    """Open a file of a part of an index.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata
    name : str

    Raises
    ------
    CorruptFileError
        If it is malformed.
    DatasetNotFoundError
        If it is missing.
    """
    path = index_path(table, index, name)
    try:
        with naming(index):
            with opening(table, index, name) as (source, verification):
                reader = FileReader(source, table.cache.of_indices, verification=verification)
            try:
                yield PartFile(reader, path)
            except CorruptFileError as error:
                raise error.retold(error.what, path=path) from error
            finally:
                reader.close()
    except NotSupportedError as error:
        raise NotSupportedError(f"index {index.name!r}: {error} ({path})") from error


@dataclass(frozen=True, slots=True, eq=False)
class PartFacts:
    """Content of `metadata.lance`.

    Parameters
    ----------
    rules : TokenRules
    partitions : tuple of int
        Numbers of its partitions.
    is_used : bool
        False if it is of the first form, which has no partitions and is not searched: its rows are as if not indexed.
    """

    rules: TokenRules
    partitions: tuple[int, ...]
    is_used: bool = True


def load_facts(table: TableVersion, index: IndexMetadata) -> PartFacts:
    """Return the rules and the partitions of a part of an index, cached.

    Raises
    ------
    NotSupportedError
        If it is of a form that is not known here.
    CorruptFileError
        If its file is malformed.
    """
    key = (index_path(table, index, METADATA_FILE), "facts")
    cached = table.cache.of_indices.get(key)
    if isinstance(cached, PartFacts):
        return cached
    if index.message.index_version > NEWEST_VERSION:
        raise NotSupportedError(
            f"index {index.name!r} is of version {index.message.index_version}, for code, blocks of 256 or elements of"
            f" lists; text indices up to version {NEWEST_VERSION} are supported"
        )
    try:
        with open_file(table, index, METADATA_FILE) as file:
            facts = _parse_facts(file.metadata, file.path)
    except DatasetNotFoundError:
        if table.store.sizes([index_path(table, index, FIRST_FORM_FILES[0])]) == [None]:
            raise
        with open_file(table, index, FIRST_FORM_FILES[0]) as file:
            rules = TokenRules.parse(file.metadata.get(b"tokenizer", b"{}"), file.path)
        facts = PartFacts(rules, (), is_used=False)
    table.cache.of_indices.put(key, facts, 1024)
    return facts


def _parse_facts(metadata: Mapping[bytes, bytes], path: str) -> PartFacts:
    rules = TokenRules.parse(metadata.get(b"params", b""), path)
    try:
        numbers = json.loads(metadata.get(b"partitions", b""))
    except ValueError as error:
        raise CorruptFileError(f"malformed numbers of partitions: {error}", path=path) from error
    if not isinstance(numbers, list) or not all(isinstance(x, int) and 0 <= x < 2**64 for x in numbers):
        raise CorruptFileError(f"malformed numbers of partitions: {numbers!r}", path=path)
    form = metadata.get(b"token_set_format")
    if form not in _TOKEN_FORMS:
        raise NotSupportedError(f"tokens of the form {form!r} are not supported")
    return PartFacts(rules, tuple(numbers))
