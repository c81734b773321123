"""Conditions on texts that the index of their column answers, in predicates that Spark pushes to a scan.

The planner bridge writes `["MATCH", kind, parameters, path, …]`: a `match`, a `phrase`, or a `multi_match` of several
columns, the names that lead to each, and `terms`, `slop` and `options` among the parameters. Before a scan is planned,
the rows are searched, and such a form becomes the set of their addresses.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connector.types.column_names import quoted
from lance_format import InvalidInputError, LanceDataset
from lance_format.query import BooleanQuery, FullTextOperator, FullTextQuery, MatchQuery, Occur, PhraseQuery

Form = Any

_ADDRESS = "_rowaddr"
_COMBINING = ("AND", "OR", "NOT", "=", "<>", "<", "<=", ">", ">=", "<=>", "IS_NULL", "IS_NOT_NULL")
"""Operators whose operands are predicates or values, and nothing else."""


def with_rows(form: Form, open_table: Callable[[], LanceDataset]) -> Form:
    """Return a predicate whose conditions on texts are sets of rows.

    Parameters
    ----------
    form : list
        See `connector.read.expressions`.
    open_table : callable
        Returns the version of the table that is read.

    Raises
    ------
    InvalidInputError
        If a condition has an unknown option, or no index of its column can answer it.
    """
    operator, *operands = form
    if operator in _COMBINING:
        return [operator, *(with_rows(operand, open_table) for operand in operands)]
    if operator != "MATCH":
        return form
    kind, parameters, *paths = operands
    query = _query(kind, parameters, [quoted(*path) for path in paths])
    scanner = open_table().scanner(
        [], full_text_query=query, with_row_address=True, disable_scoring_autoprojection=True
    )
    addresses = scanner.to_table()[_ADDRESS].to_numpy().astype("<i8")
    return ["SET", ["COLUMN", _ADDRESS], "bigint", base64.b64encode(addresses).decode()]


def _query(kind: str, parameters: Mapping[str, Any], columns: Sequence[str]) -> FullTextQuery:
    terms = parameters["terms"]
    if kind == "phrase":
        return PhraseQuery(terms, columns[0], slop=parameters.get("slop", 0))
    options = _options(parameters.get("options", ""))
    if kind == "match":
        return MatchQuery(terms, columns[0], **options)
    unfit = options.keys() - {"operator"}
    if unfit:
        raise InvalidInputError(f"lance_multi_match has no option {min(unfit)!r}, only operator")
    occur = Occur.MUST if options.get("operator") is FullTextOperator.AND else Occur.SHOULD
    return BooleanQuery([(occur, MatchQuery(terms, column)) for column in columns])


def _options(text: str) -> dict[str, Any]:
    """Read `key=value, …`."""
    found: dict[str, Any] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in pair.partition("="))
        parse = _OPTIONS.get(name.lower())
        if parse is None:
            raise InvalidInputError(f"lance_match has no option {name!r}; there are {', '.join(_OPTIONS)}")
        try:
            found[name.lower()] = parse(value)
        except (KeyError, ValueError):
            raise InvalidInputError(f"the option {name} of lance_match cannot be {value!r}") from None
    return found


_OPTIONS: dict[str, Callable[[str], Any]] = {
    "operator": lambda value: FullTextOperator[value.upper()],
    "fuzziness": int,
    "prefix_length": int,
    "max_expansions": int,
    "boost": float,
}
