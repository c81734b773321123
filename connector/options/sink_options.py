"""Options of writes that number their batches: sinks of streams, and writes that may be sent again."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import fields
from typing import Any

from connector.options.values import MAX_INT64, parse_count, parse_names, parse_text, parse_whole, take_given
from lance_format import InvalidInputError
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Options about the batches of a writer.

    Parameters
    ----------
    txn_app_id : str, optional
        The application that numbers its writes.
    txn_version : int, optional
        The number of this write. The table takes it once.
    merge_key : tuple of str
        The columns by which the rows of a stream replace those of the table.
    compact_every : int, optional
        A stream compacts the table after each batch whose number is one less than a multiple of this.
    checkpoint_location : str, optional
        The directory in which Spark keeps the progress of a stream. Spark reads it.
    query_name : str, optional
        The name of a stream. Spark reads it.
    """

    txn_app_id: str | None = None
    txn_version: int | None = None
    merge_key: tuple[str, ...] = ()
    compact_every: int | None = None
    checkpoint_location: str | None = None
    query_name: str | None = None

    @classmethod
    def take(cls, parsed: MutableMapping[str, Any]) -> SinkOptions:
        """Take these options out of others.

        Parameters
        ----------
        parsed : mutable mapping of str to object
            Parsed options, by their names.

        Raises
        ------
        InvalidInputError
            If only one of `txnAppId` and `txnVersion` is given.
        """
        if ("txnAppId" in parsed) != ("txnVersion" in parsed):
            raise InvalidInputError(
                "the options 'txnAppId' and 'txnVersion' belong together: an application, and the number of this write"
            )
        return cls(**take_given(parsed, _ATTRIBUTES))

    def of_streams(self) -> list[str]:
        """Return the names of the given options that only streams have."""
        return [name for name in ("mergeKey", "compactEvery", "checkpointLocation") if getattr(self, _ATTRIBUTES[name])]


SINK_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "txnAppId": parse_text,
    "txnVersion": parse_whole,
    "mergeKey": parse_names,
    "compactEvery": parse_count(MAX_INT64),
    "checkpointLocation": parse_text,
    "queryName": parse_text,
}
_ATTRIBUTES = dict(zip(SINK_PARSERS, (field.name for field in fields(SinkOptions)), strict=True))
