"""The distinct values of a column of strings or binaries, in a hash table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_format.expressions.values.text_set import TextSet
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.batches.integer_index import Int64Array

_ABSENT = -1


@dataclass(frozen=True, slots=True, eq=False)
class TextIndex:
    """The distinct values of a column. Made by `of` and `of_values`.

    Parameters
    ----------
    values : pa.Array
        Those that are not null. They are numbered from 0.
    has_null : bool
        Whether null is one of them, which comes last then.
    known : TextSet
    """

    values: pa.Array
    has_null: bool
    known: TextSet

    def __len__(self) -> int:
        return self.known.count + self.has_null

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the hash table, which is made again."""
        return TextIndex.of_values, (self.values, self.has_null)

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> TextIndex:
        """Number the values of a column of a type for which `is_text` is true."""
        return cls.of_values(column.drop_null().unique(), column.null_count > 0)

    @classmethod
    def of_values(cls, values: pa.Array, has_null: bool = False) -> TextIndex:
        """Number values without nulls."""
        return cls(values, has_null, TextSet(values))

    def find(self, column: pa.ChunkedArray) -> Int64Array:
        """Return the numbers of the values of other rows; -1 for other values."""
        numbers = np.concatenate([np.empty(0, np.int64), *map(self.known.find, column.chunks)])
        if column.null_count:
            numbers[column.is_null().to_numpy()] = self.known.count if self.has_null else _ABSENT
        return numbers
