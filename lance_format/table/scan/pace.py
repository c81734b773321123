"""The pace of a filtered scan: how many rows are tested at once, and which columns are read first, by what was seen."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_format.expressions import BoundExpression, Expression
from lance_format.expressions.nodes import In, walk
from lance_format.file.columns.dictionaries import expanded_bytes, size_bytes
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.scan.joined_rows import JoinedRows
from lance_format.table.scan.scanned_fragment import Window

_FIRST_GROUP_ROWS = 32 * 1024
_FIRST_LIMITED_GROUP_ROWS = 8 * 1024
_MAX_GROUP_ROWS = 1024 * 1024
_GROWTH = 4
_FEWEST_JOINED_ROWS, _FIRST_JOINED_ROWS = 8 * 1024, 64 * 1024
_TESTED_ROWS = 256 * 1024
TESTED_BYTES = 8 * 1024 * 1024
"""Bytes tested at once: every kernel call costs as much as some thousands of rows."""
_TESTED_PER_CONSTANT = 16
MAX_FILES_TOGETHER = 64
"""Small fragments are read together, up to a number of files: while a filter is tested, all of them are open."""
_FIRST_FILES_TOGETHER = 16
_FIRST_JOINED_BYTES, _JOINED_BYTES = 1024 * 1024, 16 * 1024 * 1024
_NARROW_BYTES, _LARGE_BYTES = 16, 128
_DENSE_SHARE_IF_NARROW, _DENSE_SHARE, _DENSE_SHARE_IF_REMOTE, _DENSE_SHARE_IF_LARGE = 0.04, 0.15, 0.25, 0.75
"""Minimum share of passing rows for reading all columns at once, by the bytes of a value; see `benchmarks/scans.py`."""
_PASSED_SHARE = 0.25
"""Minimum share of small fragments with a passing row for reading all of their columns at once."""
_SPARSE_SHARE = 1 / 64
"""Maximum share of rows that pass the first terms for reading the other columns of the filter for these rows only."""


@dataclass(slots=True)
class Pace:
    """State of a scan that adapts its reads.

    Parameters
    ----------
    batch_size : int
        Maximum number of rows per batch of the result.
    group_rows : int
        Number of rows tested before the other columns of the passing ones are read.
    tested_rows : int
        Number of rows tested at once.
    most_tested_rows : int
        Maximum of `tested_rows`, if their bytes allow it.
    together : int
        Number of small fragments read together.
    joined_rows : int
        Maximum of their rows.
    joined_bytes : int
        Maximum of the bytes of their files.
    in_most_parts : bool
        Whether a row passed of many a part of the rows: of a small fragment, say.
    at_once : bool
        Whether enough rows pass that reading all columns at once costs less.
    first_alone : bool
        Whether so few rows pass the first terms that reading the other columns of the filter afterwards costs less.
    num_seen : int
        Number of rows tested so far.
    late_values, late_bytes : int
        Number of values of further columns that were read for passing rows so far, and their bytes.
    is_remote : bool
        Whether the table is in an object store.
    """

    batch_size: int
    group_rows: int
    tested_rows: int
    most_tested_rows: int = _TESTED_ROWS
    together: int = 1
    joined_rows: int = _FIRST_JOINED_ROWS
    joined_bytes: int = _FIRST_JOINED_BYTES
    in_most_parts: bool = True
    at_once: bool = False
    first_alone: bool = False
    num_seen: int = 0
    late_values: int = 0
    late_bytes: int = 0
    is_remote: bool = False

    @classmethod
    def start(cls, batch_size: int, window: Window, predicate: BoundExpression | None, *, is_remote: bool) -> Pace:
        """Return the first pace: few rows at once, and fewer with a small limit or if files take long to arrive.

        Filters with long lists of constants test many rows at once.

        Parameters
        ----------
        batch_size : int
        window : Window
        predicate : BoundExpression or None
        is_remote : bool
            Whether the table is in an object store.
        """
        is_limited = window.left is not None
        first = _FIRST_LIMITED_GROUP_ROWS if is_limited else _FIRST_GROUP_ROWS
        together = 1 if is_limited or is_remote else _FIRST_FILES_TOGETHER
        hashed = 0 if predicate is None else _num_constants(predicate.expression)
        most = max(_TESTED_ROWS, _TESTED_PER_CONSTANT * hashed)
        return cls(batch_size, first, max(batch_size, first), most, together, is_remote=is_remote)

    def widen(self) -> None:
        """Let more small fragments be read together."""
        self.joined_bytes = _JOINED_BYTES
        self.together = min(self.together * _GROWTH, MAX_FILES_TOGETHER)

    def narrow(self) -> None:
        """Let fewer rows of small fragments be read together: these took too much memory."""
        self.joined_rows = max(self.joined_rows // _GROWTH, _FEWEST_JOINED_ROWS)

    def fit(self, seen: Seen) -> int:
        """Let as many rows of small fragments be read together as have some MiB; returns their number."""
        num_rows = int(TESTED_BYTES * seen.num_rows / max(seen.tested_bytes, 1))
        self.joined_rows = max(min(num_rows, self.most_tested_rows), _FEWEST_JOINED_ROWS)
        return num_rows

    def count_late(self, columns: Sequence[pa.Array]) -> None:
        """Count values of columns that the filter does not need, of passing rows."""
        self.late_bytes += sum(map(size_bytes, columns))
        self.late_values += sum(map(len, columns))

    def observe(self, seen: Seen) -> None:
        """Adapt to a group of rows."""
        self.group_rows = min(self.group_rows * _GROWTH, _MAX_GROUP_ROWS)
        self.widen()
        if not seen.num_rows:
            return
        self.tested_rows = max(self.batch_size, min(self.most_tested_rows, self.fit(seen)))
        self.in_most_parts = seen.num_parts_passed >= _PASSED_SHARE * seen.num_parts
        self.at_once = seen.num_passed >= self._dense_share() * seen.num_rows
        self.first_alone = seen.num_first > 0 and seen.num_passed_first <= _SPARSE_SHARE * seen.num_first

    def _dense_share(self) -> float:
        if self.late_bytes > _LARGE_BYTES * self.late_values:
            return _DENSE_SHARE_IF_LARGE
        if self.is_remote:
            return _DENSE_SHARE_IF_REMOTE
        is_narrow = 0 < self.late_bytes <= _NARROW_BYTES * self.late_values
        return _DENSE_SHARE_IF_NARROW if is_narrow else _DENSE_SHARE


def _num_constants(predicate: Expression) -> int:
    """Count the constants in lists, which every kernel call hashes."""
    return sum(len(node.values) for node in walk(predicate) if isinstance(node, In))


@dataclass(slots=True)
class Seen:
    """Observations on a group of rows: numbers tested and passed, and the size of the tested columns."""

    num_rows: int = 0
    num_passed: int = 0
    num_parts: int = 0
    num_parts_passed: int = 0
    """Numbers of parts of the rows, as of fragments, that were tested, and of those with a row that passed."""
    num_first: int = 0
    num_passed_first: int = 0
    """Numbers of rows for which the first terms were tested alone, and of those that passed."""
    tested_bytes: int = 0

    def test(self, found: JoinedRows) -> None:
        """Count rows with the columns of the filter."""
        self.num_parts += len(found.parts)
        self.num_rows += found.num_rows
        self.tested_bytes += sum(map(expanded_bytes, found.batch.columns))

    def passes(self, passed: JoinedRows) -> None:
        """Count the rows of these that passed."""
        self.num_passed += passed.num_rows
        self.num_parts_passed += len(passed.parts) if passed.num_rows else 0
