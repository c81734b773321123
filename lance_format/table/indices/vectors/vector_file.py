"""Writing the files of a vector index; see `lance_format.table.indices.vectors.vector_index`."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import cast

import numpy as np
import pyarrow as pa

from lance_format.file import FileWriter
from lance_format.proto import index_pb2
from lance_format.table.indices.vectors.described_file import tensor_message
from lance_format.table.indices.vectors.quantization import AnyQuantization
from lance_format.table.indices.vectors.vector_index import INDEX_FILE, ROW_ID, ROWS_FILE, Partition
from lance_format.table.indices.written_parts import OpenFile
from lance_format.vectors.codes import DecodableCodes
from lance_format.vectors.graphs import GraphParameters, NeighborGraph
from lance_format.vectors.metrics import Vectors
from lance_format.vectors.training import VectorModel

_MARKER = pa.field("__flat_marker", pa.uint64(), nullable=False)
_GRAPH_COLUMNS = (
    pa.field("__vector_id", pa.uint32()),
    pa.field("__neighbors", pa.list_(pa.uint32())),
    pa.field("_distance", pa.list_(pa.float32())),
)


def write_vectors(
    kind: str,
    quantization: AnyQuantization,
    model: VectorModel,
    partitions: Iterable[Partition],
    open_file: OpenFile,
    *,
    graphs: GraphParameters | None = None,
) -> dict[str, int]:
    """Write both files, and return their sizes in bytes by name.

    Parameters
    ----------
    kind : str
        As `IVF_PQ`.
    quantization : Quantization
    model : VectorModel
    partitions : iterable of Partition
        One for each centroid.
    open_file : callable
    graphs : GraphParameters, optional
        Of the graphs of the partitions, if the kind has some.
    """
    rows = _Rows(quantization, model, open_file)
    try:
        sizes = _write_index(kind, model, rows.written(partitions), open_file, graphs)
        return {INDEX_FILE: sizes, ROWS_FILE: rows.finish()}
    except BaseException:
        rows.abort()
        raise


class _Rows:
    """The file of the rows.

    Parameters
    ----------
    quantization : Quantization
    model : VectorModel
    open_file : callable
    """

    def __init__(self, quantization: AnyQuantization, model: VectorModel, open_file: OpenFile) -> None:
        self._quantization = quantization
        self._model = model
        self._schema = pa.schema([ROW_ID, *model.codes.columns])
        self._writer = open_file(ROWS_FILE, self._schema)
        self._lengths: list[int] = []

    def written(self, partitions: Iterable[Partition]) -> Iterator[Partition]:
        """Write partitions, and yield each."""
        for partition in partitions:
            self._lengths.append(partition.row_ids.size)
            if partition.row_ids.size:
                codes = self._model.codes.store(partition.codes)
                batch = pa.RecordBatch.from_arrays([pa.array(partition.row_ids), *codes], schema=self._schema)
                self._writer.write_batch(batch)
            yield partition

    def finish(self) -> int:
        """Finish the file, and return its size in bytes."""
        _describe(self._writer, _extents(self._lengths), {"distance_type": self._model.metric})
        storage = json.dumps(self._quantization.stored(self._model.codes, self._add_tensor))
        self._writer.add_schema_metadata("storage_metadata", json.dumps([storage]))
        return self._writer.finish().size_bytes

    def abort(self) -> None:
        """Delete what was written."""
        self._writer.abort()

    def _add_tensor(self, numbers: Vectors) -> int:
        message = tensor_message(numbers, self._model.number)
        return self._writer.add_global_buffer(message.SerializeToString(deterministic=True))


def _write_index(
    kind: str,
    model: VectorModel,
    partitions: Iterator[Partition],
    open_file: OpenFile,
    graphs: GraphParameters | None,
) -> int:
    """Write the file of the centroids, and of graphs if there are some; return its size in bytes."""
    schema = pa.schema([_MARKER] if graphs is None else _GRAPH_COLUMNS)
    writer = open_file(INDEX_FILE, schema)
    lengths, described = list[int](), list[str]()
    try:
        for graph in _graphs(model, partitions, graphs):
            lengths.append(0 if graph is None else graph.vectors.size)
            described.append("" if graph is None or graphs is None else _described(graph, graphs))
            if graph is not None:
                writer.write_batch(pa.RecordBatch.from_arrays(_columns(graph), schema=schema))
        message = _extents(lengths)
        message.centroids_tensor.CopyFrom(tensor_message(model.centroids, model.number))
        message.loss = model.loss
        entries = {
            "lance:index": json.dumps({"type": kind, "distance_type": model.metric}),
            "lance:flat" if graphs is None else "lance:hnsw": json.dumps(described),
        }
        _describe(writer, message, entries)
        return writer.finish().size_bytes
    except BaseException:
        writer.abort()
        raise


def _graphs(
    model: VectorModel, partitions: Iterator[Partition], parameters: GraphParameters | None
) -> Iterator[NeighborGraph | None]:
    """Yield the graph of each partition, of some at a time; None of an empty one, and if graphs are not wanted."""
    if parameters is None:
        yield from (None for _ in partitions)
        return

    def built(partition: Partition) -> NeighborGraph | None:
        if not partition.row_ids.size:
            return None
        codes = cast("DecodableCodes", model.codes)
        return NeighborGraph.built(codes.decode(partition.codes), parameters, by_product=model.metric == "dot")

    pending: deque[Future[NeighborGraph | None]] = deque()
    with ThreadPoolExecutor(pa.cpu_count()) as threads:
        for partition in partitions:
            pending.append(threads.submit(built, partition))
            if len(pending) > pa.cpu_count():
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _described(graph: NeighborGraph, parameters: GraphParameters) -> str:
    """Return the description of the graph of a partition, to the letter as pylance expects it when it copies graphs."""
    told = {
        "max_level": parameters.max_level,
        "m": parameters.m,
        "ef_construction": parameters.ef_construction,
        "prefetch_distance": 2,
    }
    described = {"entry_point": 0, "params": told, "level_offsets": graph.level_offsets.tolist()}
    return json.dumps(described, separators=(",", ":"))


def _columns(graph: NeighborGraph) -> list[pa.Array]:
    offsets = pa.array(graph.offsets)
    return [
        pa.array(graph.vectors),
        *(pa.ListArray.from_arrays(offsets, pa.array(items)) for items in (graph.neighbors, graph.distances)),
    ]


def _extents(lengths: list[int]) -> index_pb2.IVF:
    """Return the message about rows of partitions, which follow each other."""
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])[:-1].tolist()
    return index_pb2.IVF(offsets=starts, lengths=lengths)


def _describe(writer: FileWriter, message: index_pb2.IVF, entries: dict[str, str]) -> None:
    """Add the description of the partitions, and metadata, to a file."""
    number = writer.add_global_buffer(message.SerializeToString(deterministic=True))
    for key, value in {**entries, "lance:ivf": str(number)}.items():
        writer.add_schema_metadata(key, value)
