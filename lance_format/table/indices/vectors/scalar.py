"""A byte per number of a vector."""

from __future__ import annotations

from lance_format.proto import index_pb2
from lance_format.table.indices.row_finder import UnusableError
from lance_format.table.indices.vectors.described_file import DescribedFile
from lance_format.table.indices.vectors.quantization import AddTensor, Quantization
from lance_format.vectors.codes import ScalarCodes
from lance_format.vectors.training import ModelParameters, Sample

_BITS = 8


class Scalar(Quantization[ScalarCodes]):
    """Quantization `SQ`."""

    name = "SQ"
    message = "scalar"

    def describe(self, parameters: ModelParameters, details: index_pb2.VectorIndexDetails) -> None:
        """See `Quantization.describe`."""
        del parameters
        details.scalar.num_bits = _BITS

    def fit(self, sample: Sample) -> ScalarCodes:
        """See `Quantization.fit`."""
        vectors = sample.vectors
        lower, upper = (float(vectors.min()), float(vectors.max())) if vectors.size else (0.0, 0.0)
        return ScalarCodes(sample.dimension, sample.parameters.metric, lower, upper)

    def read(self, rows: DescribedFile, dimension: int, metric: str) -> ScalarCodes:
        """See `Quantization.read`."""
        parameters = rows.json("storage_metadata")
        bounds = parameters.get("bounds")
        if parameters.get("num_bits") != _BITS or metric == "hamming":
            raise UnusableError(f"its codes have {parameters.get('num_bits')} bits")
        try:
            lower, upper = float(bounds["start"]), float(bounds["end"])  # type: ignore[index]
        except (KeyError, TypeError, ValueError) as error:
            raise rows.corrupt(f"the bounds of its codes are {bounds!r}") from error
        return ScalarCodes(dimension, metric, lower, upper)

    def stored(self, codes: ScalarCodes, add_tensor: AddTensor) -> dict[str, object]:
        """See `Quantization.stored`."""
        del add_tensor
        bounds = {"start": codes.lower, "end": codes.upper}
        return {"dim": codes.dimension, "num_bits": _BITS, "bounds": bounds}
