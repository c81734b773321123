"""The rows that an index may name.

An address is that of a row of a fragment that the index covers, which may be deleted, or of another fragment: rows were
moved since, by updates or compactions, or their column was written again. A stable id is one that the table has given.
"""

from __future__ import annotations

import numpy as np

from lance_format.errors import CorruptFileError
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.row_finder import RowIds
from lance_format.table.row_ids.index import split_addresses
from lance_format.table.row_ids.runs import Positions
from lance_format.table.versions.table_version import TableVersion

_UNLIMITED = 2**32


class NamedRows:
    """Checks the rows that a part of an index names.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata
    by_id : bool
        Whether it names them by stable ids rather than addresses.
    """

    def __init__(self, table: TableVersion, index: IndexMetadata, *, by_id: bool) -> None:
        self._index = index
        self._next_id = np.uint64(table.manifest.next_row_id) if by_id else None
        self._most_fragments = table.manifest.max_fragment_id
        columns = table.manifest.fragments.columns
        ids, positions, counts = np.unique(columns.ids, return_index=True, return_counts=True)
        num_rows = columns.physical_rows[positions]
        # Fragments of early releases may share an id, or have an unknown size.
        kept = (counts == 1) & (num_rows > 0) & np.isin(ids, index.covered_ids())
        self._ids, self._num_rows = ids[kept], num_rows[kept]

    def check(self, ids: RowIds, path: str) -> None:
        """Check some rows.

        Parameters
        ----------
        ids : uint64[num_rows]
        path : str
            The file that names them.

        Raises
        ------
        CorruptFileError
            If there is no such row, and has been none.
        """
        if self._next_id is None:
            self.check_places(*split_addresses(ids), path)
        elif ids.size and ids.max() >= self._next_id:
            what = f"names the row of id {ids.max()}; ids up to {int(self._next_id) - 1} have been given"
            raise self._lacking(what, path)

    def check_places(self, fragment_ids: Positions, offsets: Positions, path: str) -> None:
        """Check some rows by their places.

        Parameters
        ----------
        fragment_ids, offsets : int64[num_rows]
        path : str

        Raises
        ------
        CorruptFileError
            See `check`.
        """
        unknown = np.flatnonzero(fragment_ids > self._most_fragments)
        if unknown.size:
            raise self._lacking(f"names fragment {fragment_ids[unknown[0]]}, which there has not been", path)
        if not self._ids.size:
            return
        places = np.minimum(np.searchsorted(self._ids, fragment_ids), self._ids.size - 1)
        limits = np.where(self._ids[places] == fragment_ids, self._num_rows[places], _UNLIMITED)
        beyond = np.flatnonzero(offsets >= limits)
        if beyond.size:
            first = beyond[0]
            raise lacking_row(self._index, int(offsets[first]), int(fragment_ids[first]), int(limits[first]), path)

    def _lacking(self, what: str, path: str) -> CorruptFileError:
        return _lacking(self._index, what, path)


def lacking_row(index: IndexMetadata, offset: int, fragment_id: int, num_rows: int, path: str) -> CorruptFileError:
    """Return the error of an index that names a row beyond the last of a fragment.

    Parameters
    ----------
    index : IndexMetadata
    offset : int
        Of the row in the fragment.
    fragment_id : int
    num_rows : int
        Number of rows of the fragment, deleted ones included.
    path : str
        The file that names it.
    """
    return _lacking(index, f"names row {offset} of fragment {fragment_id}, which has {num_rows}", path)


def _lacking(index: IndexMetadata, what: str, path: str) -> CorruptFileError:
    return CorruptFileError(f"index {index.name!r} {what}; drop the index and make it again", path=path)
