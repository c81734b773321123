"""Finding rows of a table by their ids.

The live rows of all fragments are kept as runs of consecutive ids at consecutive addresses, by ascending id. An
appended fragment of any size is one run, and every deleted row splits a run. Memory therefore depends on the number of
deleted and moved rows, not on the number of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.table.row_ids.runs import Positions, Runs, U64Array

_NONE = np.zeros(0, np.int64)
_MAX_ROWS = 2**32  # A row's address has 32 bits for its fragment, and 32 for its offset there.


class RowIdIndex:
    """Index from row ids to rows.

    Parameters
    ----------
    fragments : sequence of (int, Runs, int64[n])
        For every fragment its id, the ids of its rows, and the ascending and distinct offsets of deleted rows. A moved
        row has its id in two fragments, and is deleted in one of them.

    Raises
    ------
    CorruptFileError
        If two live rows have the same id.
    InvalidInputError
        If the deleted rows are not ascending offsets of the fragment.
    """

    def __init__(self, fragments: Sequence[tuple[int, Runs, Positions]]) -> None:
        parts: list[Runs] = []
        offsets: list[Positions] = [_NONE]
        for fragment_id, runs, deleted in fragments:
            _check_fragment(fragment_id, int(runs.lengths.sum()), deleted)
            begins, live = runs.first_positions(), runs
            if deleted.size:
                begins, lengths = runs.intervals_without(deleted)
                live = Runs(runs.take(begins), lengths)
            parts.append(live)
            offsets.append(begins)
        owners = np.array([fragment_id for fragment_id, _, _ in fragments], np.int64)
        unsorted = Runs.concatenate(parts)
        order = np.argsort(unsorted.starts, kind="stable")
        self._starts: U64Array = unsorted.starts[order]
        self._lasts: U64Array = unsorted.lasts()[order]
        holders = np.repeat(owners, [part.starts.size for part in parts])
        self._addresses: U64Array = row_addresses(holders, np.concatenate(offsets))[order]
        self._check_distinct()

    @property
    def size_bytes(self) -> int:
        """Size in memory."""
        return self._starts.nbytes + self._lasts.nbytes + self._addresses.nbytes

    def find(self, row_ids: U64Array) -> tuple[Positions, Positions]:
        """Locate some rows.

        Parameters
        ----------
        row_ids : uint64[n]

        Returns
        -------
        fragment_ids, row_offsets : int64[n]
            Offsets count deleted rows too; -1 for unknown and deleted rows.
        """
        run = np.searchsorted(self._starts, row_ids, side="right") - 1
        known = run >= 0
        known[known] = row_ids[known] <= self._lasts[run[known]]
        run = run[known]
        addresses = self._addresses[run] + (row_ids[known] - self._starts[run])
        fragment_ids, row_offsets = np.full(row_ids.size, -1, np.int64), np.full(row_ids.size, -1, np.int64)
        fragment_ids[known], row_offsets[known] = split_addresses(addresses)
        return fragment_ids, row_offsets

    def _check_distinct(self) -> None:
        (overlaps,) = np.nonzero(self._starts[1:] <= self._lasts[:-1])
        if overlaps.size:
            first = int(overlaps[0])
            row_id = self._starts[first + 1]
            positions = [self._addresses[first] + row_id - self._starts[first], self._addresses[first + 1]]
            described = " and ".join(f"row {int(x) % _MAX_ROWS} of fragment {int(x) >> 32}" for x in positions)
            raise CorruptFileError(f"the row id {row_id} is that of {described}")


def sharing_ids(runs: Sequence[Runs]) -> set[int]:
    """Return the positions of the fragments that may have a row id in common with another one, or twice.

    Only their deleted rows have to be known to find rows by their ids: those that were moved away are among them.

    Parameters
    ----------
    runs : sequence of Runs
        The ids of the rows of each fragment.
    """
    owners = np.repeat(np.arange(len(runs)), [each.starts.size for each in runs])
    starts, lengths = Runs.concatenate(runs)
    order = np.argsort(starts, kind="stable")
    lasts = Runs(starts, lengths).lasts()[order]
    begins = np.ones(starts.size, np.bool_)
    begins[1:] = starts[order][1:] > np.maximum.accumulate(lasts)[:-1]
    group = np.cumsum(begins) - 1
    return set(owners[order][np.bincount(group)[group] > 1].tolist())


def row_addresses(fragment_ids: Positions, row_offsets: Positions) -> U64Array:
    """Return the addresses, `uint64[n]`, of rows at some offsets, `int64[n]`, of some fragments, `int64[n]`.

    The upper 32 bits are the fragment id, the lower ones the offset in the fragment.
    """
    return (fragment_ids.astype(np.uint64) << np.uint64(32)) | row_offsets.astype(np.uint64)


def split_addresses(addresses: U64Array) -> tuple[Positions, Positions]:
    """Return the fragment ids and the offsets, both `int64[n]`, of addresses, `uint64[n]`; see `row_addresses`."""
    return (addresses >> np.uint64(32)).astype(np.int64), (addresses & np.uint64(_MAX_ROWS - 1)).astype(np.int64)


def _check_fragment(fragment_id: int, num_rows: int, deleted: Positions) -> None:
    if not 0 <= fragment_id < _MAX_ROWS or num_rows > _MAX_ROWS:
        raise InvalidInputError(f"fragment {fragment_id} of {num_rows} rows has no addresses")
    if deleted.size and (deleted[0] < 0 or deleted[-1] >= num_rows or (deleted[1:] <= deleted[:-1]).any()):
        raise InvalidInputError(
            f"the deleted rows of fragment {fragment_id} are not ascending, or not below {num_rows}"
        )
