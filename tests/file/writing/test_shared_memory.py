"""Batches that arrive as one message are not held by their small columns."""

from __future__ import annotations

import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_format.file import LanceFileReader, LanceFileWriter

_NUM_BATCHES = 60
_ROWS = 16
_MIB = 1 << 20


def _message(number: int, schema: pa.Schema) -> np.ndarray:
    """Return a stream of one batch of a MiB."""
    numbers = list(range(_ROWS * number, _ROWS * (number + 1)))
    columns = {
        "id": numbers,
        "text": [f"{value}" for value in numbers],
        "pair": [{"a": value, "b": [value] * 3} for value in numbers],
        "key": pa.array(["x", "y"] * (_ROWS // 2)).dictionary_encode(),
        "large": [bytes([value % 256]) * (_MIB // _ROWS) for value in numbers],
    }
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_table(pa.table(columns, schema))
    return np.frombuffer(sink.getvalue(), np.uint8).copy()


@pytest.mark.parametrize("is_blob", [False, True], ids=["pages", "blobs"])
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_memory_of_written_columns_is_free(version: str, is_blob: bool, tmp_path: Path) -> None:
    fields = [
        pa.field("id", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("pair", pa.struct({"a": pa.int64(), "b": pa.list_(pa.int32())})),
        pa.field("key", pa.dictionary(pa.int32(), pa.string())),
        pa.field("large", pa.large_binary(), metadata={"lance-encoding:blob": "true"} if is_blob else None),
    ]
    schema = pa.schema(fields)
    held: list[weakref.ref[np.ndarray]] = []
    most = 0
    with LanceFileWriter(tmp_path / "f.lance", schema, version=version) as writer:
        for number in range(_NUM_BATCHES):
            message = _message(number, schema)
            held.append(weakref.ref(message))
            with pa.ipc.open_stream(pa.py_buffer(message)) as stream:
                batch = stream.read_next_batch()
            del message, stream
            writer.write_batch(batch)
            del batch
            most = max(most, sum(reference() is not None for reference in held))
    assert most <= (2 if is_blob else 10)
    found = LanceFileReader(tmp_path / "f.lance").read_all().to_table().select(["id", "text", "pair", "key"])
    assert found.column("id").to_pylist() == list(range(_ROWS * _NUM_BATCHES))
    assert found.column("text").to_pylist() == [f"{value}" for value in range(_ROWS * _NUM_BATCHES)]
    assert found.column("pair").to_pylist()[-1]["b"] == [_ROWS * _NUM_BATCHES - 1] * 3
    assert found.column("key").to_pylist() == ["x", "y"] * (_ROWS * _NUM_BATCHES // 2)
