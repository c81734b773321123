"""The table as users see it: one version of it, its fragments, and reading them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.object_store import ObjectStore, absolute_uri, resolve
from lance_format.table.fragment import DataFile, FragmentMetadata
from lance_format.table.fragment_scan import FragmentScan, empty_columns_batch
from lance_format.table.history import History, load_history, summarize
from lance_format.table.manifest import Manifest

DEFAULT_BATCH_SIZE = 8192
_MAX_BATCH_SIZE = 2**31 - 1

Indices: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]


def dataset(
    uri: str | os.PathLike[str],
    version: int | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> LanceDataset:
    """Open a table.

    Parameters
    ----------
    uri : str or path
        The directory of the table.
    version : int, optional
        The version to open; the latest if not given.
    storage_options : mapping, optional

    Raises
    ------
    DatasetNotFoundError
        If there is no table.
    VersionNotFoundError
        If it has no such version.
    NotSupportedError
        If the table needs a feature that is not supported.
    CorruptFileError
        If its manifest is malformed.
    """
    if version is not None:
        _check_version(version)
    store, root = resolve(uri, storage_options)
    history = load_history(store, root)
    manifest = history.load(history.latest if version is None else version)
    return LanceDataset(os.fspath(uri), store, root, manifest, storage_options)


class LanceDataset:
    """One version of a table. Made by `dataset` and `write_dataset`; never changes; can be pickled.

    Parameters
    ----------
    uri : str
    store : ObjectStore
    root : str
        The path of the table in the store.
    manifest : Manifest
    storage_options : mapping, optional
    """

    def __init__(
        self,
        uri: str,
        store: ObjectStore,
        root: str,
        manifest: Manifest,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self._uri = uri
        self._absolute_uri = absolute_uri(uri)
        self._store = store
        self._root = root
        self._manifest = manifest
        self._storage_options = dict(storage_options or {})

    def __repr__(self) -> str:
        return f"LanceDataset({self._uri!r}, version={self.version})"

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._absolute_uri, self.version, self._storage_options)

    @property
    def uri(self) -> str:
        """The path or URI that it was opened with."""
        return self._uri

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self._manifest.schema.to_arrow()

    @property
    def version(self) -> int:
        """The version that this object shows."""
        return self._manifest.version

    @property
    def latest_version(self) -> int:
        """The latest version that the table has now."""
        return self._history().latest

    @property
    def data_storage_version(self) -> str:
        """The version of its data files, as far as a writer has not chosen another."""
        return str(self._manifest.file_version)

    def versions(self) -> list[dict[str, Any]]:
        """Describe every version that the table has: `version`, `timestamp` in local time, and `metadata`."""
        history = self._history()
        return [summarize(history.load(version)) for version in history.names]

    def checkout_version(self, version: int) -> LanceDataset:
        """Return another version of the table.

        Raises
        ------
        VersionNotFoundError
            If there is no such version.
        """
        _check_version(version)
        return LanceDataset(self._uri, self._store, self._root, self._history().load(version), self._storage_options)

    def get_fragments(self) -> list[LanceFragment]:
        """Return the fragments, by ascending id."""
        return [LanceFragment(self, fragment) for fragment in self._manifest.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment of an id, or None if there is none."""
        for fragment in self._manifest.fragments:
            if fragment.id == fragment_id:
                return LanceFragment(self, fragment)
        return None

    def count_rows(self) -> int:
        """Count the rows, deleted ones not included."""
        return sum(fragment.count_rows() for fragment in self.get_fragments())

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in order, as a stream.

        Parameters
        ----------
        columns : sequence of str, optional
            Which, and in which order; all if not given.
        limit : int, optional
            How many rows at most.
        offset : int, optional
            How many rows to skip.
        batch_size : int, optional
            The most rows a batch has; 8192 if not given.

        Raises
        ------
        InvalidInputError
            If an argument makes no sense.
        """
        projection = self._project(columns)
        scans = [self._scan(fragment, projection) for fragment in self._manifest.fragments]
        return _read_scans(scans, *_check_window(limit, offset, batch_size))

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
    ) -> pa.Table:
        """Read rows into memory; see `to_batches`."""
        batches = self.to_batches(columns, limit=limit, offset=offset, batch_size=batch_size)
        return _to_table(batches, self._project(columns))

    def head(self, num_rows: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the first rows."""
        return self.to_table(columns, limit=num_rows)

    def take(self, indices: Indices, columns: Sequence[str] | None = None) -> pa.Table:
        """Read rows by their place.

        Parameters
        ----------
        indices : sequence of int, or integer array of numpy or Arrow
            Places among the rows that are not deleted, from 0; in any order, repeated at will.
        columns : sequence of str, optional

        Returns
        -------
        pa.Table
            The rows in the order of `indices`.

        Raises
        ------
        InvalidInputError
            If there is no such row or column.
        """
        projection = self._project(columns)
        scans = [self._scan(fragment, projection) for fragment in self._manifest.fragments]
        ends = np.cumsum([0, *(scan.num_rows() for scan in scans)], dtype=np.int64)
        rows = _check_indices(indices, int(ends[-1]))
        if not projection.fields:
            return _to_table(iter([empty_columns_batch(rows.size)]), projection)
        owners = np.searchsorted(ends, rows, side="right") - 1
        # Fragment by fragment, then back into the order asked for.
        order = np.argsort(owners, kind="stable")
        batches = [scans[number].take(rows[owners == number] - ends[number]) for number in np.unique(owners)]
        inverse = np.empty_like(order)
        inverse[order] = np.arange(order.size)
        return _to_table(iter(batches), projection).take(pa.array(inverse))

    def _history(self) -> History:
        return load_history(self._store, self._root)

    def _project(self, columns: Sequence[str] | None) -> Schema:
        if columns is None:
            return self._manifest.schema
        if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
            raise InvalidInputError(f"columns is {columns!r}; a list of column names is needed")
        if len(set(columns)) < len(columns):
            raise InvalidInputError(f"columns is {columns!r}; a column can be asked for only once")
        return self._manifest.schema.select(columns)

    def _scan(self, fragment: FragmentMetadata, projection: Schema) -> FragmentScan:
        return FragmentScan(self._store, self._root, fragment, projection)


