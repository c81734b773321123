"""The planner bridge's knowledge of the query that writes to a table, as it reaches the sink."""

from __future__ import annotations

import json

from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SinkForm:
    """A batch of a query.

    Parameters
    ----------
    mode : {"append", "complete", "update", "unknown"}
        The output mode; unknown while the query starts. Without the bridge, Spark refuses updates itself.
    uuid : str, optional
        Of the write of this batch, so that a process that aborts it knows its files even if no task has sent a message.
    """

    mode: str
    uuid: str | None = None

    @property
    def is_planned(self) -> bool:
        """True if the planner bridge plans the query."""
        return self.uuid is not None

    @classmethod
    def parse(cls, text: str | None, *, replaces: bool) -> SinkForm:
        """Read what the bridge says; without it only whether a batch replaces all rows is known.

        Parameters
        ----------
        text : str, optional
            JSON with `mode` and `uuid`.
        replaces : bool
        """
        if text is None:
            return cls("complete" if replaces else "append")
        given = json.loads(text)
        return cls(given["mode"].lower(), given["uuid"])
