"""Absence of the keys that a merge inserts, checked before each attempt to create the new version.

If two merges insert the same new key concurrently, the one that commits last must be planned again, and then finds the
key: the check searches the rows that other writers have added.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import RetryableCommitConflictError
from lance_format.table.changes.merge.matching import MergeSource, describe_key
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.manifest import Manifest
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
    keys = [table.manifest.schema.field(name) for name in source.keys.names]
    known: dict[int, tuple[DataFile, ...]] = {}

    def check(latest: Manifest) -> None:
        if not all(key in latest.schema.fields for key in keys):
            raise RetryableCommitConflictError(
                f"another writer changed the columns {', '.join(source.keys.names)} of {table.root} concurrently, by"
                " which this merge matches rows; nothing was changed: run it again on the latest version"
            )
        for fragment in latest.fragments.beyond(table.manifest.fragments):
            before = table.manifest.fragment(fragment.id)
            if fragment.files != known.get(fragment.id, () if before is None else before.files):
                _check_absence(table, latest, fragment, source, is_inserted)
                known[fragment.id] = fragment.files

    return check


def _check_absence(
    table: TableVersion,
    latest: Manifest,
    fragment: FragmentMetadata,
    source: MergeSource,
    is_inserted: npt.NDArray[np.bool_],
) -> None:
    scan = table.scan(fragment, latest.schema.select(source.keys.names))
    for batch, _ in scan.read(0, scan.num_rows(), batch_size=source.rows_to_search):
        rows = pa.Table.from_batches([batch])
        numbers = source.find(rows)
        clashing = (numbers >= 0) & is_inserted[numbers]
        if clashing.any():
            raise RetryableCommitConflictError(
                f"another writer added a row with {describe_key(rows, int(clashing.argmax()))} to {table.root}"
                " concurrently, which this merge inserts too; nothing was changed: run it again on the latest version"
            )
