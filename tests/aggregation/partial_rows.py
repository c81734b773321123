"""Partial rows of one aggregate, by one key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lance_format.aggregation import Aggregate, PartialAggregation


def partial_rows(
    function: str, values: pa.Array, keys: Sequence[int], step: int, **options: int
) -> list[dict[str, Any]]:
    """Add values in slices of `step`; return the rows, with `key` and `state`, of all batches."""
    aggregation = PartialAggregation(
        pa.schema([("key", pa.int64())]), [Aggregate("state", function, values.type)], **options
    )
    batches = []
    for start in range(0, len(values), step):
        part = values.slice(start, step)
        batches += aggregation.add([pa.array(keys[start : start + step])], [part], len(part))
    batches += aggregation.finish()
    assert all(batch.schema == aggregation.schema and batch.validate(full=True) is None for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]
