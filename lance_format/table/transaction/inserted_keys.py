"""Keys of the rows that a merge has inserted, for other writers: a Bloom filter in the transaction.

Two merges that insert the same key concurrently must not both land if the key is the primary key of the table. The
reference compares their filters. This library looks at the rows themselves
(`lance_format.table.changes.rows.key_absence`), and writes the filter for the reference, whose parameters are fixed:

```
bitmap: 1,024 blocks of 8 uint32, little-endian        number_of_items: 8192    probability: 0.00057
```

A key is its value as bytes: integers as 8 bytes, little-endian, texts in UTF-8. The values of a key of several columns
are joined, with a byte 0 after each. The reference tracks no keys of other types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.kernels.columns.bloom_filter import hash_values, insert_hashes
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2

_NUM_BITS = 262_144
_NUM_ITEMS = 8192
_PROBABILITY = 0.00057
_SIGNED = (pa.int32(), pa.int64())
_UNSIGNED = (pa.uint32(), pa.uint64())
_BYTES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


@dataclass(frozen=True, slots=True)
class InsertedKeys:
    """A set of keys with false positives.

    Parameters
    ----------
    field_ids : tuple of int
        The fields of the key, in its order.
    bitmap : bytes
    """

    field_ids: tuple[int, ...]
    bitmap: bytes

    @classmethod
    def parse(cls, message: table_pb2.Transaction.Update) -> Self | None:
        """Return the filter of an update; None if it has none, or a filter of another kind."""
        if not message.HasField("inserted_rows") or not message.inserted_rows.HasField("bloom"):
            return None
        return cls(tuple(message.inserted_rows.field_ids), message.inserted_rows.bloom.bitmap)

    def serialize(self, message: table_pb2.Transaction.Update) -> None:
        """Put it into an update."""
        stored = message.inserted_rows
        stored.field_ids.extend(self.field_ids)
        stored.bloom.bitmap = self.bitmap
        stored.bloom.num_bits = _NUM_BITS
        stored.bloom.number_of_items = _NUM_ITEMS
        stored.bloom.probability = _PROBABILITY


class KeyCollector:
    """Collects the keys of rows.

    Parameters
    ----------
    field_ids : sequence of int
    """

    def __init__(self, field_ids: Sequence[int]) -> None:
        self._field_ids = tuple(field_ids)
        self._words = np.zeros(_NUM_BITS // 32, np.uint32)

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add rows by the columns of their key, in its order. Rows with a null in it have no key."""
        content, ends = key_bytes(columns)
        hashes = np.empty(ends.size - 1, np.uint64)
        hash_values(content, ends, hashes)
        insert_hashes(hashes, self._words)

    def keys(self) -> InsertedKeys:
        """Return the set of the keys added so far."""
        return InsertedKeys(self._field_ids, self._words.astype("<u4").tobytes())


def unite_keys(sets: Iterable[InsertedKeys | None]) -> InsertedKeys | None:
    """Return the union of sets of one key; None if there is none."""
    given = [keys for keys in sets if keys is not None]
    if not given:
        return None
    words = np.zeros(_NUM_BITS // 8, np.uint8)
    for keys in given:
        words |= np.frombuffer(keys.bitmap, np.uint8)
    return InsertedKeys(given[0].field_ids, words.tobytes())


def is_tracked(types: Iterable[pa.DataType]) -> bool:
    """Return whether the reference tracks keys of columns of some types."""
    return all(each in (*_SIGNED, *_UNSIGNED, *_BYTES) for each in types)


def key_bytes(columns: Sequence[pa.Array]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return keys as bytes.

    Parameters
    ----------
    columns : sequence of pa.Array
        Of types that are tracked.

    Returns
    -------
    uint8[num_bytes]
    int64[num_keys + 1]
        The start of the first key, then the end of each. Rows with a null have no key.
    """
    parts = [_as_binary(column) for column in columns]
    if len(parts) > 1:
        empty = pa.scalar(b"", pa.large_binary())
        joined = pc.binary_join_element_wise(*parts, empty, pa.scalar(b"\0", pa.large_binary()))
    else:
        joined = parts[0]
    joined = joined.drop_null()
    _, ends, content = joined.buffers()
    bounds = np.frombuffer(ends, np.int64)[joined.offset : joined.offset + len(joined) + 1]
    return np.frombuffer(content or b"", np.uint8), bounds


def _as_binary(column: pa.Array) -> pa.Array:
    if column.type in _BYTES:
        return column.cast(pa.large_binary())
    wide = column.cast(pa.int64() if column.type in _SIGNED else pa.uint64())
    words = wide.fill_null(0).to_numpy(zero_copy_only=False).astype(f"<{wide.type.to_pandas_dtype()().dtype.str[1:]}")
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(wide), [None, pa.py_buffer(words.tobytes())])
    return pc.if_else(wide.is_valid(), fixed.cast(pa.large_binary()), pa.scalar(None, pa.large_binary()))
