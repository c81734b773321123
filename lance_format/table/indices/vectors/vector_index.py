"""Vector indices of the family IVF: vectors in partitions around centroids, as codes.

`index.idx` has the centroids, and for some kinds a graph per partition. `auxiliary.idx` has the rows, partition by
partition: their ids, and the codes of their vectors. Both name a global buffer with an `IVF` message in the metadata of
their schemas (`lance:ivf`), and are described there in JSON: `lance:index` has the kind and the metric,
`storage_metadata` the parameters of the codes.

The rows of `index.idx` are the nodes of the graphs, level by level, as `lance:hnsw` tells. Partitions are read as a
whole: a graph only saves distances.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import CorruptFileError
from lance_format.file import ColumnProjection, FileReader, column_indices
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.named_rows import NamedRows
from lance_format.table.indices.opening import index_path, opening
from lance_format.table.indices.row_finder import RowIds, UnusableError
from lance_format.table.indices.vectors.described_file import DescribedFile, Tensor
from lance_format.table.indices.vectors.quantization import AnyQuantization
from lance_format.table.indices.vectors.quantizations import quantization_of
from lance_format.table.versions.table_version import TableVersion
from lance_format.vectors.codes import Codes, no_codes
from lance_format.vectors.graphs import StoredGraph
from lance_format.vectors.metrics import Vectors

VECTOR = "Vector"
"""Their kind, whatever the form of the vectors."""

INDEX_FILE = "index.idx"
ROWS_FILE = "auxiliary.idx"
_METRICS = ("l2", "cosine", "dot", "hamming")
ROW_ID = pa.field("_rowid", pa.uint64())
_GRAPHS = "lance:hnsw"
_GRAPH_COLUMNS = {"__vector_id": pa.uint32(), "__neighbors": pa.list_(pa.uint32())}
_BATCH_ROWS = 65_536
_GRAPH_ROWS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """The rows of a partition.

    Parameters
    ----------
    row_ids : uint64[num_rows]
    codes : numeric[num_rows, width]
    """

    row_ids: RowIds
    codes: Vectors


@dataclass(frozen=True, slots=True, eq=False)
class VectorIndex:
    """A part of an index.

    Parameters
    ----------
    kind : str
        As `IVF_PQ`.
    metric : str
    centroids : float32[num_partitions, dimension]
    starts, lengths : int64[num_partitions]
        The rows of each partition.
    codes : Codes
    number : np.dtype
        Of the numbers of the column, in which the file has the centroids.
    """

    kind: str
    metric: str
    centroids: npt.NDArray[np.float32]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    codes: Codes
    number: np.dtype[Any]

    @property
    def dimension(self) -> int:
        """Number of numbers per vector."""
        return int(self.centroids.shape[1])

    @property
    def has_graphs(self) -> bool:
        """Whether its partitions have graphs."""
        return self.kind.startswith("IVF_HNSW_")


class VectorIndexReader:
    """The files of a part of a vector index; a context manager.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata

    Raises
    ------
    UnusableError
        If it is of a kind or a form that is not known here.
    CorruptFileError
        If a file is malformed.
    DatasetNotFoundError
        If a file is missing.
    """

    def __init__(self, table: TableVersion, index: IndexMetadata) -> None:
        self._table = table
        self._part = index
        self._rows: FileReader | None = None
        self._opening = threading.Lock()
        key = (index.uuid, INDEX_FILE)
        cached = table.cache.of_indices.get(key)
        try:
            self.index = cached if isinstance(cached, VectorIndex) else self._load()
        except BaseException:
            self.__exit__()
            raise
        table.cache.of_indices.put(key, self.index, self.index.centroids.nbytes)

    def __enter__(self) -> VectorIndexReader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._rows is not None:
            self._rows.close()

    @property
    def cache_bytes(self) -> int:
        """Size of what is kept in memory of indices."""
        return self._table.cache.of_indices.capacity_bytes

    def read(self, number: int) -> Partition:
        """Return a partition, cached; several threads may do so.

        Raises
        ------
        CorruptFileError
            If a row has no id or no code.
        """
        key = (self._part.uuid, ROWS_FILE, number)
        cached = self._table.cache.of_indices.get(key)
        if isinstance(cached, Partition):
            return cached
        start, stop = self.index.starts[number], self.index.starts[number] + self.index.lengths[number]
        if start == stop:
            return Partition(np.zeros(0, np.uint64), no_codes(self.index.codes))
        names = [ROW_ID.name, *(column.name for column in self.index.codes.columns)]
        rows = _read_columns(self._open_rows(), names, int(start), int(stop))
        ids, *codes = (rows[name].chunk(0) for name in names)
        if any(_has_null(column) for column in (ids, *codes)):
            raise CorruptFileError("a row of a vector index has no id or no code", path=self._path(ROWS_FILE))
        found = Partition(ids.to_numpy(), self.index.codes.load(codes))
        self._table.cache.of_indices.put(key, found, found.row_ids.nbytes + found.codes.nbytes)
        return found

    def read_graph(self, number: int, partition: Partition) -> StoredGraph | None:
        """Return the graph of a partition, cached; None if it is not in the form that searches follow.

        Raises
        ------
        CorruptFileError
            If the file is malformed.
        """
        key = (self._part.uuid, _GRAPHS, number)
        cached = self._table.cache.of_indices.get(key)
        if isinstance(cached, StoredGraph):
            return cached
        file = self._open(INDEX_FILE)
        try:
            columns = _graph_columns(DescribedFile(file, self._path(INDEX_FILE)), number)
        finally:
            file.close()
        codes = np.ascontiguousarray(partition.codes)
        graph = None if columns is None else StoredGraph(codes, *columns)
        if graph is None or not graph.is_sound():
            return None
        copied_bytes = 0 if codes is partition.codes else codes.nbytes
        self._table.cache.of_indices.put(key, graph, graph.nbytes + copied_bytes)
        return graph

    def check_rest(self) -> None:
        """Check that each row is in a partition, and read the columns of the graphs.

        Raises
        ------
        CorruptFileError
            If one is in none, or a graph is malformed.
        """
        num_rows, found = self._open_rows().num_rows, int(self.index.lengths.sum())
        if found != num_rows:
            raise CorruptFileError(f"partitions have {found} of {num_rows} rows", path=self._path(ROWS_FILE))
        file = self._open(INDEX_FILE)
        try:
            indices = column_indices(file.schema, file.version)
            columns = [ColumnProjection(field, indices) for field in file.schema.fields]
            for _ in file.read(columns, 0, file.num_rows, batch_size=_GRAPH_ROWS):
                pass
        finally:
            file.close()

    def _path(self, name: str) -> str:
        return index_path(self._table, self._part, name)

    def _open_rows(self) -> FileReader:
        with self._opening:
            if self._rows is None:
                self._rows = self._open(ROWS_FILE)
            return self._rows

    def _open(self, name: str) -> FileReader:
        with opening(self._table, self._part, name) as (source, verification):
            return FileReader(source, self._table.cache.of_indices, verification=verification)

    def _load(self) -> VectorIndex:
        """Read the description of the index and of its codes."""
        file = self._open(INDEX_FILE)
        try:
            described = DescribedFile(file, self._path(INDEX_FILE))
            kind, metric = described.json("lance:index").get("type"), described.json("lance:index").get("distance_type")
            centroids = described.partitions().centroids_tensor
            rows = DescribedFile(self._open_rows(), self._path(ROWS_FILE))
            quantization = quantization_of(str(kind))
            if quantization is None or metric not in _METRICS:
                raise UnusableError(f"its kind is {kind!r}, its metric {metric!r}")
            if self._part.message.index_version > quantization.newest_version:
                raise UnusableError(f"it is of version {self._part.message.index_version}")
            return _checked(str(kind), str(metric), described.tensor(centroids), rows, quantization)
        finally:
            file.close()


def check_vectors(table: TableVersion, index: IndexMetadata) -> None:
    """Read a part of an index partition by partition, and the graphs that it may have; see `IndexKind.check`."""
    rows = NamedRows(table, index, by_id=table.manifest.stable_row_ids)
    path = index_path(table, index, ROWS_FILE)
    with VectorIndexReader(table, index) as reader:
        for number in range(reader.index.lengths.size):
            rows.check(reader.read(number).row_ids, path)
        reader.check_rest()


def _read_columns(file: FileReader, names: Collection[str], start: int, stop: int) -> pa.Table:
    """Read some rows of columns, each in one chunk if an array can hold it."""
    indices = column_indices(file.schema, file.version)
    wanted = [ColumnProjection(field, indices) for field in file.schema.fields if field.name in names]
    return pa.Table.from_batches(file.read(wanted, start, stop, batch_size=_BATCH_ROWS)).combine_chunks()


def _graph_columns(described: DescribedFile, number: int) -> tuple[Any, ...] | None:
    """Return the parts of a `StoredGraph` after the codes; None if one is of another form, or no array can hold it.

    Raises
    ------
    CorruptFileError
        If the file does not have the rows of the graph.
    """
    told, extents = described.json(_GRAPHS, number), described.partitions()
    if number >= min(len(extents.offsets), len(extents.lengths)):
        raise described.corrupt(f"it has the graphs of {len(extents.offsets)} partitions")
    start, stop = extents.offsets[number], extents.offsets[number] + extents.lengths[number]
    if stop > described.file.num_rows:
        raise described.corrupt(f"the graph of partition {number} ends after its last row")
    types, bounds, entry = described.column_types(), told.get("level_offsets"), told.get("entry_point")
    is_described = isinstance(bounds, list) and all(isinstance(bound, int) for bound in (*bounds, entry))
    if not is_described or start == stop or any(types.get(name) != found for name, found in _GRAPH_COLUMNS.items()):
        return None
    rows = _read_columns(described.file, _GRAPH_COLUMNS, start, stop)
    ids, neighbors = (rows[name].chunk(0) for name in _GRAPH_COLUMNS)
    if len(neighbors) < stop - start or ids.null_count or neighbors.null_count or neighbors.values.null_count:
        return None
    return (
        np.array(bounds, np.int64),
        ids.to_numpy(),
        neighbors.offsets.to_numpy(),
        neighbors.values.to_numpy(),
        entry,
    )


def _has_null(column: pa.Array) -> bool:
    return bool(column.null_count or (pa.types.is_fixed_size_list(column.type) and column.values.null_count))


def _checked(
    kind: str, metric: str, centroids: Tensor, rows: DescribedFile, quantization: AnyQuantization
) -> VectorIndex:
    """Return the index if its files agree."""
    partitions = rows.partitions()
    lengths = np.array(partitions.lengths, np.int64)
    starts = np.array(partitions.offsets, np.uint64)
    num_rows = rows.file.num_rows
    if not lengths.size == starts.size == centroids.shape[0]:
        raise rows.corrupt(f"{centroids.shape[0]} centroids, but {starts.size} partitions")
    if (starts > np.uint64(num_rows)).any() or (starts.astype(np.int64) + lengths > num_rows).any():
        raise rows.corrupt(f"a partition ends after the last of {num_rows} rows")
    codes = quantization.read(rows, int(centroids.shape[1]), metric)
    expected = {field.name: field.type for field in (ROW_ID, *codes.columns)}
    found = rows.column_types()
    if any(found.get(name) != value_type for name, value_type in expected.items()):
        raise UnusableError(f"it has the columns {found} instead of {expected}")
    return VectorIndex(
        kind, metric, centroids.astype(np.float32), starts.astype(np.int64), lengths, codes, centroids.dtype
    )
