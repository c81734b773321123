"""The methods of `LanceDataset` for indices of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.progress import Report, Work, reported
from lance_format.table.indices.building import IndexPlan, create_scalar_index, plan_scalar_index
from lance_format.table.indices.catalog import drop_index
from lance_format.table.indices.descriptions import IndexDescription, describe_indices, list_indices
from lance_format.table.indices.index_config import IndexConfig
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, divided_by
from lance_format.table.versions.open_table import OpenTable


@checked_methods
class DatasetIndices(OpenTable):
    """Methods that make, list and drop indices. Part of `LanceDataset`."""

    @property
    def has_index(self) -> bool:
        """True if the table has any index."""
        return any(not index.is_system for index in self._table.manifest.indices)

    def create_scalar_index(
        self,
        column: str | Sequence[str],
        index_type: str | IndexConfig,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        progress: Report = None,
        **parameters: Any,
    ) -> None:
        """Create an index of a column; scans use it to skip rows that cannot match a filter.

        Parameters
        ----------
        column : str or sequence of str
            Name of the column, or the dotted path of a field below structs. A sequence holds exactly one.
        index_type : {"ZONEMAP", "BTREE", "BITMAP", "LABEL_LIST", "BLOOMFILTER", "NGRAM", "INVERTED"} or IndexConfig
            An `IndexConfig`, ours or pylance's, also holds parameters.
        name : str, optional
            Name of the index, by default that of the column with `_idx`.
        replace : bool
            Whether to replace an index of that name. Otherwise its existence is an error.
        train : bool
            Whether the index covers the existing fragments. Otherwise it covers none before
            `optimize.optimize_indices()`.
        progress : callable or bool, optional
            A function that is called with a `Progress`, or True for a bar.
        **parameters
            Of the kind, where `index_type` is its name; see `IndexConfig`.

        Raises
        ------
        InvalidInputError
            If there is no such column, or a parameter is unknown or invalid.
        NotSupportedError
            If the index type is another one, or the column of a type that it cannot hold.
        """
        if parameters:
            if not isinstance(index_type, str):
                raise InvalidInputError(f"{min(parameters)} is given beside {index_type!r}, which has parameters")
            index_type = IndexConfig(index_type, parameters)
        with reported(progress, "index", Work.INDEXING):
            self._move(lambda table: create_scalar_index(table, column, index_type, name, replace=replace, train=train))

    def create_index(
        self,
        column: str | Sequence[str],
        index_type: str,
        name: str | None = None,
        metric: str = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        *,
        train: bool = True,
        progress: Report = None,
        **parameters: Any,
    ) -> Self:
        """Create an index of vectors, by which `nearest` of a scan finds rows without reading all vectors.

        Parameters
        ----------
        column : str or sequence of str
            A column of fixed-size lists of floating-point numbers, or the dotted path of such a field below structs.
        index_type : {"IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ"}
            The form of the vectors: themselves, codes of their parts, or a byte per number; with graphs, or without.
        name, train, progress
            See `create_scalar_index`.
        metric : {"l2", "cosine", "dot"}
            In any case.
        replace : bool
            Whether to replace an index of that name. Otherwise its existence is an error.
        num_partitions : int, optional
            By default the square root of the number of rows, at most 4096. At most the number of vectors in the sample.
        **parameters
            `target_partition_size`: rows per partition, for `num_partitions` where it is not given. `sample_rate`
            (256): the number of vectors per partition by which these are found. `max_iters` (50): the maximum number of
            steps of that. Of `IVF_PQ` also `num_sub_vectors`, which divides the dimension, by default into 16 numbers
            each, and `num_bits` (8, or 4). Of `IVF_RQ` also `num_bits` (5): 1 to 9 per number. With graphs also `m`
            (20): the number of neighbours that a vector is given; `ef_construction` (150): that of vectors to choose
            them from; `max_level` (7).

        Returns
        -------
        LanceDataset
            This one, which shows the new version.

        Raises
        ------
        InvalidInputError
            If the index exists and is not replaced, or a parameter is unknown or invalid.
        NotSupportedError
            If the index type is another one, or the column has no such vectors.
        """
        given = {"metric": metric, "num_partitions": num_partitions, **parameters}
        config = IndexConfig(index_type, {key: value for key, value in given.items() if value is not None})
        self.create_scalar_index(column, config, name, replace=replace, train=train, progress=progress)
        return self

    def plan_scalar_index(
        self,
        column: str | Sequence[str],
        index_type: str | IndexConfig,
        name: str | None = None,
        *,
        replace: bool = True,
        split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES,
    ) -> IndexPlan:
        """Plan an index whose tasks run anywhere; see `lance_format.table.versions.planned_change`.

        Parameters
        ----------
        column, index_type, name, replace
            See `create_scalar_index`.
        split_size_bytes : int
            Approximate number of bytes that a task reads. Fragments are not divided.

        Returns
        -------
        IndexPlan
            A plan for the version that this object shows.
        """
        divide = divided_by(split_size_bytes)
        return plan_scalar_index(self._table, column, index_type, name, replace=replace, divide=divide)

    def list_indices(self) -> list[dict[str, Any]]:
        """Describe every index, or part of one: `name`, `type`, `uuid`, `fields`, `version`, `fragment_ids`.

        An index never covers a fragment with rows that it has not seen: all operations, those of pylance included,
        remove such fragments from it.
        """
        return list_indices(self._table)

    def describe_indices(self) -> list[IndexDescription]:
        """Describe every index, with its parts, by name."""
        return describe_indices(self._table)

    def drop_index(self, name: str) -> None:
        """Drop an index. Its files remain until a cleanup."""
        self._move(lambda table: drop_index(table, name))
