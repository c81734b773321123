"""Options of the storage as options of a data source, under the names that users give: Spark hides secrets by names."""

from __future__ import annotations

from collections.abc import Mapping

STORAGE_PREFIX = "storage."


def is_storage_option(name: str) -> bool:
    """Return whether an option of a data source is one of the storage; the case of the name is ignored."""
    return name.lower().startswith(STORAGE_PREFIX)


def write_storage(storage: Mapping[str, str]) -> dict[str, str]:
    """Return options of a data source for options of the storage."""
    return {f"{STORAGE_PREFIX}{name}": value for name, value in storage.items()}


def read_storage(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the storage among those of a data source."""
    return {
        name.lower().removeprefix(STORAGE_PREFIX): value for name, value in options.items() if is_storage_option(name)
    }
