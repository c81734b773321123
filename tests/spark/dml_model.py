"""Random DELETE, UPDATE and MERGE statements, and queries for their expected results."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

TYPES = {
    "id": "BIGINT",
    "k": "INT",
    "x": "DOUBLE",
    "s": "STRING",
    "p": "STRUCT<a: INT, b: STRING>",
    "v": "ARRAY<INT>",
    "d": "DATE",
    "w": "STRING",
}
COLUMNS = tuple(TYPES)
_VALUES = {
    "id": ("{t}id + 1000", "{t}id", "CAST({n} AS BIGINT)"),
    "k": ("{t}k + 1", "{n}", "CAST(NULL AS INT)", "CAST({t}id % 5 AS INT)"),
    "x": ("{t}x * 2", "CAST('NaN' AS DOUBLE)", "-0.0D", "CAST(NULL AS DOUBLE)", "{t}k / 2"),
    "s": ("upper({t}s)", "concat({t}s, '-', {t}id)", "CAST(NULL AS STRING)", "''", "repeat('ü', {n})"),
    "p": ("named_struct('a', {t}k, 'b', {t}s)", "CAST(NULL AS STRUCT<a: INT, b: STRING>)", "{t}p"),
    "v": ("array({t}k, NULL, {n})", "CAST(NULL AS ARRAY<INT>)", "CAST(array() AS ARRAY<INT>)"),
    "d": ("date_add({t}d, {n})", "CAST(NULL AS DATE)", "DATE'1999-12-31'"),
    "w": ("concat({t}w, '{n}')", "{t}s"),
}
_CONDITIONS = (
    "{t}id % 7 = {n}",
    "{t}k = {n}",
    "{t}k <> {n}",
    "NOT ({t}k > {n} AND {t}x < 40)",
    "{t}k IS NULL",
    "{t}x >= {n}0 OR {t}s IS NULL",
    "isnan({t}x)",
    "{t}s LIKE '%{n}'",
    "{t}s IN ('s{n}', 's1{n}', NULL)",
    "{t}p.a > {n}",
    "size({t}v) = 2",
    "{t}d < DATE'2024-02-0{n}'",
    "{t}id BETWEEN {n} AND {n}5",
    "hash({t}id, {t}s) % 3 = 0",
    "FALSE",
)
_SUBQUERIES = ("{t}id IN (SELECT id FROM source WHERE k > {n})", "{t}x > (SELECT avg(x) FROM source)")
_MATCHES = (
    "t.id = s.id AND t.k > 2",
    "t.id <=> s.id AND s.k < 7",
    "t.x <=> s.x AND t.id = s.id",
    "t.x = s.x AND t.s = s.s AND t.id = s.id",
    "t.p = s.p AND t.id = s.id",
)


@dataclass(frozen=True, slots=True)
class Change:
    """A statement on a table, and the query over the view `model` that has the rows it leaves.

    Parameters
    ----------
    statement, expected : str
    """

    statement: str
    expected: str


def random_change(rng: random.Random, table: str) -> Change:
    """Return a change of a table; it may also read the view `source`, whose `id` is unique."""
    return rng.choice([_delete, _update, _merge, _merge])(rng, table)


def random_rows(rng: random.Random, first: int, count: int) -> str:
    """Return a query of rows with values of all kinds, nulls among them; their `id` counts from a number."""
    rows = (", ".join(_row(rng, number)) for number in range(first, first + count))
    given = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in TYPES.items())
    return f"SELECT {given} FROM VALUES {', '.join(f'({row})' for row in rows)} AS given({', '.join(COLUMNS)})"


def _row(rng: random.Random, number: int) -> list[str]:
    n = rng.randrange(1, 10)
    choices = (
        (str(n), "NULL"),
        (f"{n}.5D", "NULL", "double('Infinity')", "double('NaN')"),
        (f"'s{n}'", "NULL"),
        (f"named_struct('a', {n}, 'b', 'b{n}')", "NULL", "named_struct('a', CAST(NULL AS INT), 'b', 'b')"),
        (f"array({n}, NULL)", "CAST(array() AS ARRAY<INT>)", "NULL"),
        (f"DATE'2024-02-0{n}'", "NULL"),
        (f"'{rng.randbytes(300).hex()}'", "NULL"),  # Most of the bytes, so that changes of others do not read it.
    )
    return [str(number), *(rng.choice(some) for some in choices)]


def _fill(rng: random.Random, template: str, qualifier: str) -> str:
    return template.replace("{t}", qualifier).replace("{n}", str(rng.randrange(1, 8)))


def _condition(rng: random.Random, qualifier: str, *, subqueries: bool = False) -> str:
    terms = rng.choices(_CONDITIONS + (_SUBQUERIES if subqueries else ()), k=rng.choice([1, 1, 2]))
    return rng.choice([" AND ", " OR "]).join(f"({_fill(rng, term, qualifier)})" for term in terms)


def _assignments(rng: random.Random, qualifier: str) -> dict[str, str]:
    names = rng.sample(COLUMNS[1:], rng.choice([1, 1, 2, 3]))
    return {name: _fill(rng, rng.choice(_VALUES[name]), qualifier) for name in names}


def _delete(rng: random.Random, table: str) -> Change:
    condition = _condition(rng, "", subqueries=True)
    return Change(
        f"DELETE FROM {table} WHERE {condition}", f"SELECT * FROM model WHERE NOT coalesce({condition}, FALSE)"
    )


def _update(rng: random.Random, table: str) -> Change:
    values, condition = _assignments(rng, ""), _condition(rng, "", subqueries=True)
    assigned = ", ".join(f"{name} = {value}" for name, value in values.items())
    made = ", ".join(f"{values.get(name, name)} AS {name}" for name in COLUMNS)
    return Change(
        f"UPDATE {table} SET {assigned} WHERE {condition}",
        f"SELECT * FROM model WHERE NOT coalesce({condition}, FALSE)"
        f" UNION ALL SELECT {made} FROM model WHERE {condition}",
    )


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of MERGE: SQL after THEN, and the values that its rows get; None if they are deleted."""

    condition: str
    action: str
    values: dict[str, str] | None


