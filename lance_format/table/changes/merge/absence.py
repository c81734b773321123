"""Absence of the keys that a merge inserts, checked before each attempt to create the new version."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.table.changes.merge.matching import MergeSource
from lance_format.table.changes.rows.key_absence import watch_added_rows
from lance_format.table.versions.commit import Precondition
from lance_format.table.versions.table_version import TableVersion


def absence_of(table: TableVersion, source: MergeSource, is_new: npt.NDArray[np.bool_]) -> Precondition | None:
    """Return a check that no other writer has added the inserted keys; None if the merge inserts none.

    Parameters
    ----------
    table : TableVersion
        The version that the merge was planned on.
    source : MergeSource
    is_new : bool[num_rows]
        Whether a source row is inserted.
    """
    is_inserted = np.zeros(source.keys.num_keys, np.bool_)
    is_inserted[source.numbers[is_new & (source.numbers >= 0)]] = True
    if not is_inserted.any():
        return None

    def clashes(rows: pa.Table) -> npt.NDArray[np.bool_]:
        numbers = source.find(rows)
        found: npt.NDArray[np.bool_] = (numbers >= 0) & is_inserted[numbers]
        return found

    return watch_added_rows(table, source.keys.names, clashes, source.rows_to_search)
