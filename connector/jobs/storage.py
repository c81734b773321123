"""Options of the storage as options of a data source, under the names that users give: Spark hides secrets by names."""

from __future__ import annotations

from collections.abc import Mapping

_PREFIX = "storage."


def write_storage(storage: Mapping[str, str]) -> dict[str, str]:
    """Return options of a data source for options of the storage."""
    return {f"{_PREFIX}{name}": value for name, value in storage.items()}


def read_storage(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the storage among those of a data source."""
    given = {name.lower(): value for name, value in options.items()}
    return {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
