"""Constants on their way to other processes.

pyarrow pickles and prints a scalar by way of Python objects, which lack nanoseconds and years outside 1 to 9999.
Constants therefore travel as Arrow IPC, which is exact for every value of every type.
"""

from __future__ import annotations

import pyarrow as pa

_NAME = "constants"


def to_ipc(constants: pa.Array) -> bytes:
    """Return constants as an Arrow IPC stream of one batch."""
    batch = pa.record_batch([constants], names=[_NAME])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def from_ipc(data: bytes) -> pa.Array:
    """Return the constants of an Arrow IPC stream; the inverse of `to_ipc`."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch().column(0)


def as_array(constant: pa.Scalar) -> pa.Array:
    """Return an array of one constant."""
    return pa.repeat(constant, 1) if constant.is_valid else pa.nulls(1, constant.type)


def are_identical(constant: pa.Scalar, equal: pa.Scalar) -> bool:
    """Return whether two constants that are equal have the same bits, signs of zeros included."""
    if pa.types.is_nested(constant.type) or pa.types.is_floating(constant.type):
        return to_ipc(as_array(constant)) == to_ipc(as_array(equal))
    return True
