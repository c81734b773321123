"""Timestamps in options: in SQL form with a time zone, or as microseconds since 1970.

Spark gives a data source neither the session's time zone nor any other setting, so a timestamp without one is
ambiguous. The planner bridge passes the time zone.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo

from lance_format import InvalidInputError

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECONDS = re.compile(r"[0-9]{1,19}")
_EXAMPLES = "'2026-01-31 12:00:00 Europe/Berlin' or '2026-01-31 12:00:00+01:00'"


def parse_timestamp(name: str, value: str, zone: str | None = None) -> datetime.datetime:
    """Parse the value of an option as a time.

    Parameters
    ----------
    name : str
        Name of the option, for messages.
    value : str
    zone : str, optional
        Time zone of the session, for values without one.

    Returns
    -------
    datetime.datetime
        In UTC.

    Raises
    ------
    InvalidInputError
        If the value is not a timestamp, is out of range, or has no time zone.
    """
    text = value.strip()
    try:
        found = _read(text)
        if found.tzinfo is None and zone is not None:
            found = found.replace(tzinfo=_zone(zone))
        if found.tzinfo is not None:
            return found.astimezone(datetime.UTC)
    except (ValueError, OverflowError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise InvalidInputError(
            f"option {name!r} must be a timestamp with a time zone, such as {_EXAMPLES}, or microseconds since 1970,"
            f" not {value!r}"
        ) from error
    raise InvalidInputError(
        f"option {name!r} has no time zone: {value!r}; data sources cannot see that of the session, so add"
        f" one, as in {_EXAMPLES}, or give microseconds since 1970"
    )


def _read(text: str) -> datetime.datetime:
    if _MICROSECONDS.fullmatch(text):
        return _EPOCH + datetime.timedelta(microseconds=int(text))
    time, _, zone = text.rpartition(" ")
    if zone[:1].isalpha():
        return datetime.datetime.fromisoformat(time).replace(tzinfo=_zone(zone))
    return datetime.datetime.fromisoformat(time + zone if zone[:1] in ("+", "-") else text)


def _zone(name: str) -> datetime.tzinfo:
    """Return a time zone by its region, or by its offset as Spark may spell that: `+01:00`."""
    if name[:1] in ("+", "-"):
        return datetime.datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo or datetime.UTC
    return zoneinfo.ZoneInfo("UTC" if name == "Z" else name)
