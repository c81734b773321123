"""Writing the files of a vector index; see `lance_format.table.indices.vectors.vector_index`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from lance_format.file import FileWriter
from lance_format.proto import index_pb2
from lance_format.table.indices.vectors.vector_index import INDEX_FILE, ROW_ID, ROWS_FILE, Partition
from lance_format.table.indices.written_parts import OpenFile
from lance_format.vectors.codes import Codes, FlatCodes, ProductCodes, ScalarCodes
from lance_format.vectors.metrics import Vectors
from lance_format.vectors.training import VectorModel

_TYPES = {2: index_pb2.Tensor.FLOAT16, 4: index_pb2.Tensor.FLOAT32, 8: index_pb2.Tensor.FLOAT64}
_MARKER = pa.field("__flat_marker", pa.uint64(), nullable=False)


def write_vectors(
    kind: str, model: VectorModel, partitions: Iterable[Partition], open_file: OpenFile
) -> dict[str, int]:
    """Write both files, and return their sizes in bytes by name.

    Parameters
    ----------
    kind : str
        As `IVF_PQ`.
    model : VectorModel
    partitions : iterable of Partition
        One for each centroid, with codes that are not transposed.
    open_file : callable
    """
    lengths, rows_size = _write_rows(model, partitions, open_file)
    writer = open_file(INDEX_FILE, pa.schema([_MARKER]))
    try:
        zeros = [0] * len(lengths)
        centroids = _tensor(model.centroids, model.number)
        message = index_pb2.IVF(offsets=zeros, lengths=zeros, centroids_tensor=centroids, loss=model.loss)
        _describe(
            writer,
            message,
            {
                "lance:index": json.dumps({"type": kind, "distance_type": model.metric}),
                "lance:flat": json.dumps([""] * len(lengths)),
            },
        )
        return {INDEX_FILE: writer.finish().size_bytes, ROWS_FILE: rows_size}
    except BaseException:
        writer.abort()
        raise


def _write_rows(model: VectorModel, partitions: Iterable[Partition], open_file: OpenFile) -> tuple[list[int], int]:
    """Write the rows, and return the number of rows of each partition, and the size of the file."""
    schema = pa.schema([ROW_ID, model.codes.column])
    writer = open_file(ROWS_FILE, schema)
    lengths = []
    try:
        for partition in partitions:
            lengths.append(partition.row_ids.size)
            if partition.row_ids.size:
                stored = _stored(model.codes, partition.codes)
                codes = pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), stored.shape[1])
                writer.write_batch(pa.RecordBatch.from_arrays([pa.array(partition.row_ids), codes], schema=schema))
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])[:-1].tolist()
        message = index_pb2.IVF(offsets=starts, lengths=lengths)
        _describe(writer, message, {"distance_type": model.metric})
        storage = json.dumps(_parameters(model, writer))
        writer.add_schema_metadata("storage_metadata", json.dumps([storage]))
        return lengths, writer.finish().size_bytes
    except BaseException:
        writer.abort()
        raise


def _describe(writer: FileWriter, message: index_pb2.IVF, entries: dict[str, str]) -> None:
    """Add the description of the partitions, and metadata, to a file."""
    number = writer.add_global_buffer(message.SerializeToString(deterministic=True))
    for key, value in {**entries, "lance:ivf": str(number)}.items():
        writer.add_schema_metadata(key, value)


def _parameters(model: VectorModel, writer: FileWriter) -> dict[str, object]:
    """Return the parameters of codes as the file has them; a codebook becomes a global buffer."""
    match model.codes:
        case FlatCodes() as codes:
            return {"dim": codes.dimension}
        case ScalarCodes() as codes:
            bounds = {"start": codes.lower, "end": codes.upper}
            return {"dim": codes.dimension, "num_bits": 8, "bounds": bounds}
        case ProductCodes() as codes:
            rows = codes.codebook.reshape(1 << codes.num_bits, -1)
            number = writer.add_global_buffer(_tensor(rows, model.number).SerializeToString(deterministic=True))
            return {
                "codebook_position": number,
                "nbits": codes.num_bits,
                "num_sub_vectors": len(codes.codebook),
                "dimension": codes.dimension,
                "codebook_tensor": [],
                "transposed": True,
            }
    raise AssertionError(model.codes)


def _tensor(numbers: Vectors, number: np.dtype[Any]) -> index_pb2.Tensor:
    data = np.ascontiguousarray(numbers, number.newbyteorder("<")).tobytes()
    return index_pb2.Tensor(data_type=_TYPES[number.itemsize], shape=numbers.shape, data=data)


def _stored(codes: Codes, rows: Vectors) -> Vectors:
    """Return the codes of a partition as they are stored: those of product codes are transposed."""
    if isinstance(codes, ProductCodes) and codes.is_transposed:
        return np.ascontiguousarray(rows.T).reshape(rows.shape)
    return np.ascontiguousarray(rows)
