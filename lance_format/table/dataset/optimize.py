"""Optimization of tables, as `LanceDataset.optimize` offers it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.table.changes.columns.metadata import update_config
from lance_format.table.changes.write.settings import AUTO_CLEANUP_KEYS, auto_cleanup_entries
from lance_format.table.indices.building import IndexPlan, optimize_indices, plan_optimize_indices
from lance_format.table.maintenance.compaction import (
    CompactionMetrics,
    CompactionPlan,
    RewriteResult,
    commit_rewrites,
    compact_files,
    plan_compaction,
)
from lance_format.table.maintenance.compaction_options import CompactionOptions
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, divided_by
from lance_format.table.versions.open_table import OpenTable


@checked_methods
class Compaction:
    """A compaction in steps that may run on different machines: a plan, its tasks, and one commit or several."""

    @staticmethod
    def plan(dataset: OpenTable, options: Mapping[str, Any] | None = None) -> CompactionPlan:
        """Find the fragments that are worth rewriting; see `DatasetOptimizer.compact_files`."""
        return plan_compaction(dataset._table, CompactionOptions.choose(dataset._table, dict(options or {})))

    @staticmethod
    def commit(
        dataset: OpenTable, rewrites: Iterable[RewriteResult], options: Mapping[str, Any] | None = None
    ) -> CompactionMetrics:
        """Put what tasks of one plan have written in the place of what was there, and move the dataset to that version.

        Parameters
        ----------
        dataset : LanceDataset
        rewrites : iterable of RewriteResult
            What `CompactionTask.execute` returned, of all tasks or of some.
        options : mapping, optional
            Of no effect.

        Raises
        ------
        CommitConflictError
            If others changed the rows meanwhile.
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
    """Ways to make a table faster to read. Made by `LanceDataset.optimize`."""

    def __init__(self, dataset: OpenTable) -> None:
        self._dataset = dataset

    def compact_files(self, **options: Any) -> CompactionMetrics:
        """Combine small fragments, and take deleted rows and dropped columns out of the files.

        Indices that do not know rows by stable ids cover the new fragments only once they have been updated.

        Parameters
        ----------
        **options
            See `CompactionOptions`. What is not given is taken from the table's configuration, where an option `o` is
            called `lance.compaction.o`. Those by which pylance is told how to compact, and not what (`num_threads`,
            `io_buffer_size` …), are accepted, and of no effect.

        Returns
        -------
        CompactionMetrics
            Zeros if nothing was worth it; there is no new version then.
        """
        return self._dataset._change(lambda table: compact_files(table, CompactionOptions.choose(table, dict(options))))

    def optimize_indices(
        self,
        *,
        index_names: Collection[str] | None = None,
        num_indices_to_merge: int | None = None,
        retrain: bool = False,
    ) -> None:
        """Let ZONEMAP indices cover the fragments that were added or rewritten since; indices of other kinds stay.

        Parameters
        ----------
        index_names : collection of str, optional
            Which; all if not given.
        num_indices_to_merge : int, optional
            How many parts of each index, the last ones, become one with what is new; 1 if not given. With 0 there is
            one part more afterwards.
        retrain : bool
            Whether to make the indices anew for all fragments, of one part each.
        """
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
            How much of the files a task reads, about. A fragment belongs to one task as a whole.

        Returns
        -------
        IndexPlan
            For the version that the dataset shows. If nothing is to be done, it has no task, and its commit makes no
            version.
        """
        return plan_optimize_indices(
            self._dataset._table,
            index_names=index_names,
            num_indices_to_merge=num_indices_to_merge,
            retrain=retrain,
            divide=divided_by(split_size_bytes),
        )

    def enable_auto_cleanup(self, auto_cleanup_config: Mapping[str, int]) -> None:
        """Let every so many commits clean up.

        Parameters
        ----------
        auto_cleanup_config : mapping
            `interval`, and `older_than_seconds` or `retain_versions` or both; see `plan_write`.
        """
        entries = {**dict.fromkeys(AUTO_CLEANUP_KEYS), **auto_cleanup_entries(auto_cleanup_config)}
        self._dataset._move(lambda table: update_config(table, entries))

    def disable_auto_cleanup(self) -> None:
        """Let no commit clean up anymore."""
        self._dataset._move(lambda table: update_config(table, dict.fromkeys(AUTO_CLEANUP_KEYS)))