class LanceFragment:
    """A part of the rows of a table: those that were written into one data file. Made by `LanceDataset`.

    Parameters
    ----------
    table : LanceDataset
    metadata : FragmentMetadata
    """

    def __init__(self, table: LanceDataset, metadata: FragmentMetadata) -> None:
        self._dataset = table
        self._metadata = metadata

    def __repr__(self) -> str:
        return f"LanceFragment({self._dataset!r}, {self.fragment_id})"

    @property
    def fragment_id(self) -> int:
        """Its id, unique in the table."""
        return self._metadata.id

    @property
    def metadata(self) -> FragmentMetadata:
        """What the manifest says about it."""
        return self._metadata

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._dataset.schema

    @property
    def physical_rows(self) -> int:
        """How many rows its files have, deleted ones included."""
        return self._scan(None).physical_rows()

    @property
    def num_deletions(self) -> int:
        """How many of them are deleted."""
        return self._scan(None).num_deletions()

    def data_files(self) -> list[DataFile]:
        """Return the files that hold its columns."""
        return list(self._metadata.files)

    def count_rows(self) -> int:
        """Count the rows, deleted ones not included."""
        return self._scan(None).num_rows()

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in order, as a stream; see `LanceDataset.to_batches`."""
        return _read_scans([self._scan(columns)], *_check_window(limit, offset, batch_size))

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
    ) -> pa.Table:
        """Read rows into memory; see `LanceDataset.to_batches`."""
        batches = self.to_batches(columns, limit=limit, offset=offset, batch_size=batch_size)
        return _to_table(batches, self._dataset._project(columns))

    def take(self, indices: Indices, columns: Sequence[str] | None = None) -> pa.Table:
        """Read rows by their place in the fragment; see `LanceDataset.take`."""
        scan = self._scan(columns)
        rows = _check_indices(indices, scan.num_rows())
        return _to_table(iter([scan.take(rows)] if rows.size else []), scan.schema)

    def _scan(self, columns: Sequence[str] | None) -> FragmentScan:
        return self._dataset._scan(self._metadata, self._dataset._project(columns))


def _reopen(uri: str, version: int, storage_options: Mapping[str, str]) -> LanceDataset:
    return dataset(uri, version, storage_options=storage_options)


def _read_scans(
    scans: Sequence[FragmentScan], limit: int | None, offset: int, batch_size: int
) -> Iterator[pa.RecordBatch]:
    for scan in scans:
        if limit is not None and limit <= 0:
            return
        num_rows = scan.num_rows()
        stop = num_rows if limit is None else min(num_rows, offset + limit)
        yield from scan.read(offset, stop, batch_size=batch_size)
        if limit is not None:
            limit -= max(stop - offset, 0)
        offset = max(offset - num_rows, 0)


def _to_table(batches: Iterator[pa.RecordBatch], projection: Schema) -> pa.Table:
    if projection.fields:
        return pa.Table.from_batches(batches, schema=projection.to_arrow())
    # Without columns a table cannot count its rows, unless it is made from batches that do.
    found = list(batches)
    return pa.Table.from_batches(found) if found else pa.schema([]).empty_table()


def _check_version(version: int) -> None:
    if isinstance(version, bool) or not isinstance(version, int):
        raise InvalidInputError(f"version is {version!r}; a whole number is needed")


def _check_window(limit: int | None, offset: int | None, batch_size: int | None) -> tuple[int | None, int, int]:
    batch_size = DEFAULT_BATCH_SIZE if batch_size is None else batch_size
    offset = 0 if offset is None else offset
    for name, value, minimum in (("limit", limit, 0), ("offset", offset, 0), ("batch_size", batch_size, 1)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < minimum):
            raise InvalidInputError(f"{name} is {value!r}; a whole number from {minimum} on is needed")
    return limit, offset, min(batch_size, _MAX_BATCH_SIZE)


def _check_indices(indices: Indices, num_rows: int) -> npt.NDArray[np.int64]:
    try:
        found: npt.NDArray[Any] = np.asarray(indices)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f"indices are not whole numbers: {error}") from error
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InvalidInputError(
            f"indices must be a list of whole numbers; they are {found.ndim}-dimensional {found.dtype}"
        )
    lowest, highest = int(found.min()), int(found.max())
    if lowest < 0 or highest >= num_rows:
        wrong = lowest if lowest < 0 else highest
        raise InvalidInputError(f"there is no row {wrong}; rows 0 to {num_rows - 1} can be taken")
    return found.astype(np.int64)
