"""Vector indices of the family IVF: vectors in partitions around centroids, as codes.

`index.idx` has the centroids, and for some kinds a graph per partition. `auxiliary.idx` has the rows, partition by
partition: their ids, and the codes of their vectors. Both name a global buffer with an `IVF` message in the metadata of
their schemas (`lance:ivf`), and are described there in JSON: `lance:index` has the kind and the metric,
`storage_metadata` the parameters of the codes.

The graphs are not used: partitions are read as a whole. This finds at least what a graph finds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.file import ColumnProjection, FileReader, column_indices
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import index_pb2
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.named_rows import NamedRows
from lance_format.table.indices.opening import index_path, opening
from lance_format.table.indices.row_finder import RowIds, UnusableError
from lance_format.table.versions.table_version import TableVersion
from lance_format.vectors.codes import Codes, FlatCodes, ProductCodes, ScalarCodes, no_codes
from lance_format.vectors.metrics import Vectors
from lance_format.vectors.rotated_codes import MOST_BITS, MatrixRotation, RotatedCodes, Rotation
from lance_format.vectors.sign_codes import SignCodes

VECTOR = "Vector"
"""Their type in `list_indices`."""

INDEX_FILE = "index.idx"
ROWS_FILE = "auxiliary.idx"
_METRICS = ("l2", "cosine", "dot", "hamming")
ROW_ID = pa.field("_rowid", pa.uint64())
_DTYPES: Mapping[int, np.dtype[Any]] = MappingProxyType(
    {1: np.dtype("<f2"), 2: np.dtype("<f4"), 3: np.dtype("<f8"), 4: np.dtype("u1")}
)
_BATCH_ROWS = 65_536
_GRAPH_ROWS = 4096
_Tensor = npt.NDArray[Any]


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
        key = (index.uuid, INDEX_FILE)
        cached = table.cache.get(key)
        try:
            self.index = cached if isinstance(cached, VectorIndex) else self._load()
        except BaseException:
            self.__exit__()
            raise
        table.cache.put(key, self.index, self.index.centroids.nbytes)

    def __enter__(self) -> VectorIndexReader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._rows is not None:
            self._rows.close()

    def read(self, number: int) -> Partition:
        """Return a partition, cached.

        Raises
        ------
        CorruptFileError
            If a row has no id or no code.
        """
        key = (self._part.uuid, ROWS_FILE, number)
        cached = self._table.cache.get(key)
        if isinstance(cached, Partition):
            return cached
        start, stop = self.index.starts[number], self.index.starts[number] + self.index.lengths[number]
        file = self._open_rows()
        indices = column_indices(file.schema, file.version)
        columns = [ColumnProjection(field, indices) for field in file.schema.fields]
        names = [ROW_ID.name, *(column.name for column in self.index.codes.columns)]
        wanted = [x for x in columns if x.field.name in names]
        batches = list(file.read(wanted, int(start), int(stop), batch_size=_BATCH_ROWS))
        if not batches:
            return Partition(np.zeros(0, np.uint64), no_codes(self.index.codes))
        rows = pa.Table.from_batches(batches).combine_chunks()
        ids, *codes = (rows[name].chunk(0) for name in names)
        if any(_has_null(column) for column in (ids, *codes)):
            raise CorruptFileError("a row of a vector index has no id or no code", path=self._path(ROWS_FILE))
        found = Partition(ids.to_numpy(), self.index.codes.load(codes))
        self._table.cache.put(key, found, found.row_ids.nbytes + found.codes.nbytes)
        return found

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
        if self._rows is None:
            self._rows = self._open(ROWS_FILE)
        return self._rows

    def _open(self, name: str) -> FileReader:
        with opening(self._table, self._part, name) as (source, verification):
            return FileReader(source, self._table.cache, verification=verification)

    def _load(self) -> VectorIndex:
        """Read the description of the index and of its codes."""
        file = self._open(INDEX_FILE)
        try:
            described = _Described(file, self._path(INDEX_FILE))
            kind, metric = described.json("lance:index").get("type"), described.json("lance:index").get("distance_type")
            centroids = described.partitions().centroids_tensor
            rows = _Described(self._open_rows(), self._path(ROWS_FILE))
            codes_of = _CODES.get(str(kind).rpartition("_")[2])
            if codes_of is None or metric not in _METRICS:
                raise UnusableError(f"its kind is {kind!r}, its metric {metric!r}")
            if self._part.message.index_version > newest_version(str(kind)):
                raise UnusableError(f"it is of version {self._part.message.index_version}")
            return _checked(str(kind), str(metric), described.tensor(centroids), rows, codes_of)
        finally:
            file.close()


def newest_version(kind: str) -> int:
    """Return the latest version of the form of a kind that is known here, which is made here, too."""
    return 2 if kind == "IVF_RQ" else 1


def check_vectors(table: TableVersion, index: IndexMetadata) -> None:
    """Read a part of an index partition by partition, and the graphs that it may have; see `IndexKind.check`."""
    rows = NamedRows(table, index, by_id=table.manifest.stable_row_ids)
    path = index_path(table, index, ROWS_FILE)
    with VectorIndexReader(table, index) as reader:
        for number in range(reader.index.lengths.size):
            rows.check(reader.read(number).row_ids, path)
        reader.check_rest()


class _Described:
    """The metadata of a file of an index.

    Parameters
    ----------
    file : FileReader
    path : str
        For messages.
    """

    def __init__(self, file: FileReader, path: str) -> None:
        self.file = file
        self.path = path
        self._metadata = dict(file.schema.metadata)

    def column_types(self) -> Mapping[str, pa.DataType]:
        """Return the types of the columns, by name."""
        try:
            return {field.name: field.to_arrow_type() for field in self.file.schema.fields}
        except CorruptFileError as error:
            raise self.corrupt(error.what) from error

    def json(self, key: str) -> Mapping[str, Any]:
        """Return an object of JSON; the first one of a list."""
        try:
            found = json.loads(self._metadata[key.encode()])
            if isinstance(found, list):
                found = json.loads(found[0])
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise self.corrupt(f"{key} of its schema is missing or malformed") from error
        if not isinstance(found, dict):
            raise self.corrupt(f"{key} of its schema is not an object of JSON")
        return found

    def buffer(self, number: object) -> bytes:
        """Return a global buffer."""
        if isinstance(number, bool) or not isinstance(number, int):
            raise self.corrupt(f"a global buffer is said to be number {number!r}")
        try:
            return self.file.read_global_buffer(number)
        except InvalidInputError as error:
            raise self.corrupt(str(error)) from error

    def partitions(self) -> index_pb2.IVF:
        """Return the message that describes the partitions."""
        number = self._metadata.get(b"lance:ivf", b"")
        if not number.isdigit():
            raise self.corrupt("its partitions are not described")
        message = index_pb2.IVF()
        try:
            message.ParseFromString(self.buffer(int(number)))
        except DecodeError as error:
            raise self.corrupt("the description of its partitions is malformed") from error
        return message

    def tensor(self, message: index_pb2.Tensor) -> _Tensor:
        """Return the numbers of a tensor."""
        dtype, shape = _DTYPES.get(message.data_type), tuple(message.shape)
        if dtype is None:
            raise UnusableError(f"its numbers are of type {message.data_type}")
        if len(shape) != 2 or math.prod(shape) * dtype.itemsize != len(message.data) or not math.prod(shape):
            raise self.corrupt(f"{len(message.data)} bytes of numbers have the shape {shape}")
        found: _Tensor = np.frombuffer(message.data, dtype).reshape(shape)
        return found.astype(dtype.newbyteorder("="))

    def tensor_of(self, number: object, what: str) -> _Tensor:
        """Return the numbers of a tensor in a global buffer; errors say what it is."""
        message = index_pb2.Tensor()
        try:
            message.ParseFromString(self.buffer(number))
        except DecodeError as error:
            raise self.corrupt(f"{what} is malformed") from error
        return self.tensor(message)

    def corrupt(self, what: str) -> CorruptFileError:
        """Return an error about the file."""
        return CorruptFileError(what, path=self.path)


def _has_null(column: pa.Array) -> bool:
    return bool(column.null_count or (pa.types.is_fixed_size_list(column.type) and column.values.null_count))


_MakeCodes = Callable[[_Described, int, str], Codes]


def _checked(kind: str, metric: str, centroids: _Tensor, rows: _Described, codes_of: _MakeCodes) -> VectorIndex:
    """Return the index if its files agree."""
    partitions = rows.partitions()
    lengths = np.array(partitions.lengths, np.int64)
    starts = np.array(partitions.offsets, np.uint64)
    num_rows = rows.file.num_rows
    if not lengths.size == starts.size == centroids.shape[0]:
        raise rows.corrupt(f"{centroids.shape[0]} centroids, but {starts.size} partitions")
    if (starts > np.uint64(num_rows)).any() or (starts.astype(np.int64) + lengths > num_rows).any():
        raise rows.corrupt(f"a partition ends after the last of {num_rows} rows")
    codes = codes_of(rows, int(centroids.shape[1]), metric)
    expected = {field.name: field.type for field in (ROW_ID, *codes.columns)}
    found = rows.column_types()
    if any(found.get(name) != value_type for name, value_type in expected.items()):
        raise UnusableError(f"it has the columns {found} instead of {expected}")
    return VectorIndex(
        kind, metric, centroids.astype(np.float32), starts.astype(np.int64), lengths, codes, centroids.dtype
    )


def _flat_codes(rows: _Described, dimension: int, metric: str) -> Codes:
    column = rows.column_types().get("flat")
    if column is None or not pa.types.is_fixed_size_list(column) or column.list_size != dimension:
        raise UnusableError(f"its vectors are {column}")
    is_known = pa.types.is_floating(column.value_type) if metric != "hamming" else column.value_type == pa.uint8()
    if not is_known:
        raise UnusableError(f"its vectors are {column}")
    return FlatCodes(dimension, metric, column.value_type)


def _scalar_codes(rows: _Described, dimension: int, metric: str) -> Codes:
    parameters = rows.json("storage_metadata")
    bounds = parameters.get("bounds")
    if parameters.get("num_bits") != 8 or metric == "hamming":
        raise UnusableError(f"its codes have {parameters.get('num_bits')} bits")
    try:
        lower, upper = float(bounds["start"]), float(bounds["end"])  # type: ignore[index]
    except (KeyError, TypeError, ValueError) as error:
        raise rows.corrupt(f"the bounds of its codes are {bounds!r}") from error
    return ScalarCodes(dimension, metric, lower, upper)


def _product_codes(rows: _Described, dimension: int, metric: str) -> Codes:
    parameters = rows.json("storage_metadata")
    num_bits, num_parts = parameters.get("nbits"), parameters.get("num_sub_vectors")
    if num_bits not in (4, 8) or metric == "hamming":
        raise UnusableError(f"its codes have {num_bits} bits")
    codebook = rows.tensor_of(parameters.get("codebook_position"), "its codebook")
    if not isinstance(num_parts, int) or num_parts < 1:
        raise rows.corrupt(f"it has {num_parts!r} sub-vectors")
    if dimension % num_parts or num_parts * num_bits % 8 or codebook.size != dimension * 2**num_bits:
        raise rows.corrupt(f"{num_parts} sub-vectors and a codebook of {codebook.shape} for {dimension} numbers")
    shaped = np.ascontiguousarray(codebook.reshape(num_parts, 2**num_bits, -1), np.float32)
    return ProductCodes(dimension, metric, num_bits, shaped, bool(parameters.get("transposed")))


def _rotated_codes(rows: _Described, dimension: int, metric: str) -> Codes:
    parameters = rows.json("storage_metadata")
    estimator, num_bits = parameters.get("query_estimator", SignCodes.estimator), parameters.get("num_bits")
    if not isinstance(num_bits, int) or not 1 <= num_bits <= MOST_BITS:
        raise UnusableError(f"its codes have {num_bits!r} bits")
    if not parameters.get("packed") or metric == "hamming" or dimension % 8:
        raise UnusableError(f"its codes are not packed, or are of {dimension} numbers by the metric {metric}")
    if parameters.get("code_dim", 0) not in (0, dimension):
        raise rows.corrupt(f"its codes are of {parameters['code_dim']!r} numbers, its centroids of {dimension}")
    rotation = _rotation(rows, parameters, dimension)
    if estimator == RotatedCodes.estimator:
        return RotatedCodes(dimension, metric, num_bits, rotation)
    if estimator != SignCodes.estimator or num_bits != SignCodes.num_bits:
        raise UnusableError(f"its codes have {num_bits} bits, and are compared by {estimator!r}")
    return SignCodes(dimension, metric, rotation)


def _rotation(rows: _Described, parameters: Mapping[str, Any], dimension: int) -> Rotation | MatrixRotation:
    """Return the rotation of codes; in early releases it was always a matrix."""
    match parameters.get("rotation_type", "matrix"):
        case "fast":
            try:
                signs = np.frombuffer(bytes(parameters["fast_rotation_signs"]), np.uint8)
                return Rotation(signs.reshape(4, dimension // 8))
            except (KeyError, TypeError, ValueError) as error:
                raise rows.corrupt("the signs of its rotation are malformed") from error
        case "matrix":
            matrix = rows.tensor_of(parameters.get("rotate_mat_position"), "the matrix of its rotation")
            if matrix.shape != (dimension, dimension):
                raise rows.corrupt(f"the matrix of its rotation has the shape {matrix.shape}")
            return MatrixRotation(matrix.astype(np.float32))
        case other:
            raise UnusableError(f"its rotation is of the type {other!r}")


_CODES: Mapping[str, _MakeCodes] = MappingProxyType(
    {"FLAT": _flat_codes, "SQ": _scalar_codes, "PQ": _product_codes, "RQ": _rotated_codes}
)
