"""The expected content of a table as lists of rows; `test_table_machine.py` compares both libraries with it."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Lineage = dict[int, tuple[int, int, int]]
POINT = pa.struct([pa.field("x", pa.int64()), pa.field("name", pa.string())])
FIRST_COLUMNS = {"k": pa.int64(), "v": pa.int32(), "s": pa.string(), "p": POINT}


@dataclass(frozen=True)
class Predicate:
    """A condition in SQL and in Python."""

    sql: str
    column: str
    holds: Callable[[Any], bool]


PREDICATES = [
    Predicate("k % 3 = 1", "k", lambda k: k % 3 == 1),
    Predicate("k % 7 = 0", "k", lambda k: k % 7 == 0),
    Predicate("k < 25", "k", lambda k: k < 25),
    Predicate("k >= 30 and k < 60", "k", lambda k: 30 <= k < 60),
    Predicate("k = 12", "k", lambda k: k == 12),
    Predicate("k in (3, 14, 15, 92, 65)", "k", lambda k: k in (3, 14, 15, 92, 65)),
    Predicate("v is null", "v", lambda v: v is None),
    Predicate("v > 40", "v", lambda v: v is not None and v > 40),
    Predicate("v = 6", "v", lambda v: v == 6),
    Predicate("s = 's2'", "s", lambda s: s == "s2"),
    Predicate("s is not null and s >= 's3'", "s", lambda s: s is not None and s >= "s3"),
    Predicate("p.x < 30", "p", lambda p: p is not None and p["x"] < 30),
    Predicate("true", "k", lambda _: True),
    Predicate("false", "k", lambda _: False),
]

# The new value of a column, in SQL and in Python, by the column's type.
CHANGES: dict[pa.DataType, list[tuple[str, Callable[[Row], Any]]]] = {
    pa.int32(): [("5", lambda _: 5), ("null", lambda _: None), ("k + 1", lambda row: row["k"] + 1)],
    pa.int64(): [("6", lambda _: 6), ("null", lambda _: None), ("k * 2", lambda row: row["k"] * 2)],
    pa.float64(): [("0.5", lambda _: 0.5), ("cast(k as double)", lambda row: float(row["k"]))],
    pa.string(): [("'new'", lambda _: "new"), ("null", lambda _: None)],
}
CASTS = {pa.int32(): pa.int64(), pa.int64(): pa.int32()}


@dataclass(frozen=True)
class Clauses:
    """Actions of a merge by key on rows with and without a match; `others` of the table may be deleted."""

    updates: bool = False
    deletes: bool = False
    inserts: bool = False
    others: bool = False

    def build(self, builder: Any, others: Predicate) -> Any:
        """Say it to the builder of either library."""
        if self.updates:
            builder = builder.when_matched_update_all()
        if self.deletes:
            builder = builder.when_matched_delete()
        if self.inserts:
            builder = builder.when_not_matched_insert_all()
        return builder.when_not_matched_by_source_delete(others.sql) if self.others else builder


MERGES = {
    "upsert": Clauses(updates=True, inserts=True),
    "update": Clauses(updates=True),
    "insert": Clauses(inserts=True),
    "delete": Clauses(deletes=True),
    "delete and insert": Clauses(deletes=True, inserts=True),
    "replace": Clauses(updates=True, inserts=True, others=True),
    "delete others": Clauses(others=True),
}


def value_of(kind: pa.DataType, k: int) -> Any:
    """Return the value of a new row in a column."""
    if pa.types.is_struct(kind):
        return None if k % 11 == 5 else {"x": k, "name": None if k % 4 == 0 else f"p{k % 5}"}
    if kind == pa.string():
        return None if k % 6 == 2 else f"s{k % 5}"
    if kind == pa.float64():
        return k / 4
    return None if k % 5 == 3 else k % 50


@dataclass
class Branch:
    """A branch of a table: its current content, and that of each version.

    Parameters
    ----------
    path : str
        Path of its versions.
    name : str
        "main" for the main branch.
    rows : list of dict
        In any order; `k` is unique.
    columns : dict of str to pa.DataType
    version : int
        The latest.
    versions : dict of int to tuple
        The rows and columns of those that have not been removed.
    lineage : dict of int to tuple of int
        `_rowid`, `_row_created_at_version` and `_row_last_updated_at_version`, by `k`.
    lineages : dict of int to dict
        The same by version.
    """

    path: str
    name: str = "main"
    rows: list[Row] = field(default_factory=list)
    columns: dict[str, pa.DataType] = field(default_factory=lambda: dict(FIRST_COLUMNS))
    version: int = 0
    versions: dict[int, tuple[list[Row], dict[str, pa.DataType]]] = field(default_factory=dict)
    lineage: Lineage = field(default_factory=dict)
    lineages: dict[int, Lineage] = field(default_factory=dict)

    def start(self, path: str, name: str, version: int) -> "Branch":
        """Return a new branch from one of the versions of this one."""
        made = Branch(path, name, version=version, versions={version: copy.deepcopy(self.versions[version])})
        made.recall(version)
        made.lineage = made.lineages[version] = dict(self.lineages.get(version, {}))
        return made

    def landed(self, version: int) -> None:
        """Remember the rows and columns as those of a version; versions between do not differ from the last one."""
        for number in range(self.version + 1, version):
            self.versions[number] = self.versions[self.version]
        self.version = version
        self.versions[version] = copy.deepcopy((self.rows, self.columns))

    def recall(self, version: int) -> None:
        """Go back to the rows and columns of a version."""
        self.rows, self.columns = copy.deepcopy(self.versions[version])
        self.lineage = self.lineages.get(version, {})

    def matching(self, predicate: Predicate) -> list[Row]:
        """Return the rows for which a predicate is true."""
        return [row for row in self.rows if predicate.holds(row[predicate.column])]

    def remove(self, keys: Iterable[int]) -> None:
        """Delete rows."""
        gone = set(keys)
        self.rows = [row for row in self.rows if row["k"] not in gone]

    def merge(self, source: list[Row], clauses: Clauses, others: Predicate) -> dict[str, int]:
        """Merge rows by `k`, and count what that does."""
        given = {row["k"]: row for row in source}
        known = {row["k"] for row in self.rows}
        gone = {row["k"] for row in self.matching(others) if row["k"] not in given} if clauses.others else set()
        if clauses.deletes:
            gone |= known & given.keys()
        updated = known & given.keys() if clauses.updates else set()
        for row in self.rows:
            if row["k"] in updated:
                row.update(given[row["k"]])
        self.remove(gone)
        new = [row for k, row in given.items() if k not in known] if clauses.inserts else []
        self.rows += [dict.fromkeys(self.columns) | row for row in new]
        return {"num_inserted_rows": len(new), "num_updated_rows": len(updated), "num_deleted_rows": len(gone)}

    def arrow(self, rows: list[Row], columns: Iterable[str] | None = None) -> pa.Table:
        """Return rows as a table, with some of the columns."""
        wanted = set(self.columns if columns is None else columns)
        return pa.Table.from_pylist(rows, pa.schema([(n, kind) for n, kind in self.columns.items() if n in wanted]))
