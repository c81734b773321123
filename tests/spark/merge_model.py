"""Random merges through `LanceTable`, and their expected results, computed over plain rows.

Conditions and values are pairs of SQL and a function that computes the same in Python. Null is None, and a comparison
with it is None, which is not true.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]
"""`id`, `k` and `s`."""
Compute: TypeAlias = Callable[[Row | None, Row | None], Any]
SCHEMA = "id long, k int, s string"
NAMES = ("id", "k", "s")


@dataclass(frozen=True)
class Term:
    """An expression over a row of the target and one of the source."""

    sql: str
    compute: Compute


@dataclass(frozen=True)
class Clause:
    """A clause: the method that adds it, its condition, and its values. None deletes, "all" takes the source's."""

    method: str
    condition: Term | None
    values: dict[str, Term] | str | None


@dataclass(frozen=True)
class Outcome:
    """The result of a merge: the rows, and the numbers of updated, inserted and deleted ones."""

    rows: Counter[Row]
    counts: tuple[int, int, int]


class AmbiguousMergeError(Exception):
    """Several source rows change one target row."""


def random_rows(rng: random.Random, count: int) -> list[Row]:
    """Return rows whose ids repeat, and are null at times."""
    return [
        (
            rng.choice([None, *range(max(2, count))]),
            rng.choice([None, 0, 1, 2, 3, 4, 5]),
            rng.choice([None, "", "a", "b", "ü"]),
        )
        for _ in range(count)
    ]


def _compare(operator: str, one: Compute, other: Compute) -> Compute:
    compare = {
        "=": lambda a, b: a == b,
        ">": lambda a, b: a > b,
        "<": lambda a, b: a < b,
    }[operator]

    def compute(t: Row | None, s: Row | None) -> Any:
        a, b = one(t, s), other(t, s)
        return None if a is None or b is None else compare(a, b)

    return compute


def _column(side: str, name: str) -> Compute:
    place = NAMES.index(name)
    return lambda t, s: (t if side == "t" else s)[place]  # type: ignore[index]


def _number(value: int) -> Compute:
    return lambda _t, _s: value


MATCHES = (
    Term("t.id = s.id", _compare("=", _column("t", "id"), _column("s", "id"))),
    Term("t.id <=> s.id", lambda t, s: t[0] == s[0]),  # type: ignore[index]
    Term(
        "t.id = s.id AND s.k > 2",
        lambda t, s: (
            _compare("=", _column("t", "id"), _column("s", "id"))(t, s)
            and _compare(">", _column("s", "k"), _number(2))(t, s)
        ),
    ),
    Term(
        "t.id < s.id AND t.k = s.k",
        lambda t, s: (
            _compare("<", _column("t", "id"), _column("s", "id"))(t, s)
            and _compare("=", _column("t", "k"), _column("s", "k"))(t, s)
        ),
    ),
)


def _condition(rng: random.Random, sides: Sequence[str], *, bare: bool) -> Term | None:
    if rng.random() < 0.3:
        return None
    side, number, operator = rng.choice(sides), rng.randrange(6), rng.choice("=<>")
    name = f"{'' if bare else side + '.'}k"
    terms = [
        Term(f"{name} {operator} {number}", _compare(operator, _column(side, "k"), _number(number))),
        Term(
            f"{name} IS NULL OR {name} > {number}",
            lambda t, s: _column(side, "k")(t, s) is None or _compare(">", _column(side, "k"), _number(number))(t, s),
        ),
    ]
    if len(sides) > 1:
        terms.append(Term("t.k < s.k", _compare("<", _column("t", "k"), _column("s", "k"))))
    return rng.choice(terms)


def _values(rng: random.Random, sides: Sequence[str], names: Sequence[str]) -> dict[str, Term]:
    side, number = rng.choice(sides), rng.randrange(100)

    def plus(t: Row | None, s: Row | None) -> Any:
        value = _column(side, "k")(t, s)
        return None if value is None else value + number

    choices = {
        "id": [Term(f"{side}.id", _column(side, "id"))],
        "k": [
            Term(f"{side}.k + {number}", plus),
            Term("NULL", lambda _t, _s: None),
            Term(f"CAST({number} AS BIGINT)", _number(number)),
        ],
        "s": [
            Term(f"{side}.s", _column(side, "s")),
            Term(f"{number}", lambda _t, _s: str(number)),
            Term(f"concat({side}.s, '!')", lambda t, s: None if (v := _column(side, "s")(t, s)) is None else v + "!"),
        ],
    }
    return {name: rng.choice(choices[name]) for name in names}


