"""What the planner bridge hands over to a read besides the user's options.

It travels as options whose names start with two underscores, which belong to Spark and its like:

======================== ============================================================================================
option                   value
======================== ============================================================================================
`__lance.snapshot`       `[uri, version]`: the table that Spark has seen, whatever has been committed since
`__lance.predicate`      the rows wanted, as `connector.pushdown` describes
`__lance.limit`          how many rows each partition has to yield at most
`__lance.parallelism`    how many tasks can run at a time
======================== ============================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from connector.pushdown import parse_predicate
from lance_format.expressions import Expression

SNAPSHOT = "__lance.snapshot"
PREDICATE = "__lance.predicate"
LIMIT = "__lance.limit"
PARALLELISM = "__lance.parallelism"


@dataclass(frozen=True, slots=True)
class Pushed:
    """What Spark has pushed to one scan.

    Parameters
    ----------
    snapshot : tuple of str and int, optional
        Where the table is, and its version; None if that is to be looked up.
    predicate : Expression, optional
        Which rows are read; None is all.
    limit : int, optional
        How many rows of a partition suffice.
    parallelism : int, optional
        How many tasks can run at a time; None if that is not known.
    """

    snapshot: tuple[str, int] | None = None
    predicate: Expression | None = None
    limit: int | None = None
    parallelism: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Pushed:
        """Find what was pushed among options, whose names may be in any case."""
        given = {name.lower(): value for name, value in options.items()}
        names = (SNAPSHOT, PREDICATE, LIMIT, PARALLELISM)
        snapshot, predicate, limit, parallelism = (given.get(name) for name in names)
        return cls(
            None if snapshot is None else tuple(json.loads(snapshot)),
            None if predicate is None else parse_predicate(predicate),
            None if limit is None else int(limit),
            None if parallelism is None else int(parallelism),
        )
