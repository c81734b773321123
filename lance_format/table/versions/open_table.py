"""A table that is open at one of its versions, and moves with its own changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from lance_format.file.columns.json_columns import with_text
from lance_format.table.versions.table_version import Attempt, TableVersion, change, change_assumed

_T = TypeVar("_T")


class OpenTable:
    """The base of `LanceDataset`: the version that it shows, and its move by a change.

    Tags, branches, fragments, statistics and builders hold it, and so do not depend on `LanceDataset`.

    Parameters
    ----------
    uri : str
        The path or URI that the table was opened with.
    table : TableVersion
    """

    def __init__(self, uri: str, table: TableVersion) -> None:
        self._uri = uri
        self._table = table

    @property
    def uri(self) -> str:
        """The path or URI given on opening."""
        return self._uri

    @property
    def absolute_uri(self) -> str:
        """The absolute path or URI of the table, or of its branch, for other processes."""
        return self._table.uri

    @property
    def storage_options(self) -> dict[str, str]:
        """The options that the table was opened with. They may hold secrets."""
        return dict(self._table.storage_options)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return with_text(self._table.manifest.schema).to_arrow()

    def _change(self, attempt: Attempt[_T], conflict_retries: int = 10, max_seconds: float = math.inf) -> _T:
        """Plan and commit a change on the latest version, show the version that it made, and return its result."""
        attempts = conflict_retries + 1
        self._table, result = change(self._table.latest(), attempt, max_attempts=attempts, max_seconds=max_seconds)
        return result

    def _change_at_once(self, attempt: Attempt[_T], conflict_retries: int, max_seconds: float) -> _T:
        """Run a change that always commits; see `_change`. The commit finds out whether this is the latest version."""
        done = change_assumed(self._table, attempt)
        if done is None:
            return self._change(attempt, conflict_retries, max_seconds)
        self._table, result = done
        return result

    def _move(self, attempt: Callable[[TableVersion], TableVersion], conflict_retries: int = 10) -> None:
        """Run a change whose only result is the version that it makes."""
        self._change(lambda table: (attempt(table), None), conflict_retries)
