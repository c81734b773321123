"""Three rows with columns of the types that engines find hard: vectors, blobs, JSON, lists of structs, times."""

from __future__ import annotations

import pyarrow as pa

import lance_format


def special_rows(**more: pa.Array) -> pa.Table:
    """Return the rows, whose `id` is 0, 1 and 2.

    Parameters
    ----------
    **more : pyarrow.Array
        Further columns by their names.
    """
    vectors, deep = pa.list_(pa.float32(), 3), pa.list_(pa.struct([("a", pa.int16()), ("b", pa.list_(pa.string()))]))
    columns = {
        "id": pa.array([0, 1, 2], pa.int64()),
        "vector": pa.array([[1, 2, 3], None, [4, 5, 6]], vectors),
        "payload": lance_format.blob_array([b"zero", None, b"two" * 50_000]),
        "json": pa.array(['{"a": 1}', None, "[2]"], pa.json_()),
        "deep": pa.array([[{"a": 1, "b": ["x", None]}, None], None, []], deep),
        "when": pa.array([0, None, 5], pa.timestamp("us", "UTC")),
        **more,
    }
    fields = [
        lance_format.blob_field(name) if name == "payload" else pa.field(name, array.type)
        for name, array in columns.items()
    ]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
