"""Quantizations: the differences between vector indices of several kinds of codes.

| quantization | codes | in the metadata of an index |
|---|---|---|
| `FLAT` | `FlatCodes` | `flat` |
| `SQ` | `ScalarCodes` | `scalar` |
| `PQ` | `ProductCodes` | `product` |
| `RQ` | `RotatedCodes`, and of early releases `SignCodes` | `rotated` |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from lance_format.proto import index_pb2
from lance_format.table.indices.vectors.described_file import DescribedFile
from lance_format.vectors.codes import Codes
from lance_format.vectors.metrics import Vectors
from lance_format.vectors.training import ModelParameters, Sample

CodesT = TypeVar("CodesT", bound=Codes)

AddTensor = Callable[[Vectors], int]
"""Writes numbers, `[num_rows, width]`, as a global buffer of a file, and returns its number."""


class Quantization(ABC, Generic[CodesT]):
    """Form in which an index holds vectors: each is a class of its own, and a line of `quantizations.py`."""

    name: ClassVar[str]
    """As in the names of kinds."""

    message: ClassVar[str]
    """The field of `VectorIndexDetails` that tells of it."""

    newest_version: ClassVar[int] = 1
    """Latest version of indices that is known here, which is made here, too."""

    parameters: ClassVar[tuple[str, ...]] = ()
    """Names of the parameters that only this quantization has."""

    decodes: ClassVar[bool] = True
    """Whether its codes are `DecodableCodes`, as graphs need them."""

    def configure(self, parameters: dict[str, Any], dimension: int) -> dict[str, int]:
        """Remove its parameters from those of a user, and return them with their defaults.

        Raises
        ------
        InvalidInputError
            If one is invalid, or does not suit vectors of the dimension.
        """
        del parameters, dimension
        return {}

    def parameters_of(self, details: index_pb2.VectorIndexDetails) -> dict[str, int]:
        """Return the parameters that the metadata of an index tell, within the limits of those made here."""
        del details
        return {}

    def describe(self, parameters: ModelParameters, details: index_pb2.VectorIndexDetails) -> None:
        """Add the parameters to the metadata of an index."""
        del parameters
        getattr(details, self.message).SetInParent()

    def least_sample(self, parameters: ModelParameters) -> int:
        """Return how many vectors are needed to fit codes, beside those for the centroids of partitions."""
        del parameters
        return 0

    @abstractmethod
    def fit(self, sample: Sample) -> CodesT:
        """Return codes for vectors such as those of a sample."""

    @abstractmethod
    def read(self, rows: DescribedFile, dimension: int, metric: str) -> CodesT:
        """Return the codes that the file of the rows has.

        Parameters
        ----------
        rows : DescribedFile
        dimension : int
            Numbers of a vector.
        metric : str

        Raises
        ------
        UnusableError
            If they are of a form that is not known here.
        CorruptFileError
            If their description is malformed.
        """

    @abstractmethod
    def stored(self, codes: CodesT, add_tensor: AddTensor) -> dict[str, object]:
        """Return the description of codes for the file of the rows."""


AnyQuantization: TypeAlias = Quantization[Any]
