"""Validation of a version of a table: its files exist and agree with the manifest."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import Counter

import numpy as np

from lance_format.errors import CorruptFileError, DatasetNotFoundError, LanceError
from lance_format.file import SearchCache
from lance_format.object_store import ObjectNotFoundError, map_together
from lance_format.progress import Work, advance, expect
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import created_at_of, last_updated_at_of, row_ids_of
from lance_format.table.row_ids.index import RowIdIndex
from lance_format.table.row_ids.row_id_sequence import RowIdSequence
from lance_format.table.versions.table_version import TableVersion


def validate(table: TableVersion) -> None:
    """Check a version of a table, without reading the values of its rows.

    Fragments have distinct ids in ascending order, which are not given out again. Their data files exist, have the size
    and the number of rows in the manifest, and their metadata can be read. Deletion files name rows of their fragment.
    In tables with stable row ids every live row has a unique, assigned id, and versions that created and last updated
    it.

    Parameters
    ----------
    table : TableVersion

    Raises
    ------
    CorruptFileError
        At the first contradiction.
    DatasetNotFoundError
        If a file is missing.
    """
    table = uncached(table)
    check_fragment_ids(table)
    announce_checks(table)
    scans = [table.scan(fragment, table.manifest.schema) for fragment in table.manifest.fragments]
    for scan in map_together(table.store, functools.partial(_check_files, table), scans):
        advance(Work.CHECKING, scan.physical_rows(), scan.fragment.known_bytes)
    if table.manifest.stable_row_ids:
        _check_lineage(table, scans)


def uncached(table: TableVersion) -> TableVersion:
    """Return a version that has nothing in its cache: what is there may have been lost in the storage since."""
    return dataclasses.replace(table, cache=SearchCache())


def check_fragment_ids(table: TableVersion) -> None:
    """Check that fragments have distinct ids in ascending order, which are not given out again.

    Parameters
    ----------
    table : TableVersion

    Raises
    ------
    CorruptFileError
        If they have not.
    """
    ids, message = table.manifest.fragments.columns.ids, table.manifest.message
    (wrong,) = np.nonzero(np.diff(ids) <= 0)
    if wrong.size:
        one, other = ids[wrong[0] : wrong[0] + 2].tolist()
        raise CorruptFileError(
            f"fragment {one} of {table.root} is before fragment {other}; their ids are not distinct and ascending"
        )
    if ids.size and message.HasField("max_fragment_id") and message.max_fragment_id < ids[-1]:
        raise CorruptFileError(
            f"{table.root} has fragment {ids[-1]}, and the highest id that was given out is said to be"
            f" {message.max_fragment_id}"
        )


def check_row_ids(table: TableVersion) -> None:
    """Check that the live rows of different fragments have different ids; rows without stable ids always have.

    Fragments whose ids or deletion files cannot be read are left out: `validate_fragment` reports them.

    Parameters
    ----------
    table : TableVersion

    Raises
    ------
    CorruptFileError
        If two rows have the same id.
    """
    known = []
    fragments = table.manifest.fragments if table.manifest.stable_row_ids else ()
    scans = [table.scan(fragment, table.manifest.schema) for fragment in fragments]
    for scan, ids in zip(scans, map_together(table.store, _live_ids, scans), strict=True):
        if ids is not None:
            known.append((scan.fragment.id, ids.runs(), scan.deleted_rows()))
    RowIdIndex(known)


def _live_ids(scan: FragmentReader) -> RowIdSequence | None:
    """Return the row ids of a fragment after its deleted rows were read; None if that fails."""
    with contextlib.suppress(LanceError):
        scan.deleted_rows()
        return row_ids_of(scan)
    return None


def announce_checks(table: TableVersion) -> None:
    """Tell those who watch the progress how many rows and bytes a check of all fragments has."""
    columns = table.manifest.fragments.columns
    expect(Work.CHECKING, int(columns.physical_rows.sum()), sum(columns.size_bytes.tolist()))


def validate_fragment(table: TableVersion, fragment: FragmentMetadata) -> None:
    """Check a fragment of a version of a table; see `validate`."""
    scan = _check_files(table, table.scan(fragment, table.manifest.schema))
    if table.manifest.stable_row_ids:
        _check_lineage(table, [scan])


def _check_files(table: TableVersion, scan: FragmentReader) -> FragmentReader:
    _check_fields(table, scan.fragment)
    _check_sizes(table, scan.fragment)
    scan.take_physical(np.zeros(0, np.int64))  # opens every file that columns are in, and finds these there
    scan.deleted_rows()
    return scan


def _check_fields(table: TableVersion, fragment: FragmentMetadata) -> None:
    held = Counter(field_id for file in fragment.files for field_id in file.fields if field_id >= 0)
    twice = [field_id for field_id, count in held.items() if count > 1]
    if twice:
        raise CorruptFileError(f"field {twice[0]} of fragment {fragment.id} of {table.root} is in two data files")


def _check_sizes(table: TableVersion, fragment: FragmentMetadata) -> None:
    for file in fragment.files:
        path = table.directory.holding(file, table.manifest.bases).path(file.relative_path)
        try:
            size = table.store.size(path)
        except ObjectNotFoundError as error:
            raise DatasetNotFoundError(f"the data file {path} of fragment {fragment.id} is missing") from error
        if file.exact_size_bytes not in (None, size):
            raise CorruptFileError(f"the file has {size} bytes, the manifest says {file.exact_size_bytes}", path=path)


def _check_lineage(table: TableVersion, scans: list[FragmentReader]) -> None:
    known = []
    for scan in scans:
        fragment = scan.fragment
        ids = row_ids_of(scan)
        if ids is None:
            raise CorruptFileError(f"the rows of fragment {fragment.id} of {table.root} have no ids")
        _check_given_out(table, fragment, ids)
        created_at_of(scan)
        last_updated_at_of(scan)
        known.append((fragment.id, ids.runs(), scan.deleted_rows()))
    RowIdIndex(known)


def _check_given_out(table: TableVersion, fragment: FragmentMetadata, ids: RowIdSequence) -> None:
    lasts, next_id = ids.runs().lasts(), table.manifest.next_row_id
    if lasts.size and int(lasts.max()) >= next_id:
        raise CorruptFileError(
            f"fragment {fragment.id} of {table.root} has the row id {int(lasts.max())}; the next is {next_id}"
        )
