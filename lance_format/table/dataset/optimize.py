"""`LanceDataset.optimize`: compaction, updates of indices, automatic cleanups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Unpack

from lance_format.arguments import checked_methods
from lance_format.progress import Report, Work, reported
from lance_format.table.changes.columns.metadata import update_config
from lance_format.table.changes.write.settings import AUTO_CLEANUP_KEYS, auto_cleanup_entries
from lance_format.table.fragments.writer import DEFAULT_MAX_BYTES_PER_FILE
from lance_format.table.indices.building import IndexPlan, indices_behind, optimize_indices, plan_optimize_indices
from lance_format.table.maintenance.compaction import (
    CompactionMetrics,
    CompactionPlan,
    RewriteResult,
    commit_rewrites,
    compact_files,
    plan_compaction,
)
from lance_format.table.maintenance.compaction_options import CompactionKeywords, CompactionOptions
from lance_format.table.maintenance.row_rewrite import RowRewrite, plan_row_rewrite
from lance_format.table.maintenance.row_sort import sort_rows
from lance_format.table.scan.options import OrderBy
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, divided_by
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.table_version import Attempt, TableVersion


@checked_methods
class Compaction:
    """Compaction in steps that may run on different machines: a plan, its tasks, and one commit or several."""

    @staticmethod
    def plan(dataset: OpenTable, options: Mapping[str, Any] | None = None) -> CompactionPlan:
        """Find the fragments that are worth rewriting; see `DatasetOptimizer.compact_files`."""
        return plan_compaction(dataset._table, CompactionOptions.choose(dataset._table, dict(options or {})))

    @staticmethod
    def commit(
        dataset: OpenTable, rewrites: Iterable[RewriteResult], options: Mapping[str, Any] | None = None
    ) -> CompactionMetrics:
        """Commit the results of tasks of one plan, and move the dataset to that version.

        Parameters
        ----------
        dataset : LanceDataset
        rewrites : iterable of RewriteResult
            Results of `CompactionTask.execute`, for all tasks or some.
        options : mapping, optional

        Raises
        ------
        CommitConflictError
            If other writers changed the rows concurrently.
        """
        del options
        results = list(rewrites)
        dataset._table = commit_rewrites(dataset._table, results)
        return CompactionMetrics.of([result.group for result in results])

    @staticmethod
    def execute(dataset: OpenTable, options: Mapping[str, Any] | None = None) -> CompactionMetrics:
        """Run all steps; see `DatasetOptimizer.compact_files`."""
        return DatasetOptimizer(dataset).compact_files(**(options or {}))


@checked_methods
class DatasetOptimizer:
    """Methods that make a table faster to read. `LanceDataset.optimize` makes it."""

    def __init__(self, dataset: OpenTable) -> None:
        self._dataset = dataset

    def compact_files(self, *, progress: Report = None, **options: Unpack[CompactionKeywords]) -> CompactionMetrics:
        """Combine small fragments, and remove deleted rows and dropped columns from the files.

        Indices that covered the fragments are updated, in a version of its own, unless `defer_index_remap` is set.

        Parameters
        ----------
        progress : callable or bool, optional
            A function that is called with a `Progress`, or True for a bar.
        **options
            See `CompactionOptions`. The default of an option `o` is the entry `lance.compaction.o` of the table's
            configuration. Tuning options of pylance (`num_threads`, `io_buffer_size` …) are accepted and ignored.

        Returns
        -------
        CompactionMetrics
            Zeros if no fragment is worth rewriting; there is no new version then.
        """

        def attempt(table: TableVersion) -> tuple[TableVersion, CompactionMetrics]:
            return compact_files(table, CompactionOptions.choose(table, options))

        defers = CompactionOptions.choose(self._dataset._table, options).defer_index_remap
        with reported(progress, "compact", Work.WRITING):
            return self._change_rows(attempt, defers)

    def sort_rows(self, order_by: OrderBy, *, progress: Report = None) -> CompactionMetrics:
        """Rewrite all fragments with their rows sorted, so that filters on these columns skip most of them.

        The sort columns of all rows are in memory. `plan_row_rewrite` takes rows that another program sorts.

        Indices that covered the fragments are updated, in a version of its own.

        Parameters
        ----------
        order_by : sequence of ColumnOrdering or str
            The sort columns.
        progress : callable or bool, optional
            A function that is called with a `Progress`, or True for a bar.

        Raises
        ------
        InvalidInputError
            If there is no such column, or none to sort by.
        """
        with reported(progress, "sort", Work.WRITING):
            return self._change_rows(lambda table: sort_rows(table, order_by))

    def _change_rows(self, attempt: Attempt[CompactionMetrics], defers: bool = False) -> CompactionMetrics:
        """Replace fragments, and update the indices that covered them."""
        behind: list[str] = []

        def change(table: TableVersion) -> tuple[TableVersion, CompactionMetrics]:
            after, metrics = attempt(table)
            behind[:] = indices_behind(table, after)
            return after, metrics

        metrics = self._dataset._change(change)
        if behind and not defers:
            self._dataset._move(lambda table: optimize_indices(table, index_names=_left(table, behind)))
        return metrics

    def indices_behind(self, before: OpenTable) -> list[str]:
        """Return the names of indices that covered fragments of an earlier version which were replaced since.

        Parameters
        ----------
        before : LanceDataset
            The earlier version.
        """
        return indices_behind(before._table, self._dataset._table)

    def plan_row_rewrite(
        self,
        fragment_ids: Sequence[int] | None = None,
        *,
        max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE,
        uuid: str | None = None,
    ) -> RowRewrite:
        """Plan to rewrite fragments with their rows in another order, which the caller finds.

        Parameters
        ----------
        fragment_ids : sequence of int, optional
            The fragments, by default all.
        max_bytes_per_file : int
            A data file is closed when it reaches this size.
        uuid : str, optional
            The uuid of the plan, by default a new one. Plans of one uuid, version and fragments are the same plan.

        Returns
        -------
        RowRewrite
            A plan whose tasks are writers; see `lance_format.table.maintenance.row_rewrite`.
        """
        return plan_row_rewrite(self._dataset._table, fragment_ids, max_bytes_per_file, uuid)

    def optimize_indices(
        self,
        *,
        index_names: Collection[str] | None = None,
        num_indices_to_merge: int | None = None,
        retrain: bool = False,
        progress: Report = None,
    ) -> None:
        """Update indices to cover fragments added or rewritten since.

        Indices of kinds that this library does not make are left alone.

        Parameters
        ----------
        index_names : collection of str, optional
            The indices to update, by default all.
        num_indices_to_merge : int, optional
            Number of latest parts of each index to merge with the new one. With 0 the index gets one more part. By
            default one of ZONEMAP indices, and of others those that have fewer rows.
        retrain : bool
            Whether to rebuild the indices for all fragments, as one part each.
        progress : callable or bool, optional
            A function that is called with a `Progress`, or True for a bar.
        """
        with reported(progress, "index", Work.INDEXING):
            self._dataset._move(
                lambda table: optimize_indices(
                    table, index_names=index_names, num_indices_to_merge=num_indices_to_merge, retrain=retrain
                )
            )

    def plan_optimize_indices(
        self,
        *,
        index_names: Collection[str] | None = None,
        num_indices_to_merge: int | None = None,
        retrain: bool = False,
        split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES,
    ) -> IndexPlan:
        """Plan to update indices by tasks that run anywhere; see `lance_format.table.versions.planned_change`.

        Parameters
        ----------
        index_names, num_indices_to_merge, retrain
            See `optimize_indices`.
        split_size_bytes : int
            Approximate number of bytes that a task reads. Fragments are not divided.

        Returns
        -------
        IndexPlan
            A plan for the version that the dataset shows. If the indices are up to date, it has no task, and its commit
            makes no version.
        """
        return plan_optimize_indices(
            self._dataset._table,
            index_names=index_names,
            num_indices_to_merge=num_indices_to_merge,
            retrain=retrain,
            divide=divided_by(split_size_bytes),
        )

    def enable_auto_cleanup(self, auto_cleanup_config: Mapping[str, int]) -> None:
        """Clean up after every `interval` commits.

        Parameters
        ----------
        auto_cleanup_config : mapping
            `interval`, and `older_than_seconds` or `retain_versions` or both; see `plan_write`.
        """
        entries = {**dict.fromkeys(AUTO_CLEANUP_KEYS), **auto_cleanup_entries(auto_cleanup_config)}
        self._dataset._move(lambda table: update_config(table, entries))

    def disable_auto_cleanup(self) -> None:
        """Turn off automatic cleanups."""
        self._dataset._move(lambda table: update_config(table, dict.fromkeys(AUTO_CLEANUP_KEYS)))


def _left(table: TableVersion, names: Iterable[str]) -> list[str]:
    """Return the names of indices that a table still has."""
    there = {index.name for index in table.manifest.indices}
    return [name for name in names if name in there]
