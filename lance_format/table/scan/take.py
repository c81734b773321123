"""Taking single rows of a table by offset, by address or by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.row_numbers import positions_by_value
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.fragments.deletion_file import RowOffsets
from lance_format.table.fragments.joined_take import take_fragments
from lance_format.table.fragments.reader import load_deleted_rows, to_physical
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_OFFSET, LiveRows
from lance_format.table.scan.projection import Columns, Projection, plan_projection
from lance_format.table.versions.row_places import find_addresses, find_row_ids
from lance_format.table.versions.table_version import TableVersion

_NOTHING: Mapping[str, pa.Array] = MappingProxyType({})

RowSelection: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]] | pa.Array


def take_row_numbers(
    table: TableVersion,
    row_numbers: RowSelection,
    columns: Columns | None,
    fragments: Sequence[FragmentMetadata] | None = None,
    *,
    blob_handling: str | None = None,
    with_row_address: bool = False,
) -> pa.Table:
    """Read rows by their offset.

    Parameters
    ----------
    table : TableVersion
    row_numbers : sequence of int, or integer array of numpy or Arrow
        Offsets among the live rows, from 0, in any order. They may repeat.
    columns : sequence of str, or mapping of str to str, optional
        See `LanceDataset.scanner`.
    fragments : sequence of FragmentMetadata, optional
        The fragments whose rows are counted, by default all of the table.
    blob_handling : str, optional
        See `LanceDataset.scanner`.
    with_row_address : bool
        Whether to add the column `_rowaddr`.

    Returns
    -------
    pa.Table
        The rows in the order of `row_numbers`.

    Raises
    ------
    InvalidInputError
        If there is no such row or column.
    """
    extra = [ROW_ADDRESS] if with_row_address else []
    projection = plan_projection(_schema_of(table, blob_handling), columns, extra=extra)
    return take_found(table, projection, *locate_row_numbers(table, row_numbers, fragments))


def locate_row_numbers(
    table: TableVersion, row_numbers: RowSelection, fragments: Sequence[FragmentMetadata] | None = None
) -> tuple[RowOffsets, RowOffsets]:
    """Locate rows by their offset.

    Parameters
    ----------
    table : TableVersion
    row_numbers : sequence of int, or integer array of numpy or Arrow
        See `take_row_numbers`.
    fragments : sequence of FragmentMetadata, optional
        See `take_row_numbers`.

    Returns
    -------
    tuple of int64[num_rows]
        The fragment ids, and the offsets in the fragments.
    """
    counted = table.manifest.fragments if fragments is None else FragmentList.of(fragments)
    ends = np.concatenate([[0], np.cumsum(table.num_rows(counted))])
    wanted = as_row_numbers(row_numbers, int(ends[-1]))
    owners = np.searchsorted(ends, wanted, side="right") - 1
    offsets = np.empty_like(wanted)
    groups = positions_by_value(owners)
    scans = [table.scan(counted[number], Schema(())) for number, _ in groups]
    load_deleted_rows(scans)
    for (number, mine), scan in zip(groups, scans, strict=True):
        offsets[mine] = to_physical(wanted[mine] - ends[number], scan.deleted_rows())
    return counted.columns.ids[owners], offsets


def take_row_ids(
    table: TableVersion, row_ids: RowSelection, columns: Columns | None, *, blob_handling: str | None = None
) -> pa.Table:
    """Read rows by their ids.

    Parameters
    ----------
    table : TableVersion
    row_ids : sequence of int, or integer array of numpy or Arrow
        Row ids, as in the column `_rowid`, in any order. They may repeat. Ids of rows that do not exist are ignored.
    columns : sequence of str, or mapping of str to str, optional
        See `LanceDataset.scanner`.
    blob_handling : str, optional
        See `LanceDataset.scanner`.

    Returns
    -------
    pa.Table
        The rows in the order of `row_ids`.
    """
    return _take_there(table, find_row_ids(table, as_row_ids(row_ids)), columns, blob_handling)


def take_addresses(
    table: TableVersion, addresses: RowSelection, columns: Columns | None, *, blob_handling: str | None = None
) -> pa.Table:
    """Read rows by their addresses, as in the column `_rowaddr`; see `take_row_ids`."""
    return _take_there(table, find_addresses(table, as_row_ids(addresses)), columns, blob_handling)


def _take_there(
    table: TableVersion, found: tuple[RowOffsets, RowOffsets], columns: Columns | None, blob_handling: str | None
) -> pa.Table:
    projection = plan_projection(_schema_of(table, blob_handling), columns)
    fragment_ids, offsets = found
    there = fragment_ids >= 0
    return take_found(table, projection, fragment_ids[there], offsets[there])


def _schema_of(table: TableVersion, blob_handling: str | None) -> Schema:
    return read_schema(table.manifest.schema, BlobHandling.parse(blob_handling))


def as_row_numbers(indices: RowSelection, num_rows: int) -> npt.NDArray[np.int64]:
    """Check that offsets of rows are below `num_rows`, and return them as an array.

    Raises
    ------
    InvalidInputError
        If an offset is not, or they are not whole numbers.
    """
    found = _as_integers(indices)
    lowest, highest = (int(found.min()), int(found.max())) if found.size else (0, -1)
    if lowest < 0 or highest >= num_rows:
        wrong = lowest if lowest < 0 else highest
        raise InvalidInputError(f"there is no row {wrong}; rows 0 to {num_rows - 1} can be taken")
    return found.astype(np.int64)


def as_row_ids(row_ids: RowSelection) -> npt.NDArray[np.uint64]:
    """Return ids of rows as an array.

    Raises
    ------
    InvalidInputError
        If they are not whole numbers, or one is negative.
    """
    found = _as_integers(row_ids)
    if found.size and found.dtype.kind == "i" and int(found.min()) < 0:
        raise InvalidInputError(f"there is no row id {int(found.min())}; row ids are not negative")
    return found.astype(np.uint64)


def _as_integers(numbers: RowSelection) -> npt.NDArray[Any]:
    try:
        found: npt.NDArray[Any] = np.asarray(numbers)
        if found.dtype.kind == "f" and all(isinstance(number, int) for number in numbers):
            found = np.array(numbers, np.uint64)  # numpy converts a mix of small and large numbers to floats.
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f"indices are not whole numbers: {error}") from error
    if found.size == 0:
        return np.zeros(0, np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InvalidInputError(
            f"indices must be a list of whole numbers; they are {found.ndim}-dimensional {found.dtype}"
        )
    return found


def take_found(
    table: TableVersion,
    projection: Projection,
    fragment_ids: RowOffsets,
    offsets: RowOffsets,
    computed: Mapping[str, pa.Array] = _NOTHING,
) -> pa.Table:
    """Read rows, and return them in the given order.

    Parameters
    ----------
    table : TableVersion
    projection : Projection
    fragment_ids, offsets : int64[num_rows]
        Locations of the rows; see `locate_row_numbers`.
    computed : mapping of str to pa.Array
        Values of these rows that outputs need besides those that are read; see `plan_projection`.
    """
    if not fragment_ids.size:
        return projection.to_table(iter([]))
    order = np.lexsort((offsets, fragment_ids))
    before = table.rows_before() if ROW_OFFSET in projection.row_columns else {}
    wanted = []
    for group in np.split(order, np.flatnonzero(np.diff(fragment_ids[order])) + 1):
        fragment = table.manifest.fragment(int(fragment_ids[group[0]]))
        if fragment is None:
            raise InvalidInputError(f"there is no fragment {fragment_ids[group[0]]}")
        scan = table.scan(fragment, projection.source)
        wanted.append(LiveRows(scan, offsets[group], before.get(fragment.id, 0)))
    batches, start = [], 0
    for read, rows in take_fragments(wanted, projection.source):
        batch = projection.complete(read, *rows)
        if computed:
            chosen = pa.array(order[start : start + batch.num_rows])
            for name, values in computed.items():
                batch = batch.append_column(name, values.take(chosen))
        batches.append(projection.apply(batch, *rows))
        start += batch.num_rows
    taken = projection.to_table(iter(batches))
    if (order[:-1] < order[1:]).all() or not taken.num_columns:
        return taken
    inverse = np.empty_like(order)
    inverse[order] = np.arange(order.size)
    return take_rows(taken, pa.array(inverse))
