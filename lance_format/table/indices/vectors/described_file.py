"""Files of a vector index: descriptions in the metadata of their schemas, and numbers in their global buffers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.file import FileReader
from lance_format.proto import index_pb2
from lance_format.table.indices.row_finder import UnusableError
from lance_format.vectors.metrics import Vectors

Tensor = npt.NDArray[Any]

_DTYPES: Mapping[int, np.dtype[Any]] = MappingProxyType(
    {
        index_pb2.Tensor.FLOAT16: np.dtype("<f2"),
        index_pb2.Tensor.FLOAT32: np.dtype("<f4"),
        index_pb2.Tensor.FLOAT64: np.dtype("<f8"),
        index_pb2.Tensor.UINT8: np.dtype("u1"),
    }
)
_TYPES = {dtype.itemsize: data_type for data_type, dtype in _DTYPES.items() if dtype.kind == "f"}


class DescribedFile:
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
        """Return the types of the columns, by name.

        Raises
        ------
        CorruptFileError
            If one is malformed.
        """
        try:
            return {field.name: field.to_arrow_type() for field in self.file.schema.fields}
        except CorruptFileError as error:
            raise self.corrupt(error.what) from error

    def json(self, key: str, number: int = 0) -> Mapping[str, Any]:
        """Return an object of JSON of the metadata; one of a list, by default the first.

        Raises
        ------
        CorruptFileError
            If it is missing or malformed.
        """
        try:
            found = json.loads(self._metadata[key.encode()])
            if isinstance(found, list):
                found = json.loads(found[number])
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise self.corrupt(f"{key} of its schema is missing or malformed") from error
        if not isinstance(found, dict):
            raise self.corrupt(f"{key} of its schema is not an object of JSON")
        return found

    def buffer(self, number: object) -> bytes:
        """Return a global buffer.

        Raises
        ------
        CorruptFileError
            If there is none of that number.
        """
        if isinstance(number, bool) or not isinstance(number, int):
            raise self.corrupt(f"a global buffer is said to be number {number!r}")
        try:
            return self.file.read_global_buffer(number)
        except InvalidInputError as error:
            raise self.corrupt(str(error)) from error

    def partitions(self) -> index_pb2.IVF:
        """Return the message that describes the partitions.

        Raises
        ------
        CorruptFileError
            If it is missing or malformed.
        """
        number = self._metadata.get(b"lance:ivf", b"")
        if not number.isdigit():
            raise self.corrupt("its partitions are not described")
        message = index_pb2.IVF()
        try:
            message.ParseFromString(self.buffer(int(number)))
        except DecodeError as error:
            raise self.corrupt("the description of its partitions is malformed") from error
        return message

    def tensor(self, message: index_pb2.Tensor) -> Tensor:
        """Return the numbers of a tensor, `[num_rows, width]`.

        Raises
        ------
        UnusableError
            If they are of a type that is not known here.
        CorruptFileError
            If their shape is not that of their bytes.
        """
        dtype, shape = _DTYPES.get(message.data_type), tuple(message.shape)
        if dtype is None:
            raise UnusableError(f"its numbers are of type {message.data_type}")
        if len(shape) != 2 or math.prod(shape) * dtype.itemsize != len(message.data) or not math.prod(shape):
            raise self.corrupt(f"{len(message.data)} bytes of numbers have the shape {shape}")
        found: Tensor = np.frombuffer(message.data, dtype).reshape(shape)
        return found.astype(dtype.newbyteorder("="))

    def tensor_of(self, number: object, what: str) -> Tensor:
        """Return the numbers of a tensor in a global buffer, as `tensor` does; errors say what it is.

        Raises
        ------
        UnusableError
            If they are of a type that is not known here.
        CorruptFileError
            If there is no such buffer, or it is malformed.
        """
        message = index_pb2.Tensor()
        try:
            message.ParseFromString(self.buffer(number))
        except DecodeError as error:
            raise self.corrupt(f"{what} is malformed") from error
        return self.tensor(message)

    def corrupt(self, what: str) -> CorruptFileError:
        """Return an error about the file."""
        return CorruptFileError(what, path=self.path)


def tensor_message(numbers: Vectors, number: np.dtype[Any]) -> index_pb2.Tensor:
    """Return the message of floating-point numbers of a type."""
    data = np.ascontiguousarray(numbers, number.newbyteorder("<")).tobytes()
    return index_pb2.Tensor(data_type=_TYPES[number.itemsize], shape=numbers.shape, data=data)  # type: ignore[arg-type]
