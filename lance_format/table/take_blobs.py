"""Taking single blobs of a table, as files."""

from __future__ import annotations

import numpy as np

from lance_format.blob_fields import format_of
from lance_format.errors import InvalidInputError
from lance_format.file import BlobFile
from lance_format.table.deletion_vector import RowOffsets
from lance_format.table.table_version import TableVersion
from lance_format.table.take import Indices, as_row_ids, find_addresses, find_places, find_row_ids


def take_blobs(
    table: TableVersion, column: str, *, ids: Indices | None, addresses: Indices | None, indices: Indices | None
) -> list[BlobFile | None]:
    """Open blobs; see `LanceDataset.take_blobs`."""
    given = sum(numbers is not None for numbers in (ids, addresses, indices))
    if given != 1:
        raise InvalidInputError(f"{given} of ids, addresses and indices are given; give exactly one")
    schema = table.manifest.schema.select([column])
    if format_of(schema.fields[0]) is None:
        raise InvalidInputError(f"column {column!r} is no column of blobs")
    fragment_ids, offsets = _find(table, ids, addresses, indices)
    found: list[BlobFile | None] = [None] * fragment_ids.size
    order = np.lexsort((offsets, fragment_ids))
    for group in np.split(order, np.flatnonzero(np.diff(fragment_ids[order])) + 1):
        fragment = table.manifest.fragment(int(fragment_ids[group[0]])) if group.size else None
        if fragment is not None:
            blobs = table.scan(fragment, schema).take_blobs(offsets[group])
            for place, blob in zip(group, blobs, strict=True):
                found[place] = blob
    return found


def _find(
    table: TableVersion, ids: Indices | None, addresses: Indices | None, indices: Indices | None
) -> tuple[RowOffsets, RowOffsets]:
    """Return in which fragments rows are, and where there."""
    if indices is not None:
        fragment_ids, offsets, _ = find_places(table, indices)
        return fragment_ids, offsets
    if addresses is not None:
        wanted = as_row_ids(addresses)
        fragment_ids, offsets = find_addresses(table, wanted)
    else:
        wanted = as_row_ids(() if ids is None else ids)
        fragment_ids, offsets = find_row_ids(table, wanted)
    missing = fragment_ids < 0
    if missing.any():
        raise InvalidInputError(f"there is no row {wanted[missing][0]}, or it is deleted")
    return fragment_ids, offsets
