"""The methods of `LanceDataset` for indices of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.table.indices.building import IndexPlan, create_scalar_index, plan_scalar_index
from lance_format.table.indices.catalog import describe_index, drop_index
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
    ) -> None:
        """Make an index of a column, by which scans find rows without reading the others.

        Parameters
        ----------
        column : str or sequence of str
            Its name, or the dotted path of a field below structs; one of them.
        index_type : {"ZONEMAP"} or IndexConfig
            An `IndexConfig`, ours or pylance's, has parameters as well.
        name : str, optional
            That of the column with `_idx` if not given.
        replace : bool
            Whether an index of that name makes room; else it is an error that there is one.
        train : bool
            Whether it covers the fragments that there are; else none before `optimize.optimize_indices()`.

        Raises
        ------
        NotSupportedError
            If it is to be of another kind, or of a column of blobs or of nothing but nulls.
        """
        self._move(lambda table: create_scalar_index(table, column, index_type, name, replace=replace, train=train))

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
            How much of the files a task reads, about. A fragment belongs to one task as a whole.

        Returns
        -------
        IndexPlan
            Its index covers the fragments of the version that this object shows.
        """
        divide = divided_by(split_size_bytes)
        return plan_scalar_index(self._table, column, index_type, name, replace=replace, divide=divide)

    def list_indices(self) -> list[dict[str, Any]]:
        """Describe every index, or part of one: `name`, `type`, `uuid`, `fields`, `version`, `fragment_ids`.

        All operations, and those of pylance, keep to what indices promise: none covers a fragment whose rows it does
        not know.
        """
        manifest = self._table.manifest
        return [describe_index(index, manifest.schema) for index in manifest.indices if not index.is_system]

    def drop_index(self, name: str) -> None:
        """Drop an index; its files stay until a cleanup."""
        self._move(lambda table: drop_index(table, name))
