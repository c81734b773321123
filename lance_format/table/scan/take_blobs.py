"""Taking single blobs of a table, as files, as bytes, and in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.blob_fields import BlobHandling, format_of, has_blobs, read_schema
from lance_format.errors import InvalidInputError
from lance_format.file import BlobFile
from lance_format.file import payload_sizes as sizes_of
from lance_format.file.columns.dictionaries import concat
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.scan.take import RowSelection, as_row_ids, locate_row_numbers, take_addresses
from lance_format.table.versions.row_places import find_addresses, find_row_ids
from lance_format.table.versions.table_version import TableVersion

_SELECTORS = ("ids", "addresses", "indices")
_MOST = 2**40
"""Limit of the size of a blob in sums."""


def take_blobs(
    table: TableVersion,
    column: str,
    *,
    ids: RowSelection | None,
    addresses: RowSelection | None,
    indices: RowSelection | None,
) -> list[BlobFile | None]:
    """Open blobs; see `LanceDataset.take_blobs`."""
    return _open_blobs(table, column, *_find_rows(table, column, ids, addresses, indices))


def _open_blobs(
    table: TableVersion, column: str, fragment_ids: RowOffsets, offsets: RowOffsets
) -> list[BlobFile | None]:
    schema = table.manifest.schema.select([column])
    found: list[BlobFile | None] = [None] * fragment_ids.size
    for fragment, group in _by_fragment(table, fragment_ids, offsets):
        blobs = table.scan(fragment, schema).take_blobs(offsets[group])
        for position, blob in zip(group, blobs, strict=True):
            found[position] = blob
    return found


def read_blobs(
    table: TableVersion,
    column: str,
    *,
    ids: RowSelection | None,
    addresses: RowSelection | None,
    indices: RowSelection | None,
) -> list[tuple[int, bytes | None]]:
    """Read blobs; see `LanceDataset.read_blobs`."""
    fragment_ids, offsets = _find_rows(table, column, ids, addresses, indices)
    schema = read_schema(table.manifest.schema.select([column]), BlobHandling.ALL_BINARY)
    found: list[bytes | None] = [None] * fragment_ids.size
    for fragment, group in _by_fragment(table, fragment_ids, offsets):
        distinct, positions = np.unique(offsets[group], return_inverse=True)
        values = table.scan(fragment, schema).take_physical(distinct).column(0).take(pa.array(positions)).to_pylist()
        for position, value in zip(group.tolist(), values, strict=True):
            found[position] = value
    return list(zip(_addresses(fragment_ids, offsets), found, strict=True))


def payload_sizes(table: TableVersion, addresses: RowSelection, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the sizes of blobs of rows; see `LanceDataset.payload_sizes`."""
    schema = table.manifest.schema.select(columns)
    fields = [field for field in schema.fields if has_blobs(field)]
    found = as_row_ids(addresses)
    sizes = np.zeros(found.size, np.int64)
    if not fields or not found.size:
        return sizes
    described = take_addresses(table, found, [field.name for field in fields], blob_handling="all_descriptions")
    if described.num_rows != found.size:
        raise InvalidInputError(f"{found.size - described.num_rows} of {found.size} rows do not exist")
    for field in fields:
        sizes += sizes_of(concat(described[field.name].chunks), field, _MOST)
    return sizes


def read_blob_ranges(
    table: TableVersion, column: str, requests: Sequence[tuple[int, int, int]], selector: str
) -> list[tuple[int, int, bytes | None]]:
    """Read ranges of blobs; see `LanceDataset.read_blob_ranges`."""
    if selector not in _SELECTORS:
        raise InvalidInputError(f"selector is {selector!r}; one of {', '.join(_SELECTORS)} is needed")
    for number, (_, offset, length) in enumerate(requests):
        if offset < 0 or length < 0 or offset + length >= 2**64:
            raise InvalidInputError(f"request {number} is for {length} bytes at byte {offset}, which no blob can have")
    rows = np.array([row for row, _, _ in requests], np.uint64)
    distinct, positions = np.unique(rows, return_inverse=True)
    chosen = dict.fromkeys(_SELECTORS) | {selector: distinct}
    fragment_ids, offsets = _find_rows(table, column, **chosen)
    found: list[bytes | None] = [None] * rows.size
    wanted: list[list[int]] = [[] for _ in range(distinct.size)]
    for request, position in enumerate(positions.tolist()):
        wanted[position].append(request)
    for blob, group in zip(_open_blobs(table, column, fragment_ids, offsets), wanted, strict=True):
        if blob is not None:
            with blob:
                ranges = blob.read_ranges([(requests[request][1], requests[request][2]) for request in group])
            for request, value in zip(group, ranges, strict=True):
                found[request] = value
    addresses = _addresses(fragment_ids[positions], offsets[positions])
    return list(zip(range(rows.size), addresses, found, strict=True))


def _addresses(fragment_ids: RowOffsets, offsets: RowOffsets) -> list[int]:
    found: list[int] = ((fragment_ids << 32) | offsets).tolist()
    return found


def _by_fragment(
    table: TableVersion, fragment_ids: RowOffsets, offsets: RowOffsets
) -> Iterator[tuple[FragmentMetadata, RowOffsets]]:
    """Yield each fragment with the positions of its rows in the arrays, ascending by offset in the fragment."""
    order = np.lexsort((offsets, fragment_ids))
    for group in np.split(order, np.flatnonzero(np.diff(fragment_ids[order])) + 1):
        fragment = table.manifest.fragment(int(fragment_ids[group[0]])) if group.size else None
        if fragment is not None:
            yield fragment, group


def _find_rows(
    table: TableVersion,
    column: str,
    ids: RowSelection | None,
    addresses: RowSelection | None,
    indices: RowSelection | None,
) -> tuple[RowOffsets, RowOffsets]:
    """Locate rows of a blob column: fragment ids and offsets."""
    given = sum(numbers is not None for numbers in (ids, addresses, indices))
    if given != 1:
        raise InvalidInputError(f"{given} of ids, addresses and indices are given; give exactly one")
    if format_of(table.manifest.schema.select([column]).fields[0]) is None:
        raise InvalidInputError(f"column {column!r} is no column of blobs")
    return _find(table, ids, addresses, indices)


def _find(
    table: TableVersion, ids: RowSelection | None, addresses: RowSelection | None, indices: RowSelection | None
) -> tuple[RowOffsets, RowOffsets]:
    """Locate rows: fragment ids and offsets."""
    if indices is not None:
        fragment_ids, offsets = locate_row_numbers(table, indices)
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