def _merge(rng: random.Random, table: str) -> Change:
    matched = [_change_clause(rng, "t.", "s.") for _ in range(rng.choice([0, 1, 2]))]
    missing = [_insert_clause(rng) for _ in range(rng.choice([0, 1, 2]))]
    surplus = [_change_clause(rng, "t.", "t.") for _ in range(rng.choice([0, 0, 1, 2]))]
    if not (matched or missing or surplus):
        missing = [_insert_clause(rng)]
    source = rng.choice(["source", "(SELECT * FROM source WHERE k IS NOT NULL)"])
    kinds = (("MATCHED", matched), ("NOT MATCHED", missing), ("NOT MATCHED BY SOURCE", surplus))
    clauses = " ".join(
        f"WHEN {kind} AND {clause.condition} THEN {clause.action}" for kind, some in kinds for clause in some
    )
    on = rng.choice(["t.id = s.id", "t.id = s.id", *_MATCHES])
    return Change(
        f"MERGE INTO {table} t USING {source} s ON {on} {clauses}", _merged(source, on, matched, missing, surplus)
    )


def _change_clause(rng: random.Random, target: str, source: str) -> _Clause:
    condition = f"({_condition(rng, rng.choice([target, source]))})"
    kind = rng.choice(["delete", "update", "update", "star" if source != target else "update"])
    if kind == "delete":
        return _Clause(condition, "DELETE", None)
    if kind == "star":
        return _Clause(condition, "UPDATE SET *", {name: f"s.{name}" for name in COLUMNS})
    values = _assignments(rng, rng.choice([target, source]))
    return _Clause(condition, "UPDATE SET " + ", ".join(f"{name} = {value}" for name, value in values.items()), values)


def _insert_clause(rng: random.Random) -> _Clause:
    condition = f"({_condition(rng, 's.')})"
    if rng.random() < 0.5:
        return _Clause(condition, "INSERT *", {name: f"s.{name}" for name in COLUMNS})
    values = {"id": "s.id", **_assignments(rng, "s.")}
    action = f"INSERT ({', '.join(values)}) VALUES ({', '.join(values.values())})"
    return _Clause(condition, action, {name: values.get(name, "NULL") for name in COLUMNS})


def _merged(
    source: str, on: str, matched: Sequence[_Clause], missing: Sequence[_Clause], surplus: Sequence[_Clause]
) -> str:
    kinds = (("t.is_t AND s.is_s", matched), ("t.is_t IS NULL", missing), ("s.is_s IS NULL", surplus))
    clauses = [(f"{rows} AND {clause.condition}", clause) for rows, some in kinds for clause in some]
    action = " ".join(f"WHEN {condition} THEN {number}" for number, (condition, _) in enumerate(clauses))
    gone = [number for number, (_, clause) in enumerate(clauses) if clause.values is None]
    columns = []
    for name in COLUMNS:
        values = [clause.values.get(name, f"t.{name}") if clause.values else f"t.{name}" for _, clause in clauses]
        cases = " ".join(f"WHEN {number} THEN {value}" for number, value in enumerate(values))
        columns.append(f"CASE act {cases} ELSE t.{name} END AS {name}")
    joined = (
        f"SELECT struct(t.*) AS t, struct(s.*) AS s, CASE {action} ELSE -1 END AS act"
        f" FROM (SELECT *, TRUE AS is_t FROM model) t FULL OUTER JOIN (SELECT *, TRUE AS is_s FROM {source}) s ON {on}"
    )
    excluded = f"AND act NOT IN ({', '.join(map(str, gone))})" if gone else ""
    return f"SELECT {', '.join(columns)} FROM ({joined}) WHERE NOT (t.is_t IS NULL AND act = -1) {excluded}"
