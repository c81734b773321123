"""Arrow arrays of blobs: what writers give, descriptions, and where in nested columns they are.

No I/O happens here; `blobs.py` moves the payloads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.blob_fields import BlobFormat, format_of, has_blobs
from lance_format.data_block import Counts, Offsets
from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file.columns.leaves import as_stored, bitmap, validity_of
from lance_format.lazy_dataclasses import dataclass
from lance_format.list_items import offsets_of
from lance_format.structural.rep_def import Validity

INLINE, PACKED, DEDICATED, EXTERNAL = 0, 1, 2, 3
"""Location of a payload: in the data file, in a shared file, in a separate file, or at a URI."""

Replace: TypeAlias = Callable[[pa.Array, Field], pa.Array]


@dataclass(frozen=True, slots=True)
class Descriptions:
    """Locations of the payloads of rows.

    Parameters
    ----------
    valid : bool[num_rows] or None
        None if no blob is null.
    kinds : uint8[num_rows]
    positions, sizes : uint64[num_rows]
        0 for nulls.
    blob_ids : uint32[num_rows]
        The number of the blob file.
    """

    valid: Validity | None
    kinds: npt.NDArray[np.uint8]
    positions: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint64]
    blob_ids: npt.NDArray[np.uint32]

    @classmethod
    def parse(cls, array: pa.StructArray) -> Descriptions:
        """Read a column of descriptions, of either format."""
        valid = validity_of(array)

        def column(name: str, dtype: type[np.unsignedinteger]) -> npt.NDArray[np.unsignedinteger]:
            if array.type.get_field_index(name) < 0:
                return np.zeros(len(array), dtype)
            found = array.field(name).fill_null(0).to_numpy(zero_copy_only=False)
            return found if valid is None else np.where(valid, found, dtype(0))

        return cls(
            valid,
            column("kind", np.uint8),
            column("position", np.uint64),
            column("size", np.uint64),
            column("blob_id", np.uint32),
        )

    def to_array(self, field: Field) -> pa.StructArray:
        """Return the column that a field of descriptions has."""
        count = len(self.sizes)
        parts = {"kind": self.kinds, "position": self.positions, "size": self.sizes, "blob_id": self.blob_ids}
        children = []
        for child in field.children:
            if child.name in parts:
                children.append(pa.array(parts[child.name]))
            else:
                offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
                children.append(pa.Array.from_buffers(pa.string(), count, [None, offsets, pa.py_buffer(b"")]))
        return pa.Array.from_buffers(field.to_arrow_type(), count, [bitmap(self.valid)], children=children)


def replace_blobs(array: pa.Array, field: Field, target: Field, replace: Replace) -> pa.Array:
    """Replace each array of blobs in an array.

    Parameters
    ----------
    array : pyarrow.Array
    field, target : Field
        Fields of the array and of the result.
    replace : callable
        Takes an array of blobs, null where a parent is null, and its field in `target`.

    Raises
    ------
    NotSupportedError
        If blobs are in maps or in fixed-size lists.
    """
    if format_of(field) is not None:
        return replace(array, target)
    arrow_type = target.to_arrow_type()
    if not has_blobs(field):
        return array if array.type == arrow_type else as_stored(array).cast(arrow_type)
    array = as_stored(array)
    buffers = [bitmap(validity_of(array))]
    if field.logical_type == "struct":
        parts = zip(array.flatten(), field.children, target.children, strict=True)
        children = [replace_blobs(part, child, wanted, replace) for part, child, wanted in parts]
    else:
        items, offsets = _items_of(array, field)
        buffers.append(pa.py_buffer(offsets))
        children = [replace_blobs(items, field.children[0], target.children[0], replace)]
    return pa.Array.from_buffers(arrow_type, len(array), buffers, children=children)


def payload_sizes(array: pa.Array, field: Field, most: int) -> Counts:
    """Return the bytes of the payloads of each row, counting at most `most` per payload.

    Parameters
    ----------
    array : pyarrow.Array
        An array with descriptions in place of blobs.
    field : Field
    most : int
        Limit that keeps sums of sizes in the file from overflowing.

    Returns
    -------
    int64[num_rows]

    Raises
    ------
    NotSupportedError
        If blobs are in maps or in fixed-size lists.
    """
    if format_of(field) is not None:
        return np.minimum(Descriptions.parse(array).sizes, np.uint64(most)).astype(np.int64)
    sizes = np.zeros(len(array), np.int64)
    if not has_blobs(field):
        return sizes
    if field.logical_type == "struct":
        for part, child in zip(array.flatten(), field.children, strict=True):
            sizes += payload_sizes(part, child, most)
        return sizes
    items, offsets = _items_of(array, field)
    ends = np.concatenate([[0], np.cumsum(payload_sizes(items, field.children[0], most))])
    return np.asarray(np.diff(ends[offsets]), np.int64)


def _items_of(array: pa.Array, field: Field) -> tuple[pa.Array, Offsets]:
    """Return the items of lists, and the offsets of the lists."""
    if not field.logical_type.startswith(("list", "large_list")):
        raise NotSupportedError(f"blobs in a {field.logical_type} are not supported")
    offsets = offsets_of(array)
    return array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0])), offsets - offsets[0]


def payloads_of(array: pa.Array, name: str) -> pa.Array:
    """Return the bytes that a writer gives for a column of blobs: byte strings, or structs of bytes and URI.

    Parameters
    ----------
    array : pyarrow.Array
    name : str
        Of the column, for messages.

    Returns
    -------
    pyarrow.LargeBinaryArray

    Raises
    ------
    NotSupportedError
        If a blob is given by its URI.
    InvalidInputError
        If it is given in no way.
    """
    array = as_stored(array)
    if not pa.types.is_struct(array.type):
        return array.cast(pa.large_binary())
    parts = dict(zip([field.name for field in array.type], array.flatten(), strict=True))
    data = parts["data"]
    if any(part.null_count < len(part) for key, part in parts.items() if key != "data"):
        raise NotSupportedError(f"column {name!r} has a blob that is given by its URI; give its bytes")
    if data.null_count > array.null_count:
        raise InvalidInputError(f"column {name!r} has a blob without bytes; make the whole blob null, or give b''")
    return data.cast(pa.large_binary())


def as_given(array: pa.Array, field: Field) -> pa.Array:
    """Return a column whose blobs have the type of the table's field.

    Parameters
    ----------
    array : pyarrow.Array
        A column with any input of `payloads_of` in place of blobs.
    field : Field
        Of a table.
    """
    return replace_blobs(array, field, field, in_form_of)


def in_form_of(array: pa.Array, field: Field) -> pa.Array:
    """Convert an input of `payloads_of` to the type of a blob field, which is not that of descriptions."""
    array = as_stored(array)
    arrow_type = field.to_arrow_type()
    if array.type == arrow_type:
        return array
    data = payloads_of(array, field.name)
    if format_of(field) is BlobFormat.V1:
        return data
    children = [data if part.name == "data" else pa.nulls(len(data), part.type) for part in arrow_type]
    return pa.Array.from_buffers(arrow_type, len(data), [bitmap(validity_of(data))], children=children)
