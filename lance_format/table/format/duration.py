"""Durations as a table's configuration spells them: `14days`, `2h 30m`, `90s`."""

from __future__ import annotations

import datetime
import math
import re

from lance_format.errors import InvalidInputError

# The units of Rust's crate humantime, which the reference uses; months and years have their mean length.
_UNITS = {
    "ns": ("nanos", "nsec", "ns"),
    "us": ("micros", "usec", "us", "µs"),
    "ms": ("millis", "msec", "ms"),
    "s": ("seconds", "second", "secs", "sec", "s"),
    "m": ("minutes", "minute", "mins", "min", "m"),
    "h": ("hours", "hour", "hrs", "hr", "h"),
    "d": ("days", "day", "d"),
    "w": ("weeks", "week", "wks", "wk", "w"),
    "M": ("months", "month", "M"),
    "y": ("years", "year", "yrs", "yr", "y"),
}
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86_400,
    "w": 604_800,
    "M": 2_630_016,
    "y": 31_557_600,
}
_SECONDS_BY_NAME = {name: _SECONDS[unit] for unit, names in _UNITS.items() for name in names}
_TERM = re.compile(r"\s*([0-9]{1,18})\s*([A-Za-zµ]+)\s*")


def parse_duration(text: str) -> datetime.timedelta:
    """Return a duration.

    Raises
    ------
    InvalidInputError
        If the text is none, or the duration exceeds what Python can express.
    """
    if text == "0":
        return datetime.timedelta()
    seconds, position = 0.0, 0
    while match := _TERM.match(text, position):
        unit = _SECONDS_BY_NAME.get(match[2])
        if unit is None:
            break
        seconds, position = seconds + int(match[1]) * unit, match.end()
    if position < len(text) or not text.strip():
        raise InvalidInputError(f"{text!r} is no duration; write it like 14days or 2h 30m")
    try:
        return datetime.timedelta(seconds=seconds)
    except OverflowError as error:
        raise InvalidInputError(f"the duration {text!r} is too long: {error}") from error


def timeout_seconds(timeout: datetime.timedelta | None) -> float:
    """Return a timeout in seconds, infinity if there is none.

    Raises
    ------
    InvalidInputError
        If it is negative, or no timedelta.
    """
    if timeout is None:
        return math.inf
    if not isinstance(timeout, datetime.timedelta) or timeout < datetime.timedelta():
        raise InvalidInputError(f"the timeout is {timeout!r}; a timedelta from 0 on is needed")
    return timeout.total_seconds()
