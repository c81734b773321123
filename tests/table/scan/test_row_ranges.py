"""Ranges of rows behave as the sets of rows that they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_format.table.scan.row_ranges import RowRanges

_ROWS = 60


@st.composite
def _ranges(draw: st.DrawFn) -> RowRanges:
    bounds = sorted(draw(st.sets(st.integers(0, _ROWS), max_size=10)))
    if draw(st.booleans()):  # Ranges may follow each other, as zones do.
        bounds = [bound for bound in bounds for _ in range(2)][1:-1]
    bounds = bounds[: len(bounds) // 2 * 2]
    starts, stops = np.array(bounds[::2], np.int64), np.array(bounds[1::2], np.int64)
    certain = draw(st.lists(st.booleans(), min_size=len(starts), max_size=len(starts)))
    return RowRanges(starts, stops, np.array(certain, np.bool_))


def _known(ranges: RowRanges) -> dict[int, bool]:
    """The rows, and whether each is certain; the ranges are shown to be in order."""
    bounds = [bound for pair in ranges.pairs() for bound in pair]
    assert bounds == sorted(bounds)
    assert all(start < stop for start, stop in ranges.pairs())
    pairs = zip(ranges.pairs(), ranges.certain.tolist(), strict=True)
    return {row: certain for (start, stop), certain in pairs for row in range(start, stop)}


@given(one=_ranges(), other=_ranges())
def test_intersections(one: RowRanges, other: RowRanges) -> None:
    mine, theirs = _known(one), _known(other)
    expected = {row: mine[row] or theirs[row] for row in mine if row in theirs}
    assert _known(one.intersect(other)) == expected
    for both in (one.intersect(other), one.intersect(RowRanges.whole(_ROWS))):
        alike = (both.starts[1:] == both.stops[:-1]) & (both.certain[1:] == both.certain[:-1])
        assert not alike.any()
    assert one.num_rows == len(mine)
    assert one.rows().tolist() == list(mine)


@given(ranges=_ranges(), num_rows=st.integers(0, _ROWS + 1))
def test_cuts(ranges: RowRanges, num_rows: int) -> None:
    head, tail = ranges.cut(num_rows)
    assert head.num_rows == min(num_rows, ranges.num_rows)
    assert list(_known(head).items()) + list(_known(tail).items()) == list(_known(ranges).items())


@given(rows=st.lists(st.integers(0, _ROWS)))
def test_single_rows(rows: list[int]) -> None:
    found = RowRanges.of_rows(np.array(rows, np.int64))
    assert found.rows().tolist() == sorted(set(rows))
    assert all(start > stop for start, stop in zip(found.starts[1:], found.stops[:-1], strict=True)), "they are joined"


@given(ranges=_ranges(), num_rows=st.integers(1, 20))
def test_certainty(ranges: RowRanges, num_rows: int) -> None:
    parts = ranges.split_by_certainty()
    assert [item for part in parts for item in _known(part).items()] == list(_known(ranges).items())
    assert all(len(set(part.certain.tolist())) == 1 for part in parts)
    coarser = ranges.with_certainty_of(num_rows)
    assert list(_known(coarser)) == list(_known(ranges))
    assert all(_known(ranges)[row] for row, certain in _known(coarser).items() if certain)
    if not ranges.certain.all():
        assert all(part.num_rows >= num_rows for part in coarser.split_by_certainty() if part.certain[0])


@given(ranges=_ranges(), most_rows=st.integers(0, 8))
def test_bridges(ranges: RowRanges, most_rows: int) -> None:
    alike = RowRanges(ranges.starts, ranges.stops, np.zeros(len(ranges), np.bool_))
    bridged = alike.bridged(most_rows)
    known, found = _known(alike), _known(bridged)
    assert set(known) <= set(found)
    gaps = [start - stop for (_, stop), (start, _) in zip(alike.pairs(), alike.pairs()[1:], strict=False)]
    assert len(found) - len(known) == sum(gap for gap in gaps if gap <= most_rows)
    assert len(bridged) == (1 + sum(gap > most_rows for gap in gaps) if len(alike) else 0)


@given(ranges=_ranges())
def test_certain(ranges: RowRanges) -> None:
    assert _known(ranges.as_certain()) == dict.fromkeys(_known(ranges), True)
