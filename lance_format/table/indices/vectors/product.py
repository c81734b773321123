"""The number of the nearest centroid of each sub-vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_format.errors import InvalidInputError
from lance_format.proto import index_pb2
from lance_format.table.indices.index_kind import take_whole_number
from lance_format.table.indices.row_finder import UnusableError
from lance_format.table.indices.vectors.described_file import DescribedFile
from lance_format.table.indices.vectors.quantization import AddTensor, Quantization
from lance_format.vectors.codes import ProductCodes
from lance_format.vectors.training import ModelParameters, Sample, fit_codebook

_WIDTH = 16
"""Numbers per sub-vector by default."""

_BITS = 8
_SAMPLE_PER_CODE = 256


class Product(Quantization[ProductCodes]):
    """Quantization `PQ`."""

    name = "PQ"
    message = "product"
    parameters = ("num_sub_vectors", "num_bits")

    def configure(self, parameters: dict[str, Any], dimension: int) -> dict[str, int]:
        """See `Quantization.configure`."""
        counts = (dimension // _WIDTH, dimension // 8)
        default = next((count for count in counts if count and dimension % count == 0), 1)
        count = take_whole_number(parameters, "num_sub_vectors", default)
        num_bits = take_whole_number(parameters, "num_bits", _BITS)
        if dimension % count:
            raise InvalidInputError(
                f"num_sub_vectors is {count}, which does not divide the {dimension} numbers of a vector"
            )
        if num_bits not in (4, 8):
            raise InvalidInputError(f"num_bits is {num_bits}; 4 and 8 are possible")
        if num_bits == 4 and count % 2:
            raise InvalidInputError(f"num_sub_vectors is {count}; codes of 4 bits need an even number of them")
        return {"num_sub_vectors": count, "num_bits": num_bits}

    def parameters_of(self, details: index_pb2.VectorIndexDetails) -> dict[str, int]:
        """See `Quantization.parameters_of`."""
        told = details.product
        return {"num_sub_vectors": told.num_sub_vectors or 1, "num_bits": told.num_bits or _BITS}

    def describe(self, parameters: ModelParameters, details: index_pb2.VectorIndexDetails) -> None:
        """See `Quantization.describe`."""
        details.product.num_bits = parameters.num_bits
        details.product.num_sub_vectors = parameters.num_sub_vectors

    def least_sample(self, parameters: ModelParameters) -> int:
        """See `Quantization.least_sample`."""
        return _SAMPLE_PER_CODE << parameters.num_bits

    def fit(self, sample: Sample) -> ProductCodes:
        """See `Quantization.fit`."""
        parameters = sample.parameters
        codebook = fit_codebook(sample, self.least_sample(parameters))
        return ProductCodes(sample.dimension, parameters.metric, parameters.num_bits, codebook, is_transposed=True)

    def read(self, rows: DescribedFile, dimension: int, metric: str) -> ProductCodes:
        """See `Quantization.read`."""
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

    def stored(self, codes: ProductCodes, add_tensor: AddTensor) -> dict[str, object]:
        """See `Quantization.stored`."""
        return {
            "codebook_position": add_tensor(codes.codebook.reshape(1 << codes.num_bits, -1)),
            "nbits": codes.num_bits,
            "num_sub_vectors": len(codes.codebook),
            "dimension": codes.dimension,
            "codebook_tensor": [],
            "transposed": True,
        }
