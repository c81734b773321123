"""Some bits per number of a vector that was rotated at random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lance_format.errors import InvalidInputError
from lance_format.proto import index_pb2
from lance_format.table.indices.index_kind import take_whole_number
from lance_format.table.indices.row_finder import UnusableError
from lance_format.table.indices.vectors.described_file import DescribedFile
from lance_format.table.indices.vectors.quantization import AddTensor, Quantization
from lance_format.vectors.rotated_codes import MOST_BITS, MatrixRotation, RotatedCodes, Rotation
from lance_format.vectors.sign_codes import SignCodes
from lance_format.vectors.training import ModelParameters, Sample

_BITS = 5


class Rotated(Quantization[RotatedCodes | SignCodes]):
    """Quantization `RQ`."""

    name = "RQ"
    message = "rotated"
    newest_version = 2
    parameters = ("num_bits",)
    decodes = False

    def configure(self, parameters: dict[str, Any], dimension: int) -> dict[str, int]:
        """See `Quantization.configure`."""
        num_bits = take_whole_number(parameters, "num_bits", _BITS)
        if not 1 <= num_bits <= MOST_BITS:
            raise InvalidInputError(f"num_bits is {num_bits}; a whole number from 1 to {MOST_BITS} is needed")
        if dimension % 8:
            raise InvalidInputError(f"vectors have {dimension} numbers; IVF_RQ needs a multiple of 8")
        return {"num_bits": num_bits}

    def parameters_of(self, details: index_pb2.VectorIndexDetails) -> dict[str, int]:
        """See `Quantization.parameters_of`."""
        return {"num_bits": min(details.rotated.num_bits, MOST_BITS) or _BITS}

    def describe(self, parameters: ModelParameters, details: index_pb2.VectorIndexDetails) -> None:
        """See `Quantization.describe`."""
        details.rotated.num_bits = parameters.num_bits

    def fit(self, sample: Sample) -> RotatedCodes:
        """See `Quantization.fit`."""
        parameters, dimension = sample.parameters, sample.dimension
        rotation = Rotation.at_random(dimension, sample.random)
        return RotatedCodes(dimension, parameters.metric, parameters.num_bits, rotation)

    def read(self, rows: DescribedFile, dimension: int, metric: str) -> RotatedCodes | SignCodes:
        """See `Quantization.read`."""
        parameters = rows.json("storage_metadata")
        estimator, num_bits = parameters.get("query_estimator", SignCodes.estimator), parameters.get("num_bits")
        if not isinstance(num_bits, int) or not 1 <= num_bits <= MOST_BITS:
            raise UnusableError(f"its codes have {num_bits!r} bits")
        if not parameters.get("packed") or metric == "hamming" or dimension % 8:
            raise UnusableError(f"its codes are not packed, or are of {dimension} numbers by the metric {metric}")
        if parameters.get("code_dim", 0) not in (0, dimension):
            raise rows.corrupt(f"its codes are of {parameters['code_dim']!r} numbers, its centroids of {dimension}")
        rotation = _read_rotation(rows, parameters, dimension)
        if estimator == RotatedCodes.estimator:
            return RotatedCodes(dimension, metric, num_bits, rotation)
        if estimator != SignCodes.estimator or num_bits != SignCodes.num_bits:
            raise UnusableError(f"its codes have {num_bits} bits, and are compared by {estimator!r}")
        return SignCodes(dimension, metric, rotation)

    def stored(self, codes: RotatedCodes | SignCodes, add_tensor: AddTensor) -> dict[str, object]:
        """See `Quantization.stored`."""
        return {
            **_stored_rotation(codes.rotation, add_tensor),
            "code_dim": codes.dimension,
            "num_bits": codes.num_bits,
            "packed": True,
            "query_estimator": codes.estimator,
        }


def _read_rotation(rows: DescribedFile, parameters: Mapping[str, Any], dimension: int) -> Rotation | MatrixRotation:
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


def _stored_rotation(rotation: Rotation | MatrixRotation, add_tensor: AddTensor) -> dict[str, object]:
    """Return the description of a rotation; a matrix becomes a global buffer."""
    if isinstance(rotation, MatrixRotation):
        return {"rotation_type": "matrix", "rotate_mat_position": add_tensor(rotation.matrix)}
    signs = rotation.signs.ravel().tolist()
    return {"rotation_type": "fast", "rotate_mat_position": None, "fast_rotation_signs": signs}
