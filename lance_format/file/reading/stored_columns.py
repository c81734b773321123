"""The columns of one file: their metadata, which is loaded on demand, and the readers of their leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lance_format.byte_io import RangeReader
from lance_format.errors import CorruptFileError
from lance_format.file.columns.leaf_columns import Leaf
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.column_metadata import ColumnMetadata, parse_column
from lance_format.file.container.column_pages import ColumnPages
from lance_format.file.container.footer import FileMetadata, TailReader
from lance_format.file.container.legacy_metadata import LegacyMetadata
from lance_format.file.container.locating import Locating
from lance_format.file.container.search_cache import Key, SearchCache
from lance_format.file.reading.array_leaf import ArrayLeaf, has_byte_lists, list_fields
from lance_format.file.reading.column_reader import ColumnReader, LeafPages
from lance_format.file.reading.structural_leaf import StructuralLeaf


class StoredColumns:
    """The columns of a file.

    Parameters
    ----------
    source : RangeReader
    metadata : FileMetadata
    tail : TailReader
    cache : SearchCache
    key : tuple
        Key of the file in the cache.
    """

    def __init__(
        self, source: RangeReader, metadata: FileMetadata, tail: TailReader, cache: SearchCache, key: Key
    ) -> None:
        self._source = source
        self._metadata = metadata
        self._tail = tail
        self._cache = cache
        self._key = key

    def open(self, projections: Sequence[ColumnProjection]) -> list[list[ColumnReader]]:
        """Return the readers of the leaves of each projection.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        names: dict[int, str] = {}
        for projection in projections:
            with self._locating(projection.field.name):
                for leaf, number in projection.leaves:
                    for column in self.numbers_of(leaf, number, projection):
                        if not 0 <= column < self._metadata.num_columns:
                            raise CorruptFileError(
                                f"there is no column {column}; the file has {self._metadata.num_columns}"
                            )
                        names[column] = leaf.name
        pages = self.load(names)
        return [
            [
                self._reader(
                    leaf, self._with_bytes(leaf, number, [pages[n] for n in self.numbers_of(leaf, number, each)])
                )
                for leaf, number in each.leaves
            ]
            for each in projections
        ]

    def _with_bytes(self, leaf: Leaf, number: int, columns: list[ColumnPages]) -> list[ColumnPages]:
        """Add the column of the bytes of byte strings to those of a leaf, if they have a separate one."""
        if not has_byte_lists(leaf, columns[-1]):
            return columns
        if number + 1 >= self._metadata.num_columns:
            raise CorruptFileError(f"there is no column of the bytes of column {number}")
        return [*columns, self.load({number + 1: leaf.name})[number + 1]]

    def numbers_of(self, leaf: Leaf, number: int, projection: ColumnProjection) -> list[int]:
        """Return the columns that are needed to read a leaf; in 2.0 those of the lists around it come first.

        Parameters
        ----------
        leaf : Leaf
        number : int
            Column of the leaf according to the projection.
        projection : ColumnProjection

        Raises
        ------
        CorruptFileError
            If a file of format 0.1 has no column for the field.
        """
        if isinstance(self._metadata, LegacyMetadata):
            return [self._metadata.column_of(field.id) for field in (*list_fields(leaf), leaf.field)]
        if not self._metadata.version.has_array_encodings:
            return [number]
        return [*(projection.column_indices.get(field.id, -1) for field in list_fields(leaf)), number]

    def load(self, names: Mapping[int, str]) -> dict[int, ColumnPages]:
        """Return the pages of columns; the metadata that is not cached is read in one round.

        Parameters
        ----------
        names : mapping of int to str
            Names of the columns for errors, by their numbers in the file.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        loaded: dict[int, ColumnPages] = {}
        lacking = []
        for number in names:
            found = self._cache.get((*self._key, number))
            if isinstance(found, ColumnPages):
                loaded[number] = found
            else:
                lacking.append(number)
        for number, (column, num_bytes) in zip(lacking, self._read(lacking, names), strict=True):
            key = (*self._key, number)
            pages = loaded[number] = ColumnPages(column, self._cache, key)
            self._cache.put(key, pages, pages.memory_bytes(num_bytes))
        return loaded

    def _read(self, numbers: Sequence[int], names: Mapping[int, str]) -> Iterator[tuple[ColumnMetadata, int]]:
        """Yield the metadata of columns, and its size in the file."""
        if isinstance(self._metadata, LegacyMetadata):
            for number in numbers:
                with self._locating(names[number]):
                    yield self._metadata.column(number), 0
            return
        messages = self._tail.read([self._metadata.columns[number] for number in numbers])
        for number, message in zip(numbers, messages, strict=True):
            with self._locating(names[number]):
                yield parse_column(message, self._source.size_bytes, self._metadata.version), len(message)

    def _reader(self, leaf: Leaf, columns: Sequence[ColumnPages]) -> ColumnReader:
        return columns[-1].kept(leaf, lambda: self._make_reader(leaf, columns))

    def _make_reader(self, leaf: Leaf, columns: Sequence[ColumnPages]) -> ColumnReader:
        with self._locating(leaf.name):
            column = ColumnReader(self._leaf_pages(leaf, columns))
            if column.first_rows[-1] != self._metadata.num_rows:
                raise CorruptFileError(
                    f"the pages hold {column.first_rows[-1]} rows, the file {self._metadata.num_rows}"
                )
        return column

    def _leaf_pages(self, leaf: Leaf, columns: Sequence[ColumnPages]) -> LeafPages:
        *lists, values = columns
        if self._metadata.version.has_array_encodings:
            return ArrayLeaf(leaf, lists, values, self._metadata.global_buffers)
        return StructuralLeaf(leaf, values, self._metadata.version)

    def _locating(self, column: str) -> Locating:
        return Locating(self._source.path, column)
