"""The part of a query that the planner bridge has pushed to a scan; see `connector.protocol` for its options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from connector.protocol import LIMIT, OFFSET, ORDER, PARALLELISM, PREDICATE, RUNTIME, SNAPSHOT
from connector.read.predicates import parse_predicate
from lance_format import ColumnOrdering
from lance_format.expressions import Expression, conjunction


@dataclass(frozen=True, slots=True)
class Pushed:
    """Part of a query that Spark has pushed to one scan.

    Parameters
    ----------
    snapshot : tuple of str and int, optional
        Where the table is, and its version; None if that is to be looked up.
    predicate : Expression, optional
        Which rows are read; None is all.
    limit : int, optional
        How many rows suffice: of all partitions together if nothing filters them, else of each.
    offset : int
        How many of these are skipped.
    order : tuple of ColumnOrdering
        By which rows are the first ones. Without it any are.
    parallelism : int, optional
        How many tasks can run at a time; None if that is not known.
    """

    snapshot: tuple[str, int] | None = None
    predicate: Expression | None = None
    limit: int | None = None
    offset: int = 0
    order: tuple[ColumnOrdering, ...] = ()
    parallelism: int | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Pushed:
        """Find what was pushed among options, whose names may be in any case."""
        given = {name.lower(): value for name, value in options.items()}
        snapshot, limit, parallelism = (given.get(name) for name in (SNAPSHOT, LIMIT, PARALLELISM))
        terms = tuple(parse_predicate(given[name]) for name in (PREDICATE, RUNTIME) if name in given)
        return cls(
            None if snapshot is None else tuple(json.loads(snapshot)),
            conjunction(terms) if terms else None,
            None if limit is None else int(limit),
            int(given.get(OFFSET, 0)),
            tuple(ColumnOrdering(*ordering) for ordering in json.loads(given.get(ORDER, "[]"))),
            None if parallelism is None else int(parallelism),
        )
