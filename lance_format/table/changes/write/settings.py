"""Arguments of writes that do not concern rows: properties of a version, and settings of a new table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from lance_format.errors import InvalidInputError, NotSupportedError

COMMIT_MESSAGE_KEY = "__lance_commit_message"
"""The property of a transaction that holds its commit message."""

_UNSUPPORTED = {
    "base_store_params": "all files of a table are in one storage",
    "blob_pack_file_size_threshold": "blobs are not packed into files of a size",
    "commit_lock": "a commit needs no lock",
    "initial_bases": "all files of a table are below its directory",
    "namespace_client": "give the uri and the storage_options that RestNamespace(…).find(table_id) returns",
    "table_id": "give the uri and the storage_options that RestNamespace(…).find(table_id) returns",
    "target_all_bases": "all files of a table are below its directory",
    "target_bases": "all files of a table are below its directory",
    "use_legacy_format": "give data_storage_version",
}


class _Placement(TypedDict, total=False):
    """Arguments of pylance that place a table elsewhere; none of them is supported."""

    base_store_params: Any
    blob_pack_file_size_threshold: Any
    commit_lock: Any
    initial_bases: Any
    namespace_client: Any
    table_id: Any
    target_all_bases: Any
    target_bases: Any
    use_legacy_format: Any


class WriteTuning(_Placement, total=False):
    """Arguments of pylance's writes and commits that this library ignores or refuses."""

    max_rows_per_group: Any
    max_page_bytes: Any
    data_cache_bytes: Any
    session: Any
    enable_v2_manifest_paths: Any


class OpeningTuning(_Placement, total=False):
    """Arguments of pylance's opening of a table that this library ignores or refuses."""

    block_size: Any
    index_cache_size: Any
    metadata_cache_size: Any
    read_params: Any


_AUTO_CLEANUP = ("interval", "older_than_seconds", "retain_versions")
_AUTO_CLEANUP_PREFIX = "lance.auto_cleanup."
AUTO_CLEANUP_KEYS = tuple(f"{_AUTO_CLEANUP_PREFIX}{name}" for name in ("interval", "older_than", "retain_versions"))
"""Entries of a table's configuration that control automatic cleanups."""


def check_tuning(arguments: Mapping[str, Any]) -> None:
    """Check arguments of a write that pylance has and this library does not.

    Raises
    ------
    InvalidInputError
        If pylance does not have an argument either.
    NotSupportedError
        If an argument requests an unsupported feature.
    """
    for name, value in arguments.items():
        if name == "enable_v2_manifest_paths":
            if not value:
                raise NotSupportedError(
                    f"{name}={value!r} is not supported: names of early releases are not given anymore"
                )
        elif name in _UNSUPPORTED:
            if value is not None:
                raise NotSupportedError(f"{name} is not supported: {_UNSUPPORTED[name]}")
        elif name not in WriteTuning.__annotations__:
            raise InvalidInputError(f"a write has no argument {name!r}")


def check_opening(arguments: Mapping[str, Any]) -> None:
    """Check pylance's arguments of opening a table that this library lacks; see `check_tuning`."""
    for name, value in arguments.items():
        if name not in OpeningTuning.__annotations__:
            raise InvalidInputError(f"dataset() has no argument {name!r}")
        if name in _UNSUPPORTED and value is not None:
            raise NotSupportedError(f"{name} is not supported: {_UNSUPPORTED[name]}")


def merge_properties(properties: Mapping[str, str] | None, message: str | None) -> dict[str, str]:
    """Return the properties of a transaction, its message included.

    Raises
    ------
    InvalidInputError
        If a property is not text.
    """
    noted = {**(properties or {}), **({} if message is None else {COMMIT_MESSAGE_KEY: message})}
    for name, value in noted.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidInputError(f"the property {name!r} of a transaction is {value!r}; text is needed")
    return noted


def auto_cleanup_entries(options: Mapping[str, int]) -> dict[str, str]:
    """Return the configuration of a table for automatic cleanups.

    Parameters
    ----------
    options : mapping
        `interval`, and `older_than_seconds` or `retain_versions` or both.

    Raises
    ------
    InvalidInputError
        If an option is unknown or no integer from 1 on, or `interval` is missing.
    """
    for name, value in options.items():
        if name not in _AUTO_CLEANUP:
            raise InvalidInputError(f"auto_cleanup_options has {name!r}; the options are {', '.join(_AUTO_CLEANUP)}")
        if isinstance(value, bool) or not isinstance(value, int) or value < (name != "older_than_seconds"):
            raise InvalidInputError(f"{name} of auto_cleanup_options is {value!r}; a whole number is needed")
    if "interval" not in options:
        raise InvalidInputError("auto_cleanup_options needs an interval: after how many versions to clean up")
    config = {"interval": str(options["interval"])}
    if "retain_versions" in options:
        config["retain_versions"] = str(options["retain_versions"])
    if "older_than_seconds" in options:
        config["older_than"] = f"{options['older_than_seconds']}s"
    return {f"{_AUTO_CLEANUP_PREFIX}{name}": value for name, value in config.items()}
