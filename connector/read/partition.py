"""Partition of a read: the ranges of rows of fragments that one task reads."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from lance_format import ScanTask
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class ScanPartition(InputPartition):
    """A part of a scan, read by one task.

    Parameters
    ----------
    task : ScanTask
        Within the version that the reader has fixed.
    """

    task: ScanTask
