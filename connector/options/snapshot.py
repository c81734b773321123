"""Choosing the version of a table that a read shows: by number, tag, branch or time, or the latest."""

from __future__ import annotations

import datetime

import lance_format
from connector.options.options import LanceOptions

_SESSION = lance_format.Session()
"""Queries open a table several times, on the driver and in workers that outlive their tasks."""
_DIGITS = 16
"""Number of digits of a digest."""


def open_snapshot(options: LanceOptions) -> lance_format.LanceDataset:
    """Open the version that options name.

    Returns
    -------
    LanceDataset
        Its `uri`, which is that of the branch, and its `version` open the same version again.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        If there is no such table, version, tag or branch, or the table is younger than the time given.
    """
    if options.tag is not None:
        return open_at(options, options.path, options.tag)
    uri = branch_uri(options)
    if options.timestamp is None:
        return open_at(options, uri, options.version)
    # The library finds versions before a time, to the microsecond; a timestamp in SQL includes its own time.
    asof = options.timestamp + datetime.timedelta(microseconds=1)
    return _open(options, uri, asof=asof)


def open_at(
    options: LanceOptions, uri: str, version: int | str | tuple[str | None, int | None] | None = None
) -> lance_format.LanceDataset:
    """Open a table, with the options of its storage, and with the columns that a statement adds to it.

    Parameters
    ----------
    options : LanceOptions
    uri : str
    version : int, str, or tuple of (str or None) and (int or None), optional
        By default the latest version.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        If there is no such table, version, tag or branch.
    """
    dataset = open_committed(options, uri, version)
    return dataset if options.new_columns is None else dataset.with_new_columns(options.new_columns)


def open_committed(
    options: LanceOptions, uri: str, version: int | str | tuple[str | None, int | None] | None = None
) -> lance_format.LanceDataset:
    """Open a table as it is, without the columns that a statement adds to it; see `open_at`."""
    return _open(options, uri, version)


def commit_of(dataset: lance_format.LanceDataset) -> str | None:
    """Return a digest of the transaction that made a version, in hexadecimal; None if that is not known.

    No other version of any table has it, unless it is a copy.
    """
    return known_commit(dataset.trace().hex())


def known_commit(trace: str) -> str | None:
    """Return the digest of the latest transaction of a trace in hexadecimal; None if that is not known."""
    latest = trace[:_DIGITS]
    return latest if latest.strip("0") else None


def branch_uri(options: LanceOptions) -> str:
    """Return the location of the branch that options name; the path if they name none.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        If there is no such table or branch.
    """
    if options.branch is None:
        return options.path
    return open_at(options, options.path, (options.branch, None)).uri


def _open(
    options: LanceOptions,
    uri: str,
    version: int | str | tuple[str | None, int | None] | None = None,
    asof: datetime.datetime | None = None,
) -> lance_format.LanceDataset:
    return lance_format.dataset(
        uri, version, asof, storage_options=options.storage, verify_checksums=options.verify_checksums, session=_SESSION
    )
