"""The part of a query that the planner bridge has pushed to a scan; see `connector.protocol` for its options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from connector.protocol import (
    AGGREGATES,
    FIRST,
    KEYS,
    LIMIT,
    OFFSET,
    ORDER,
    PARALLELISM,
    PREDICATE,
    RUNTIME,
    SAMPLE,
    SNAPSHOT,
)
from connector.read.keys import OpenReader, parse_keys
from connector.read.predicates import parse_predicate
from lance_format import ColumnOrdering, LanceDataset
from lance_format.expressions import Expression, conjunction
from lance_format.lazy_dataclasses import dataclass


def read_snapshot(options: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the location and the version that Spark has seen, if options, whose names may be in any case, say so."""
    found = next((value for name, value in options.items() if name.lower() == SNAPSHOT), None)
    return None if found is None else tuple(json.loads(found))


@dataclass(frozen=True, slots=True)
class Pushed:
    """Part of a query that Spark has pushed to one scan.

    Parameters
    ----------
    snapshot : tuple of str and int, optional
        The location and the version of the table; None to look them up.
    predicate : Expression, optional
        The rows to read; None is all.
    limit : int, optional
        Number of rows that suffice: of all partitions together without a filter, else of each.
    offset : int
        Number of these rows to skip.
    order : tuple of ColumnOrdering
        Order that decides the first rows. Without it any rows suffice.
    parallelism : int, optional
        Number of tasks that can run concurrently; None if unknown.
    aggregates : str, optional
        Groups and aggregates that each partition computes; see `connector.read.aggregates`.
    first : str, optional
        Groups of which each partition need only yield the first rows; see `connector.read.first_rows`.
    """

    snapshot: tuple[str, int] | None = None
    predicate: Expression | None = None
    limit: int | None = None
    offset: int = 0
    order: tuple[ColumnOrdering, ...] = ()
    parallelism: int | None = None
    aggregates: str | None = None
    first: str | None = None

    @classmethod
    def parse(
        cls, options: Mapping[str, str], open_table: Callable[[], LanceDataset], open_reader: OpenReader
    ) -> Pushed:
        """Parse the pushed parts from options.

        Parameters
        ----------
        options : mapping of str to str
            Names in any case.
        open_table : callable
            Returns the version of the table that is read, in which conditions on texts are searched for.
        open_reader : callable
            Plans the read of another table, whose keys are wanted.
        """
        given = {name.lower(): value for name, value in options.items()}
        limit, parallelism = (given.get(name) for name in (LIMIT, PARALLELISM))
        terms = tuple(
            parse_predicate(given[name], open_table) for name in (SAMPLE, PREDICATE, RUNTIME) if name in given
        )
        if KEYS in given:
            terms += tuple(parse_keys(given[KEYS], open_reader))
        return cls(
            read_snapshot(given),
            conjunction(terms) if terms else None,
            None if limit is None else int(limit),
            int(given.get(OFFSET, 0)),
            tuple(ColumnOrdering(*ordering) for ordering in json.loads(given.get(ORDER, "[]"))),
            None if parallelism is None else int(parallelism),
            given.get(AGGREGATES),
            given.get(FIRST),
        )
