"""Rows of a table that the rows of a write replace, and the message that tells its commit which these are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from connector.options.options import LanceOptions
from connector.options.snapshot import open_at, open_committed
from connector.read.predicates import parse_predicate
from connector.write.commit_message import TaskMessage
from lance_format import FragmentMetadata, LanceDataset, RowDeltaChanges, TableWrite
from lance_format.expressions import Expression
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoundRows(TaskMessage):
    """Message of a search to the commit of a write: the addresses of the rows that it replaces.

    Parameters
    ----------
    payload : bytes
        Of `RowDeltaChanges.to_bytes`.
    """

    @classmethod
    def of(cls, uuid: str, results: Iterable[Any]) -> FoundRows:
        """Unite the results of the tasks of a search, whose plan has a uuid."""
        return cls(RowDeltaChanges.of_deleted(uuid, results).to_bytes())


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """Rows of a version of a table that other rows replace.

    Parameters
    ----------
    options : LanceOptions
    uri : str
    version : int
    predicate : str
        As `connector.read.expressions` describes.
    """

    options: LanceOptions
    uri: str
    version: int
    predicate: str

    @property
    def rows(self) -> Expression:
        """The predicate, parsed."""
        return parse_predicate(self.predicate, self.open)

    def open(self) -> LanceDataset:
        """Open the version."""
        return open_at(self.options, self.uri, self.version)

    def commit(self, fragments: Sequence[FragmentMetadata], write: TableWrite, found: FoundRows | None) -> None:
        """Delete the rows and add fragments, in one version.

        Parameters
        ----------
        fragments : sequence of FragmentMetadata
        write : TableWrite
            The write that made them.
        found : FoundRows, optional
            The rows, if a job has found them. Otherwise this process searches for them.
        """
        rows = None if found is None else found.parse(RowDeltaChanges)
        table = open_committed(self.options, self.uri, self.version)
        table.replace_where(self.rows, fragments, uuid=write.uuid, found=rows, new_fields=write.new_fields)
