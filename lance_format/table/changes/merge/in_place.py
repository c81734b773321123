"""Merging by key in place: the columns of the data are rewritten in their fragments, and no row moves.

The cost depends on the rows of the fragments with a match, and on the columns of the data; other columns are neither
read nor written. It pays if many rows of a fragment change, in columns that are small relative to the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lance_format.blob_fields import has_blobs
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.table.changes.columns.replace import replace_values, serialize_offsets
from lance_format.table.changes.merge.clauses import Merging, WhenMatched
from lance_format.table.changes.merge.matching import FragmentUpdate, Matches, MergeSource
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.transaction.operations import Update
from lance_format.table.versions.table_version import Draft, TableVersion


def check_in_place(schema: Schema, merging: Merging, given: Schema) -> None:
    """Check that a merge can be done in place.

    Parameters
    ----------
    schema : Schema
    merging : Merging
    given : Schema
        The columns of the table that the data has.

    Raises
    ------
    InvalidInputError
        If it cannot; the message names the reason.
    """
    blobs = [field.name for field in given.fields if has_blobs(field)]
    reasons = {
        "rows that match are updated, and nothing else": merging.matched is not WhenMatched.UPDATE,
        "rows of the data whose key the table lacks are not inserted": merging.inserts,
        "rows of the table whose key the data lacks are not deleted": merging.deletes_others,
        "the data lacks a column of the table": len(given.fields) == len(schema.fields),
        "the data has a column beside its key": set(given.names) <= set(merging.on),
        f"the data has no column of blobs, as {', '.join(blobs)} is": bool(blobs),
    }
    for needed, is_broken in reasons.items():
        if is_broken:
            raise InvalidInputError(f'a merge can rewrite columns if {needed}; use write_mode("rewrite_rows")')


def rewrite_columns(
    draft: Draft, merging: Merging, source: MergeSource, found: Matches
) -> tuple[tuple[FragmentMetadata, ...], dict[int, bytes]]:
    """Write the columns of the data into the fragments that have rows to update.

    Parameters
    ----------
    draft : Draft
    merging : Merging
    source : MergeSource
    found : Matches

    Returns
    -------
    tuple of FragmentMetadata
        By their ids.
    dict of int to bytes
        Rows that were updated, by fragment id.
    """
    columns = _columns(draft.table, merging, source)
    values = source.table.select(columns.names)
    partial = {name: kind for name, kind in source.partial.items() if name in columns.names}
    updated, offsets = [], {}
    for fragment_id, update in sorted(found.updates.items()):
        fragment = update.scan.fragment
        rows = _source_rows(update)
        updated.append(replace_values(draft, fragment, columns, values, rows, partial, merging.file_version))
        offsets[fragment_id] = serialize_offsets(update.all()[0].offsets)
    return tuple(updated), offsets


def rewriting(
    table: TableVersion,
    merging: Merging,
    source: MergeSource,
    updated: Sequence[FragmentMetadata],
    offsets: Mapping[int, bytes],
) -> Update:
    """Return the operation that replaces columns by rewritten ones; see `rewrite_columns`."""
    columns = _columns(table, merging, source)
    fields = frozenset(node.id for column in columns.fields for node in column.walk() if updated)
    return Update(
        frozenset(),
        tuple(updated),
        (),
        fields_modified=fields,
        rewrites_rows=False,
        updated_fragment_offsets=offsets if table.manifest.stable_row_ids else {},
    )


def _columns(table: TableVersion, merging: Merging, source: MergeSource) -> Schema:
    """Return the columns that are written."""
    return table.manifest.schema.select([name for name in source.table.schema.names if name not in merging.on])


def _source_rows(update: FragmentUpdate) -> RowOffsets:
    """For each live row of a fragment, return the index of the source row that replaces it, or -1."""
    rows, replaced_by = update.all()
    found = np.full(update.scan.physical_rows(), -1, np.int64)
    found[rows.offsets] = replaced_by
    return np.delete(found, update.scan.deleted_rows())
