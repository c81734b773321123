"""What one read task is given: some ranges of rows of some fragments."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from lance_format import ScanTask


@dataclass(frozen=True)
class ScanPartition(InputPartition):
    """A part of a scan, read by one task.

    Parameters
    ----------
    task : ScanTask
        Within the version that the reader has fixed.
    """

    task: ScanTask
