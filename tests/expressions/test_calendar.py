"""Parts of dates and timestamps of years that Arrow's calendar does not have."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest

from lance_format.expressions.values.calendar import CYCLE_DAYS, CYCLE_YEARS, date_part, date_trunc

DAY_MICROSECONDS = 86_400_000_000
EDGES = [-(2**31), 2**31 - 1, -719_529, 11_248_737, 11_248_738, -12_687_794, -12_687_795, 40_000_000, 0, -1]
PARTS = ["year", "quarter", "month", "week", "day", "dow", "doy"]


def parts_of(day: int | None) -> tuple[int | None, ...]:
    """Return the parts of a day, counted from 1970, by Python's calendar of another year."""
    if day is None:
        return (None,) * len(PARTS)
    cycles, rest = divmod(day, CYCLE_DAYS)
    date = datetime.date(1970, 1, 1) + datetime.timedelta(rest)
    year = date.year + CYCLE_YEARS * cycles
    week, weekday = date.isocalendar()[1:]
    return year, (date.month + 2) // 3, date.month, week, date.day, weekday % 7, date.timetuple().tm_yday


def days() -> list[int | None]:
    chance = random.Random(1)
    return [*EDGES, None, *(chance.randrange(-(2**31), 2**31) for _ in range(500))]


def compute(values: pa.Array) -> list[tuple[Any, ...]]:
    return list(zip(*[date_part(name, values).to_pylist() for name in PARTS], strict=True))


def test_parts_of_dates() -> None:
    values = pa.array(days(), pa.int32()).cast(pa.date32())
    assert compute(values) == [parts_of(day) for day in days()]
    assert compute(values.slice(3, 9)) == [parts_of(day) for day in days()[3:12]]
    assert date_part("year", values[0]).as_py() == parts_of(days()[0])[0]
    assert date_part("year", pa.scalar(None, pa.date32())).as_py() is None


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_parts_of_timestamps(zone: str | None) -> None:
    chance = random.Random(2)
    moments = [-(2**63), 2**63 - 1, None, *(chance.randrange(-(2**63), 2**63) for _ in range(500))]
    values = pa.array(moments, pa.int64()).cast(pa.timestamp("us", zone))
    assert compute(values) == [parts_of(None if moment is None else moment // DAY_MICROSECONDS) for moment in moments]
    hours = [None if moment is None else moment // 3_600_000_000 % 24 for moment in moments]
    assert date_part("hour", values).to_pylist() == hours


@pytest.mark.parametrize("unit", ["year", "quarter", "month", "week"])
def test_beginnings(unit: str) -> None:
    seconds = pa.array([None if day is None else day * 86_400 + 7 for day in days()], pa.int64())
    found = date_trunc(unit, seconds.cast(pa.timestamp("s"))).cast(pa.int64()).to_pylist()
    for day, second in zip(days(), found, strict=True):
        if day is None:
            assert second is None
            continue
        year, quarter, _, _, number, weekday, of_year = parts_of(day)
        before = {"year": of_year - 1, "month": number - 1, "week": (weekday - 1) % 7}.get(unit)
        if before is not None:
            assert second == (day - before) * 86_400
        else:
            assert parts_of(second // 86_400)[:5:2] == (year, 3 * quarter - 2, 1)


def test_moments_whose_beginning_is_out_of_range() -> None:
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        date_trunc("year", pa.array([-(2**63)], pa.int64()).cast(pa.timestamp("us")))