def _clauses(rng: random.Random) -> list[Clause]:
    clauses = []
    for _ in range(rng.choice([0, 1, 1, 2])):
        kind = rng.choice(["Delete", "Update", "UpdateAll"])
        values = _values(rng, "ts", rng.sample(NAMES[1:], rng.choice([1, 2])))
        given = {"Delete": None, "Update": values, "UpdateAll": "all"}[kind]
        clauses.append(Clause(f"whenMatched{kind}", _condition(rng, "ts", bare=False), given))
    for _ in range(rng.choice([0, 1, 1, 2])):
        kind = rng.choice(["Insert", "InsertAll"])
        values = _values(rng, "s", rng.choice([("id",), ("id", "s"), NAMES]))
        clauses.append(
            Clause(f"whenNotMatched{kind}", _condition(rng, "s", bare=True), values if kind == "Insert" else "all")
        )
    for _ in range(rng.choice([0, 0, 1, 2])):
        kind = rng.choice(["Delete", "Update"])
        values = _values(rng, "t", rng.sample(NAMES[1:], 1))
        clauses.append(
            Clause(
                f"whenNotMatchedBySource{kind}",
                _condition(rng, "t", bare=True),
                values if kind == "Update" else None,
            )
        )
    return clauses


def _of(clauses: Sequence[Clause], prefix: str) -> list[Clause]:
    if prefix == "whenNotMatched":
        return [clause for clause in clauses if clause.method.startswith("whenNotMatchedInsert")]
    return [clause for clause in clauses if clause.method.startswith(prefix)]


@dataclass(frozen=True)
class Merge:
    """A merge: when rows match, and the clauses."""

    on: Term
    clauses: tuple[Clause, ...]

    @classmethod
    def random(cls, rng: random.Random) -> Merge:
        """Return one whose clauses all can be reached."""
        while True:
            clauses = _clauses(rng)
            kinds = [_of(clauses, prefix) for prefix in ("whenMatched", "whenNotMatched", "whenNotMatchedBySource")]
            if clauses and all(clause.condition is not None for some in kinds for clause in some[:-1]):
                return cls(rng.choice(MATCHES), tuple(clauses))

    def add_to(self, builder: Any) -> Any:
        """Return a builder with the clauses."""
        for clause in self.clauses:
            arguments: dict[str, Any] = {"condition": None if clause.condition is None else clause.condition.sql}
            if isinstance(clause.values, dict):
                name = "values" if "Insert" in clause.method else "set"
                arguments[name] = {column: term.sql for column, term in clause.values.items()}
            builder = getattr(builder, clause.method)(**arguments)
        return builder

    def apply(self, target: Sequence[Row], source: Sequence[Row]) -> Outcome:
        """Return the result of the merge.

        Raises
        ------
        AmbiguousMergeError
        """
        rows: Counter[Row] = Counter()
        counts = Counter({"Update": 0, "Insert": 0, "Delete": 0})
        matched, surplus = _of(self.clauses, "whenMatched"), _of(self.clauses, "whenNotMatchedBySource")
        is_delete = [(clause.values, clause.condition) for clause in matched] == [(None, None)]
        found: set[int] = set()
        for t in target:
            matches = [place for place, s in enumerate(source) if self.on.compute(t, s)]
            found.update(matches)
            pairs = [(t, source[place]) for place in matches] or [(t, None)]
            chosen = [(_first(matched if matches else surplus, *pair), pair) for pair in pairs]
            active = [(clause, pair) for clause, pair in chosen if clause is not None]
            if len(active) > 1 and not is_delete:
                raise AmbiguousMergeError
            if not active:
                rows[t] += 1
                continue
            clause, pair = active[0]
            kind = "Delete" if clause.values is None else "Update"
            counts[kind] += 1
            if kind == "Update":
                rows[_made(clause, *pair, old=t)] += 1
        for place, s in enumerate(source):
            clause = None if place in found else _first(_of(self.clauses, "whenNotMatched"), None, s)
            if clause is not None:
                counts["Insert"] += 1
                rows[_made(clause, None, s, old=(None, None, None))] += 1
        return Outcome(rows, (counts["Update"], counts["Insert"], counts["Delete"]))


def _first(clauses: Sequence[Clause], t: Row | None, s: Row | None) -> Clause | None:
    return next((c for c in clauses if c.condition is None or c.condition.compute(t, s)), None)


def _made(clause: Clause, t: Row | None, s: Row | None, *, old: Row) -> Row:
    if clause.values == "all":
        assert s is not None
        return s
    assert isinstance(clause.values, dict)
    return tuple(
        clause.values[name].compute(t, s) if name in clause.values else value
        for name, value in zip(NAMES, old, strict=True)
    )
