"""The plain part of SQL text, parsed without sqlglot.

Most filters compare names with constants, and the long ones are written by programs: lists of a hundred thousand
constants, chains of thousands of terms. sqlglot, whose import alone takes longer than most parses, needs 20 µs for each
constant and 100 µs for each term. Here a list of constants is one token.

```
condition := conjunction (OR conjunction)*
conjunction := negation (AND negation)*
negation := NOT negation | "(" condition ")" | term
term := name operator constant | name [NOT] IN "(" constants ")" | name IS [NOT] NULL | name [NOT] LIKE text
```

Other text is left to `sql`, which gives this part the same meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from lance_format.expressions import nodes
from lance_format.expressions.nodes import Expression, Literal

_INTEGER = r"-?[0-9]{1,18}"
_DECIMAL = r"-?[0-9]{1,18}\.[0-9]{1,18}"
_TEXT = r"'[^'\"\\\n]*+'"
_LISTS = {
    kind: rf"{constant}(?:\s*+,\s*+{constant})*+"
    for kind, constant in {"decimals": _DECIMAL, "integers": _INTEGER, "texts": _TEXT}.items()
}
_IN_LIST = "|".join(rf"(?P<{kind}>{pattern})(?=\s*\))" for kind, pattern in _LISTS.items())
_TOKEN = re.compile(
    rf"""\s*+(?:
        (?P<among>IN\s*\(\s*(?:{_IN_LIST})\s*\))
      | (?P<number>{_DECIMAL}|{_INTEGER})(?![\w.])
      | (?P<text>{_TEXT})
      | (?P<word>[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+)
      | (?P<quoted>`[^`]++`)
      | (?P<operator>[<>]=|[!=]=|<>|[=<>])(?![<>=])
      | (?P<parenthesis>[()])
    )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_OPERATORS: dict[str, nodes.ComparisonOperator] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_RESERVED_WORDS = """
    ALL ALTER AND ANY ARRAY AS BETWEEN CASE CAST COLLATE CREATE CROSS CURRENT_DATE CURRENT_DATETIME CURRENT_TIME
    CURRENT_TIMESTAMP CURRENT_USER DISTINCT DIV DROP ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH FOR FROM GLOB GRANT
    GROUP HAVING ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS ISNULL JOIN LATERAL LIKE LIMIT LOCALTIME
    LOCALTIMESTAMP MAP NOT NOTNULL NULL ON OR ORDER OUTER PARTITIONED_BY QUALIFY REGEXP RETURNING REVOKE RLIKE ROLLBACK
    SELECT STRUCT TABLESAMPLE THEN TRUE TRY_CAST UNCACHE UNION UNIQUE USING WHEN WHERE WITH XOR
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
"""Words that may mean something other than a column."""
_MOST_DEPTH = 50


class _NotPlainError(Exception):
    """The text has something that is not parsed here."""


def parse_plain(text: str) -> Expression | None:
    """Parse SQL text, if it is plain.

    Returns
    -------
    Expression or None
        The result of `lance_format.expressions.parsing.sql.parse`; None if the text is not plain.
    """
    try:
        return _Parser(text).parse()
    except _NotPlainError:
        return None


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokenize(text)
        self._next = 0

    def parse(self) -> Expression:
        """Return the expression of the whole text."""
        found = self._condition(0)
        if self._next < len(self._tokens):
            raise _NotPlainError
        return found

    def _condition(self, depth: int) -> Expression:
        return self._chain("OR", nodes.Or, lambda: self._chain("AND", nodes.And, lambda: self._negation(depth)))

    def _chain(
        self, word: str, kind: type[nodes.And] | type[nodes.Or], operand: Callable[[], Expression]
    ) -> Expression:
        first = operand()
        if self._word() != word:
            return first
        operands = [*first.operands] if isinstance(first, kind) else [first]
        while self._word() == word:
            self._next += 1
            operands.append(operand())
        return kind(tuple(operands))

    def _negation(self, depth: int) -> Expression:
        if depth > _MOST_DEPTH:
            raise _NotPlainError
        kind, value = self._take()
        if kind == "word" and value.upper() == "NOT":
            return nodes.Not(self._negation(depth + 1))
        if value == "(" and kind == "parenthesis":
            found = self._condition(depth + 1)
            if self._take() != ("parenthesis", ")"):
                raise _NotPlainError
            return found
        return self._term(_column(kind, value))

    def _term(self, column: Expression) -> Expression:
        kind, value = self._take()
        if kind == "operator":
            return nodes.Comparison(_OPERATORS[value], column, _constant(*self._take()))
        if (kind, value.upper()) == ("word", "IS"):
            negated = self._skip("NOT")
            if not self._skip("NULL"):
                raise _NotPlainError
            return _negated(nodes.IsNull(column), negated)
        negated = (kind, value.upper()) == ("word", "NOT")
        if negated:
            kind, value = self._take()
        if kind in _LISTS:
            return _negated(nodes.In(column, _constants(kind, value)), negated)
        if (kind, value.upper()) == ("word", "LIKE"):
            kind, value = self._take()
            if kind == "text":
                return _negated(nodes.Like(column, value[1:-1]), negated)
        raise _NotPlainError

    def _word(self) -> str:
        """Return the next token in capitals, if it is a word."""
        kind, value = self._tokens[self._next] if self._next < len(self._tokens) else ("", "")
        return value.upper() if kind == "word" else ""

    def _skip(self, word: str) -> bool:
        """Go past a word, if it is the next token."""
        found = self._word() == word
        self._next += found
        return found

    def _take(self) -> tuple[str, str]:
        if self._next == len(self._tokens):
            raise _NotPlainError
        self._next += 1
        return self._tokens[self._next - 1]


def _tokenize(text: str) -> list[tuple[str, str]]:
    """Return the kind and the text of each token; of a list of constants, its kind and the constants."""
    text = text.rstrip()
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise _NotPlainError
        kind = match.lastgroup
        if kind == "among":
            kind = next(name for name in _LISTS if match[name] is not None)
        tokens.append((kind, match[kind]))
        position = match.end()
    return tokens


def _column(kind: str, value: str) -> Expression:
    if kind == "quoted":
        return nodes.Column((value[1:-1],))
    path = tuple(value.split("."))
    if kind != "word" or any(name.upper() in _RESERVED for name in path):
        raise _NotPlainError
    return nodes.Column(path)


def _constant(kind: str, value: str) -> Expression:
    if kind == "number":
        return Literal(pa.scalar(float(value)) if "." in value else pa.scalar(int(value), pa.int64()))
    if kind == "text":
        return Literal(pa.scalar(value[1:-1]))
    if kind == "word" and value.upper() in ("TRUE", "FALSE"):
        return Literal(pa.scalar(value.upper() == "TRUE"))
    raise _NotPlainError


def _constants(kind: str, value: str) -> pa.Array:
    if kind == "integers":
        return pa.array(np.fromstring(value, np.int64, sep=","))
    if kind == "decimals":
        return pa.array([float(constant) for constant in value.split(",")])
    return pa.array([text[1:-1] for text in re.findall(_TEXT, value)])


def _negated(predicate: Expression, negated: bool) -> Expression:
    return nodes.Not(predicate) if negated else predicate
