"""Row ids, and the versions that created and last updated each row, in tables with stable row ids.

New rows get the ids after the last assigned one. A row that an update moves to another fragment keeps its id and its
creating version. The commit assigns ids and versions, since other writers may have assigned ids since the operation was
planned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import pyroaring

from lance_format.errors import InvalidInputError
from lance_format.row_numbers import from_bitmap
from lance_format.table.format.fragment import FragmentMetadata, RowSequence
from lance_format.table.format.manifest import Manifest
from lance_format.table.row_ids.row_id_sequence import RowIdSequence, parse_partial_row_ids, serialize_row_ids
from lance_format.table.row_ids.row_version_sequence import (
    RowVersionSequence,
    parse_row_versions,
    serialize_row_versions,
)


def add_rows(state: Manifest, fragments: Iterable[FragmentMetadata]) -> Manifest:
    """Add fragments to a table.

    Parameters
    ----------
    state : Manifest
    fragments : iterable of FragmentMetadata
        If some of their rows replace others, `row_ids` and `created_at` are those of the replaced rows. Further rows
        are new.
    """
    if not state.stable_row_ids:
        return state.with_new_fragments(without_lineage(fragment) for fragment in fragments)
    next_row_id = state.next_row_id
    complete = []
    for fragment in fragments:
        kept = _kept_ids(fragment)
        num_new = fragment.physical_rows - len(kept)
        complete.append(_with_lineage(fragment, kept, next_row_id, num_new, state.version + 1))
        next_row_id += num_new
    return dataclasses.replace(state.with_new_fragments(complete), next_row_id=next_row_id)


def without_lineage(fragment: FragmentMetadata) -> FragmentMetadata:
    """Return a fragment with all rows marked as new, overriding its own lineage."""
    known = (fragment.row_id_meta, fragment.created_at_version_meta, fragment.last_updated_at_version_meta)
    if known == (None, None, None):
        return fragment
    return dataclasses.replace(
        fragment, row_id_meta=None, created_at_version_meta=None, last_updated_at_version_meta=None
    )


def touch_rows(previous: Manifest, fragments: Iterable[FragmentMetadata]) -> tuple[FragmentMetadata, ...]:
    """Return fragments with the next version as the last update of all rows with changed data files."""
    if not previous.stable_row_ids:
        return tuple(fragments)
    before = {fragment.id: fragment.files for fragment in previous.fragments}
    return tuple(
        fragment
        if before.get(fragment.id) == fragment.files
        else dataclasses.replace(
            fragment,
            last_updated_at_version_meta=serialize_row_versions(
                RowVersionSequence.constant(previous.version + 1, fragment.physical_rows)
            ),
        )
        for fragment in fragments
    )


def touch_some_rows(
    previous: Manifest, fragments: Iterable[FragmentMetadata], offsets: Mapping[int, bytes]
) -> tuple[FragmentMetadata, ...]:
    """Return fragments with the next version as the last update of some rows.

    Parameters
    ----------
    previous : Manifest
    fragments : iterable of FragmentMetadata
    offsets : mapping of int to bytes
        Offsets of the rows in the files, as a portable Roaring bitmap per fragment id.

    Raises
    ------
    InvalidInputError
        If a row does not exist.
    """
    if not previous.stable_row_ids:
        return tuple(fragments)
    return tuple(
        _touched(fragment, offsets[fragment.id], previous.version + 1) if fragment.id in offsets else fragment
        for fragment in fragments
    )


def _touched(fragment: FragmentMetadata, offsets: bytes, version: int) -> FragmentMetadata:
    try:
        rows = pyroaring.BitMap.deserialize(offsets)
    except (ValueError, IndexError, TypeError) as error:
        raise InvalidInputError(f"the rows of fragment {fragment.id} are no Roaring bitmap: {error}") from error
    if rows and rows[-1] >= fragment.physical_rows:
        raise InvalidInputError(f"fragment {fragment.id} has {fragment.physical_rows} rows, but no row {rows[-1]}")
    known = RowVersionSequence.constant(1, fragment.physical_rows)
    if fragment.last_updated_at_version_meta is not None:
        known = parse_row_versions(_inline(fragment.last_updated_at_version_meta), fragment.physical_rows)
    changed = known.replace(from_bitmap(rows), version)
    return dataclasses.replace(fragment, last_updated_at_version_meta=serialize_row_versions(changed))


def _kept_ids(fragment: FragmentMetadata) -> RowIdSequence:
    if fragment.row_id_meta is None:
        return RowIdSequence.from_range(0, 0)
    return parse_partial_row_ids(_inline(fragment.row_id_meta), fragment.physical_rows)


def _with_lineage(
    fragment: FragmentMetadata, kept: RowIdSequence, next_row_id: int, num_new: int, version: int
) -> FragmentMetadata:
    new_ids = RowIdSequence.from_range(next_row_id, next_row_id + num_new)
    made = RowVersionSequence.constant(version, fragment.physical_rows)
    if fragment.created_at_version_meta is not None:
        before = parse_row_versions(_inline(fragment.created_at_version_meta), len(kept))
        made = RowVersionSequence.concatenate([before, RowVersionSequence.constant(version, num_new)])
    return dataclasses.replace(
        fragment,
        row_id_meta=serialize_row_ids(RowIdSequence.concatenate([kept, new_ids])),
        created_at_version_meta=serialize_row_versions(made),
        last_updated_at_version_meta=serialize_row_versions(
            RowVersionSequence.constant(version, fragment.physical_rows)
        ),
    )


def _inline(sequence: RowSequence) -> bytes:
    if not isinstance(sequence, bytes):
        raise InvalidInputError("the ids and versions of the rows of a fragment must be part of the transaction")
    return sequence
