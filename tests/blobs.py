"""Columns of blobs for tests."""

from __future__ import annotations

import random

import pyarrow as pa

MARK = {b"lance-encoding:blob": b"true"}
FIELD = pa.field("b", pa.large_binary(), metadata=MARK)


def payloads(num_rows: int, *, seed: int = 0, most: int = 300, nulls: float = 0.2) -> list[bytes | None]:
    """Return byte strings of different sizes, some of them empty, and nulls."""
    rng = random.Random(seed)
    sizes = [0, 1, 63, 64, 65, most]
    return [None if rng.random() < nulls else rng.randbytes(rng.choice(sizes)) for _ in range(num_rows)]


def table(values: list[bytes | None], field: pa.Field = FIELD) -> pa.Table:
    """Return a table of row numbers and blobs."""
    numbers = pa.array(range(len(values)), pa.int64())
    return pa.table([numbers, pa.array(values, field.type)], schema=pa.schema([pa.field("n", pa.int64()), field]))
