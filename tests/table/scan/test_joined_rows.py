"""Rows of several fragments in one batch stay together with what is known of each fragment."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format.table.fragments.reader import Consecutive
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.scan.joined_rows import JoinedRows

_SIZES = (4, 1, 0, 3)


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> JoinedRows:
    """Rows 10 to 17; those of the second fragment are known one by one."""
    path = tmp_path_factory.mktemp("joined") / "t"
    table = lance_format.write_dataset(pa.table({"a": range(len(_SIZES))}), path, max_rows_per_file=1)
    scans = [fragment_rows.scan for _, fragment_rows in table.scanner().matching()]
    offsets = [Consecutive(0, 4), np.array([7]), Consecutive(0, 0), Consecutive(2, 5)]
    parts = [LiveRows(scan, known, 0) for scan, known in zip(scans, offsets, strict=True)]
    return JoinedRows(pa.record_batch({"n": range(10, 18)}), parts)


def _told(found: JoinedRows) -> list[tuple[int, int, int]]:
    """Return each row's number, fragment and offset."""
    return [
        (number, rows.scan.fragment.id, offset)
        for batch, rows in found.split()
        for number, offset in zip(batch["n"].to_pylist(), rows.offsets.tolist(), strict=True)
    ]


_ROWS = [(10, 0, 0), (11, 0, 1), (12, 0, 2), (13, 0, 3), (14, 1, 7), (15, 3, 2), (16, 3, 3), (17, 3, 4)]


def test_rows_of_each_fragment(joined: JoinedRows) -> None:
    assert _told(joined) == _ROWS
    assert [rows.num_rows for rows in joined.parts] == list(_SIZES)


@given(start=st.integers(0, 8), num_rows=st.integers(0, 8))
def test_slices(joined: JoinedRows, start: int, num_rows: int) -> None:
    found = joined.slice(start, min(num_rows, 8 - start))
    assert _told(found) == _ROWS[start : start + num_rows]


@given(mask=st.lists(st.booleans(), min_size=8, max_size=8), start=st.integers(0, 8), num_rows=st.integers(0, 8))
def test_filters(joined: JoinedRows, mask: list[bool], start: int, num_rows: int) -> None:
    found = joined.filter(pa.array(mask))
    expected = [row for row, is_kept in zip(_ROWS, mask, strict=True) if is_kept]
    assert _told(found) == expected
    assert found.num_rows == len(expected)
    if not all(mask):
        assert all(rows.num_rows for rows in found.parts)
    start = min(start, len(expected))
    assert _told(found.slice(start, min(num_rows, len(expected) - start))) == expected[start : start + num_rows]
