"""Parts of dates and timestamps of all years, and their beginnings.

Arrow's calendar has years of 16 bits, and returns any numbers for others. The Gregorian calendar repeats itself after
400 years, so values outside those years are computed in a year that has the same calendar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import InvalidInputError

CYCLE_YEARS = 400
CYCLE_DAYS = 146_097
"""The days of 400 years, after which the Gregorian calendar repeats itself."""
DAY_TICKS = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_NEAR_CYCLES = 75
"""Number of cycles before and after 1970 whose years Arrow knows."""
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")


def date_part(name: str, values: Any) -> Any:
    """Return a part of dates, times or timestamps.

    Parameters
    ----------
    name : str
        Such as `year`, in lower case.
    values : pa.Array or pa.Scalar

    Raises
    ------
    InvalidInputError
        If there is no such part.
    """
    if name == "epoch":
        return _epoch(values)
    kernel = _PARTS.get(name)
    if kernel is None:
        raise InvalidInputError(f"date_part has no part {name!r}; it has {', '.join(_PARTS)} and epoch")
    near, cycles = _to_near_years(values)
    if pa.types.is_date(near.type):
        near = pc.cast(near, pa.timestamp("ms"))  # a date has no parts of a clock in Arrow
    found = pc.cast(kernel(near), pa.int32())
    if name != "year" or cycles is None:
        return found
    return pc.add(found, _like(values, cycles * CYCLE_YEARS, pa.int32()))


def date_trunc(name: str, values: Any) -> Any:
    """Return the beginning of a unit of time for each date or timestamp.

    Parameters
    ----------
    name : str
        Such as `month`, in lower case.
    values : pa.Array or pa.Scalar

    Raises
    ------
    InvalidInputError
        If the name is no unit of time.
    """
    if name not in _UNITS:
        raise InvalidInputError(f"date_trunc cannot cut off at {name!r}; cut off at a unit from year to microsecond")
    if pa.types.is_date(values.type):
        values = pc.cast(values, pa.timestamp("ns"))
    near, cycles = _to_near_years(values)
    found = pc.floor_temporal(near, unit=name)
    if cycles is None:
        return found
    ticks = _like(values, cycles * _cycle_ticks(values.type), pa.int64())
    return pc.cast(pc.add_checked(pc.cast(found, pa.int64()), ticks), values.type)


def _to_near_years(values: Any) -> tuple[Any, Any]:
    """Move values by cycles into years that Arrow knows; return these numbers of cycles, None if all are 0."""
    arrow_type = values.type
    if not (pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type)) or _unit(arrow_type) == "ns":
        return values, None
    number = pa.int32() if pa.types.is_date32(arrow_type) else pa.int64()
    cycle = _cycle_ticks(arrow_type)
    array = values if isinstance(values, pa.Array) else pa.array([values.cast(number).as_py()], number)
    ticks = array.view(number)
    bounds = pc.min_max(ticks)
    limit = _NEAR_CYCLES * cycle
    if not bounds["min"].is_valid or (bounds["min"].as_py() >= -limit and bounds["max"].as_py() < limit):
        return values, None
    numbers = pc.fill_null(ticks, 0).to_numpy()
    cycles = numbers // cycle
    cycles -= np.clip(cycles, -_NEAR_CYCLES, _NEAR_CYCLES - 1)
    return pc.cast(_like(values, numbers - cycles * cycle, number), arrow_type), cycles


def _like(values: Any, numbers: Any, arrow_type: pa.DataType) -> Any:
    """Return numbers as an array, null where the values are, or as a scalar if these are one."""
    if isinstance(values, pa.Scalar):
        return pa.scalar(int(numbers[0]), arrow_type)
    return pa.array(numbers, arrow_type, mask=values.is_null().to_numpy(zero_copy_only=False))


def _unit(arrow_type: pa.DataType) -> str:
    return str(arrow_type.unit) if pa.types.is_timestamp(arrow_type) else "ms"


def _cycle_ticks(arrow_type: pa.DataType) -> int:
    return CYCLE_DAYS * (1 if pa.types.is_date32(arrow_type) else DAY_TICKS[_unit(arrow_type)])


def _epoch(values: Any) -> Any:
    if pa.types.is_date(values.type):
        values = pc.cast(values, pa.timestamp("s"))
    if not pa.types.is_timestamp(values.type):
        raise InvalidInputError(f"date_part('epoch', …) takes a date or a timestamp, not {values.type}")
    per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[values.type.unit]
    return pc.divide(pc.cast(pc.cast(values, pa.int64()), pa.float64(), safe=False), per_second)


def _below_second(per_second: int) -> Callable[[Any], Any]:
    def part(values: Any) -> Any:
        result = pc.add(
            pc.multiply(pc.second(values), per_second), pc.multiply(pc.millisecond(values), per_second // 1000)
        )
        return pc.add(result, pc.microsecond(values)) if per_second == 1_000_000 else result

    return part


_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dow": lambda values: pc.day_of_week(values, count_from_zero=True, week_start=7),
    "doy": pc.day_of_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": _below_second(1_000),
    "microsecond": _below_second(1_000_000),
}
