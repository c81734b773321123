"""Codes of vectors in memory, by partition, until they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from lance_format.lazy_dataclasses import dataclass
from lance_format.table.indices.row_finder import RowIds
from lance_format.table.indices.vectors.vector_index import Partition
from lance_format.vectors.codes import Codes, no_codes
from lance_format.vectors.metrics import Vectors
from lance_format.vectors.training import VectorModel


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Vectors that were encoded together, by partition.

    Parameters
    ----------
    bounds : int64[num_partitions + 1]
        Where those of each partition begin, and where the last end.
    rows : Partition
        Of all partitions.
    """

    bounds: npt.NDArray[np.int64]
    rows: Partition

    def partition(self, number: int) -> Partition:
        """Return the rows of a partition."""
        found = slice(*self.bounds[number : number + 2].tolist())
        return Partition(self.rows.row_ids[found], self.rows.codes[found])


class GatheredVectors:
    """The codes of vectors by a model, all of which are in memory once.

    Parameters
    ----------
    model : VectorModel
    """

    def __init__(self, model: VectorModel) -> None:
        self._model = model
        self._batches: list[_Batch] = []

    def add(self, vectors: Vectors, row_ids: RowIds) -> None:
        """Encode vectors that the index can hold.

        Parameters
        ----------
        vectors : float[num_vectors, dimension]
        row_ids : uint64[num_vectors]
        """
        numbers, codes = self._model.encode(vectors)
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(len(self._model.centroids) + 1))
        self._batches.append(_Batch(bounds, Partition(row_ids[order], codes[order])))

    def partitions(self) -> Iterator[Partition]:
        """Yield the rows of each partition, in the order in which they were added."""
        for number in range(len(self._model.centroids)):
            yield united((batch.partition(number) for batch in self._batches), self._model.codes)


def united(parts: Iterable[Partition], codes: Codes) -> Partition:
    """Return the rows of one partition that several parts have, encoded by the same codes."""
    found = list(parts)
    return Partition(
        np.concatenate([np.zeros(0, np.uint64), *(part.row_ids for part in found)]),
        np.concatenate([no_codes(codes), *(part.codes for part in found)]),
    )
