"""What `LanceDataset.optimize` offers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_format.table.compaction import CompactionMetrics, CompactionOptions, compact_files
from lance_format.table.table_version import TableVersion

if TYPE_CHECKING:
    from lance_format.table.dataset_changes import DatasetChanges


class DatasetOptimizer:
    """Ways to make a table faster to read. Made by `LanceDataset.optimize`."""

    def __init__(self, dataset: DatasetChanges) -> None:
        self._dataset = dataset

    def compact_files(self, **options: Any) -> CompactionMetrics:
        """Combine small fragments, and take deleted rows and dropped columns out of the files.

        Indices that do not know rows by stable ids cover the new fragments only once they have been updated.

        Parameters
        ----------
        **options
            See `CompactionOptions`. What is not given is taken from the table's configuration, where an option `o` is
            called `lance.compaction.o`.

        Returns
        -------
        CompactionMetrics
            Zeros if nothing was worth it; there is no new version then.
        """
        metrics = CompactionMetrics()

        def attempt(table: TableVersion) -> TableVersion:
            nonlocal metrics
            made, metrics = compact_files(table, CompactionOptions.choose(table, dict(options)))
            return made

        self._dataset._change(attempt)
        return metrics
