"""Vectors as they are."""

from __future__ import annotations

import pyarrow as pa

from lance_format.table.indices.row_finder import UnusableError
from lance_format.table.indices.vectors.described_file import DescribedFile
from lance_format.table.indices.vectors.quantization import AddTensor, Quantization
from lance_format.vectors.codes import FlatCodes
from lance_format.vectors.training import Sample


class Flat(Quantization[FlatCodes]):
    """Quantization `FLAT`."""

    name = "FLAT"
    message = "flat"

    def fit(self, sample: Sample) -> FlatCodes:
        """See `Quantization.fit`."""
        return FlatCodes(sample.dimension, sample.parameters.metric, sample.number)

    def read(self, rows: DescribedFile, dimension: int, metric: str) -> FlatCodes:
        """See `Quantization.read`."""
        column = rows.column_types().get("flat")
        if column is None or not pa.types.is_fixed_size_list(column) or column.list_size != dimension:
            raise UnusableError(f"its vectors are {column}")
        is_known = pa.types.is_floating(column.value_type) if metric != "hamming" else column.value_type == pa.uint8()
        if not is_known:
            raise UnusableError(f"its vectors are {column}")
        return FlatCodes(dimension, metric, column.value_type)

    def stored(self, codes: FlatCodes, add_tensor: AddTensor) -> dict[str, object]:
        """See `Quantization.stored`."""
        del add_tensor
        return {"dim": codes.dimension}
