"""The quantizations of vector indices."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lance_format.table.indices.vectors.flat import Flat
from lance_format.table.indices.vectors.product import Product
from lance_format.table.indices.vectors.quantization import AnyQuantization
from lance_format.table.indices.vectors.rotated import Rotated
from lance_format.table.indices.vectors.scalar import Scalar

QUANTIZATIONS: Mapping[str, AnyQuantization] = MappingProxyType(
    {found.name: found for found in (Flat(), Product(), Scalar(), Rotated())}
)
"""By their names."""


def quantization_of(kind: str) -> AnyQuantization | None:
    """Return the quantization of a kind of index, as `IVF_PQ`; None if it is not known here."""
    return QUANTIZATIONS.get(kind.rpartition("_")[2])
