"""Changes from one version of a table to another: rows, and the transactions that changed them."""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.fragments.row_columns import ROW_ID
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.history import load_version
from lance_format.table.versions.table_version import TableVersion

RowIds: TypeAlias = npt.NDArray[np.uint64]

_CREATED = "_row_created_at_version"
_UPDATED = "_row_last_updated_at_version"
_LINEAGE = (ROW_ID, _CREATED, _UPDATED)
_BATCH_ROWS = 8192


@checked_methods
@dataclass(frozen=True, slots=True)
class DatasetDelta:
    """The changes after one version of a table, up to and including another. `LanceDataset.delta` makes it.

    Rows are identified by their ids, so the methods for rows require stable row ids. Any table lists transactions.

    Parameters
    ----------
    begin_version : int
        The earlier version, 0 for the empty state before the first. Only `get_deleted_row_ids` requires that it still
        exists.
    end : TableVersion
    """

    begin_version: int
    end: TableVersion = field(repr=False)

    def list_transactions(self) -> list[Transaction]:
        """Return the transactions of the versions, earliest first.

        Raises
        ------
        VersionNotFoundError
            If one of the versions no longer exists.
        """
        history = self.end.history()
        versions = range(self.begin_version + 1, self.end.manifest.version + 1)
        return [history.load_transaction(version) for version in versions]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Read the rows that were inserted between the versions, with the values of the later one.

        Returns
        -------
        pa.RecordBatchReader
            All columns, `_rowid`, and the versions that created and last updated a row.

        Raises
        ------
        NotSupportedError
            If the table has no stable row ids.
        """
        return self._read(f"{_CREATED} > {self.begin_version}")

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Read the rows of the earlier version that were updated in between; see `get_inserted_rows`."""
        return self._read(f"{_CREATED} <= {self.begin_version} AND {_UPDATED} > {self.begin_version}")

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """Return the ids of the rows that were deleted between the versions, ascending, as `_rowid`.

        Fragments that are the same in both versions are skipped.

        Raises
        ------
        NotSupportedError
            If the table has no stable row ids.
        VersionNotFoundError
            If the earlier version no longer exists.
        """
        self._check_stable()
        gone = self._find_deleted()
        schema = pa.schema({ROW_ID: pa.uint64()})
        starts = range(0, gone.size, _BATCH_ROWS)
        batches = (pa.record_batch([gone[start : start + _BATCH_ROWS]], schema) for start in starts)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _begin(self) -> TableVersion | None:
        if not self.begin_version:
            return None
        return dataclasses.replace(self.end, manifest=load_version(self.end.directory, self.begin_version))

    def _find_deleted(self) -> RowIds:
        begin = self._begin()
        if begin is None:
            return np.zeros(0, np.uint64)
        before, after = _ids_beyond(begin, self.end), _ids_beyond(self.end, begin)
        return np.setdiff1d(before, after, assume_unique=True)

    def _read(self, predicate: str) -> pa.RecordBatchReader:
        self._check_stable()
        columns = [*self.end.manifest.schema.names, *_LINEAGE]
        return LanceScanner(self.end, ScanOptions(columns=columns, filter=predicate)).to_reader()

    def _check_stable(self) -> None:
        if not self.end.manifest.stable_row_ids:
            raise NotSupportedError(
                f"the table {self.end.root} has no stable row ids, without which it does not know which rows are the"
                " same; write another table with enable_stable_row_ids=True"
            )


def choose_versions(
    current: int, compared_against: int | None, begin_version: int | None, end_version: int | None
) -> tuple[int, int]:
    """Return the versions that the arguments of `LanceDataset.delta` mean.

    Parameters
    ----------
    current : int
        The version that the dataset shows.
    compared_against, begin_version, end_version : int, optional
        See `LanceDataset.delta`.

    Returns
    -------
    tuple of int and int
        The earlier and the later version.

    Raises
    ------
    InvalidInputError
        If arguments are missing, contradict each other, or are not in order.
    """
    given = begin_version is not None or end_version is not None
    if compared_against is not None and not given:
        begin_version, end_version = compared_against, current
    elif compared_against is not None or begin_version is None or end_version is None:
        raise InvalidInputError("either compared_against is needed, or both begin_version and end_version")
    if begin_version > end_version:
        raise InvalidInputError(f"version {begin_version} is later than version {end_version}")
    return begin_version, end_version


def _ids_beyond(table: TableVersion, other: TableVersion) -> RowIds:
    """Return the ids of the rows of fragments that another version lacks or has in another form, ascending."""
    fragments = list(table.manifest.fragments.beyond(other.manifest.fragments))
    scanner = LanceScanner(table, ScanOptions(columns=[ROW_ID], fragments=fragments))
    nothing = np.zeros(0, np.uint64)
    return np.sort(np.concatenate([nothing, *(batch.column(0).to_numpy() for batch in scanner.to_batches())]))
