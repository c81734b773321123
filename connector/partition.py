"""What one read task is given: a fragment of the table."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition


@dataclass(frozen=True)
class FragmentPartition(InputPartition):
    """One fragment, read whole by one task.

    Parameters
    ----------
    fragment_id : int
        Within the version that the reader has fixed.
    """

    fragment_id: int
