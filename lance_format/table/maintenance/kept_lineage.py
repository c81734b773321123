"""Lineage of rows that a compaction moves: their ids, and the versions that made and changed them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lance_format.errors import CorruptFileError
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import created_at_of, last_updated_at_of, row_ids_of
from lance_format.table.row_ids.row_id_sequence import RowIdSequence, serialize_row_ids
from lance_format.table.row_ids.row_version_sequence import RowVersionSequence, serialize_row_versions


def with_lineage(written: Sequence[FragmentMetadata], scans: Sequence[FragmentReader]) -> list[FragmentMetadata]:
    """Give the rows of new fragments the ids and versions that they had."""
    all_ids = RowIdSequence.concatenate(_ids(scan).delete(scan.deleted_rows()) for scan in scans)
    all_made, all_changed = (
        RowVersionSequence.concatenate(versions_of(scan).delete(scan.deleted_rows()) for scan in scans)
        for versions_of in (_made, _changed)
    )
    return named_as(written, all_ids, all_made, all_changed)


def named_as(
    written: Sequence[FragmentMetadata],
    ids: RowIdSequence,
    created_at: RowVersionSequence,
    last_updated_at: RowVersionSequence,
) -> list[FragmentMetadata]:
    """Give the rows of new fragments ids and versions.

    Parameters
    ----------
    written : sequence of FragmentMetadata
    ids : RowIdSequence
        Of all rows, in the order of the fragments.
    created_at, last_updated_at : RowVersionSequence
        The same.
    """
    named = []
    row = 0
    for fragment in written:
        stop = row + fragment.physical_rows
        named.append(
            dataclasses.replace(
                fragment,
                row_id_meta=serialize_row_ids(ids.slice(row, stop)),
                created_at_version_meta=serialize_row_versions(created_at.slice(row, stop)),
                last_updated_at_version_meta=serialize_row_versions(last_updated_at.slice(row, stop)),
            )
        )
        row = stop
    return named


def _ids(scan: FragmentReader) -> RowIdSequence:
    ids = row_ids_of(scan)
    if ids is None:
        raise CorruptFileError(f"fragment {scan.fragment.id} of {scan.directory} has no row ids, as its table promises")
    return ids


def _made(scan: FragmentReader) -> RowVersionSequence:
    found = created_at_of(scan)
    return RowVersionSequence.constant(1, scan.physical_rows()) if found is None else found


def _changed(scan: FragmentReader) -> RowVersionSequence:
    found = last_updated_at_of(scan)
    return _made(scan) if found is None else found
