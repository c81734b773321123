"""Changes of one table by sessions that race, and a judge of what became of it.

A statement is made from the seed of a race, the number of its session and its step: the session that runs it and the
judge have the same. It computes which of given rows it deletes and replaces, and which rows it inserts.

The judge has every version with its rows, and what each session was told. Snapshots isolate changes: a statement
changes what it finds in the version that it reads, and its commit is refused if other sessions have changed the same
rows since. So the rows of a version have to be those of the one before it, changed by one statement as computed on the
version that it read. Each acknowledged statement has made one version, or has found nothing to change.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Row: TypeAlias = tuple[int, int, str]
"""`k`, `n` and `w`, which names the statement that wrote the row."""
COLUMNS = ("k", "n", "w")
NUM_KEYS = 24
"""Keys from 0 on, which all sessions fight for. Rows that are inserted without a look at the table have others."""
UPKEEP = frozenset({"Rewrite", "CreateIndex", "ReserveFragments", "UpdateConfig"})


@dataclass(frozen=True, slots=True)
class Effect:
    """Rows that a statement deletes, replaces, each as a pair of old and new, and inserts."""

    deleted: tuple[Row, ...] = ()
    replaced: tuple[tuple[Row, Row], ...] = ()
    inserted: tuple[Row, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deleted or self.replaced or self.inserted)

    def apply(self, rows: Counter[Row]) -> Counter[Row] | None:
        """Return what becomes of rows; None if those that it changes are not among them."""
        removed = Counter([*self.deleted, *(old for old, _ in self.replaced)])
        if not removed <= rows:
            return None
        return rows - removed + Counter([*self.inserted, *(new for _, new in self.replaced)])


@dataclass(frozen=True, slots=True)
class Range:
    """The condition that a key is in a range, both ends included."""

    first: int
    last: int

    def holds(self, key: int) -> bool:
        return self.first <= key <= self.last

    def sql(self, qualifier: str = "") -> str:
        return f"{qualifier}k BETWEEN {self.first} AND {self.last}"


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows that are appended."""

    rows: tuple[Row, ...]

    def effect(self, _rows: Iterable[Row]) -> Effect:
        return Effect(inserted=self.rows)


@dataclass(frozen=True, slots=True)
class Copy:
    """Rows in a range of keys that are appended again, with keys that nobody has."""

    range: Range
    shift: int
    token: str

    def effect(self, rows: Iterable[Row]) -> Effect:
        copies = ((k + self.shift, n, self.token) for k, n, _ in rows if self.range.holds(k))
        return Effect(inserted=tuple(copies))


@dataclass(frozen=True, slots=True)
class Replace:
    """Rows that take the place of those in a range of keys."""

    range: Range
    rows: tuple[Row, ...]

    def effect(self, rows: Iterable[Row]) -> Effect:
        return Effect(deleted=tuple(row for row in rows if self.range.holds(row[0])), inserted=self.rows)


@dataclass(frozen=True, slots=True)
class Update:
    """`n` counts on in a range of keys."""

    range: Range
    token: str

    def effect(self, rows: Iterable[Row]) -> Effect:
        found = (row for row in rows if self.range.holds(row[0]))
        return Effect(replaced=tuple((row, (row[0], row[1] + 1, self.token)) for row in found))


@dataclass(frozen=True, slots=True)
class Delete:
    """The rows in a range of keys go. They are found by a subquery if the driver is not to find them."""

    range: Range
    by_tasks: bool

    def effect(self, rows: Iterable[Row]) -> Effect:
        return Effect(deleted=tuple(row for row in rows if self.range.holds(row[0])))


@dataclass(frozen=True, slots=True)
class Merge:
    """Source rows by key: matches are updated, or deleted if their `n` says so; others are inserted.

    Rows in `surplus` that no source row matches are deleted.
    """

    source: tuple[Row, ...]
    deletes: bool
    surplus: Range | None

    @staticmethod
    def is_delete(source: Row) -> bool:
        return source[1] >= 80

    def effect(self, rows: Iterable[Row]) -> Effect:
        source = {row[0]: row for row in self.source}
        deleted, replaced, found = [], [], set()
        for row in rows:
            match = source.get(row[0])
            if match is None:
                if self.surplus is not None and self.surplus.holds(row[0]):
                    deleted.append(row)
                continue
            found.add(row[0])
            if self.deletes and self.is_delete(match):
                deleted.append(row)
            else:
                replaced.append((row, match))
        return Effect(tuple(deleted), tuple(replaced), tuple(row for row in self.source if row[0] not in found))


Change: TypeAlias = Insert | Copy | Replace | Update | Delete | Merge
Upkeep: TypeAlias = str
"""`optimize`, `sort`, `create_index`, `refresh_index`, `vacuum` or `tag`."""
_CHANGES: tuple[type[Change], ...] = (Insert, Copy, Replace, Update, Update, Delete, Delete, Merge, Merge, Merge, Merge)
_UPKEEP = ("optimize", "optimize", "sort", "create_index", "refresh_index", "vacuum", "tag")


def first_rows() -> list[Row]:
    """Return the rows that a race begins with."""
    return [(key, 0, "start") for key in range(0, NUM_KEYS, 2)]


def statement(seed: int, session: int, step: int) -> Change | Upkeep:
    """Return what a session does in a step."""
    rng = random.Random(f"{seed} {session} {step}")
    token = f"{session}.{step}"
    if rng.random() < 0.25:
        return rng.choice(_UPKEEP)
    first = rng.randrange(NUM_KEYS)
    keys = Range(first, first + rng.choice((0, 1, 4)))
    own = 1_000_000 * (session + 1) + 1000 * step
    rows = tuple((own + number, number, token) for number in range(2))
    match rng.choice(_CHANGES).__name__:
        case "Insert":
            return Insert(rows)
        case "Copy":
            return Copy(keys, own, token)
        case "Replace":
            return Replace(keys, rows)
        case "Update":
            return Update(keys, token)
        case "Delete":
            return Delete(Range(first, first + 1), rng.random() < 0.5)
        case _:
            chosen = rng.sample(range(NUM_KEYS), rng.choice((1, 3, 6)))
            source = tuple((key, rng.randrange(100), token) for key in chosen)
            return Merge(source, rng.random() < 0.5, keys if rng.random() < 0.3 else None)


@dataclass(frozen=True, slots=True)
class Told:
    """What a session was told of a statement.

    Parameters
    ----------
    session, step : int
    before, after : int
        The latest versions just before and just after it.
    error : str or None
        None if it was acknowledged.
    """

    session: int
    step: int
    before: int
    after: int
    error: str | None

    def spans(self, version: int) -> bool:
        return self.before < version <= self.after


@dataclass(frozen=True, slots=True)
class Version:
    """A version, as it was read soon after its commit.

    Parameters
    ----------
    operation : str
        The class of the operation of its transaction.
    read_version : int
        Of the transaction.
    rows : Counter
    by_id : mapping
        The row and the creating version by stable row id; empty if the table has none.
    """

    operation: str
    read_version: int
    rows: Counter[Row]
    by_id: Mapping[int, tuple[Row, int]]


class Judge:
    """Explains the versions of a race by the statements that were acknowledged.

    Parameters
    ----------
    seed : int
    versions : mapping of int to Version
        All of them, from the first.
    told : sequence of Told
    """

    def __init__(self, seed: int, versions: Mapping[int, Version], told: Sequence[Told]) -> None:
        self.versions = versions
        self._acknowledged = {
            each: change
            for each in told
            if each.error is None and not isinstance(change := statement(seed, each.session, each.step), str)
        }

    def explain(self) -> dict[int, Told]:
        """Return the statement that made each version.

        Raises
        ------
        AssertionError
            If a version has none, or if an acknowledged statement that had rows to change made no version.
        """
        candidates = {}
        for number in sorted(self.versions)[1:]:
            if self.versions[number].operation in UPKEEP:
                assert self.versions[number].rows == self.versions[number - 1].rows, number
                assert self.versions[number].by_id == self.versions[number - 1].by_id, number
            else:
                candidates[number] = [told for told in self._acknowledged if self._explains(told, number)]
        makers = _match(candidates)
        unexplained = {number: self.describe(number) for number in candidates if number not in makers.values()}
        assert not unexplained, unexplained
        lost = [told for told in self._acknowledged if told not in makers and not self._may_do_nothing(told)]
        assert not lost, [(told, self._acknowledged[told]) for told in lost]
        return {number: told for told, number in makers.items()}

    def describe(self, number: int) -> str:
        """Describe a version and the statements that might have made it."""
        before, version = self.versions[number - 1], self.versions[number]
        spanning = [(told, self._acknowledged[told]) for told in self._acknowledged if told.spans(number)]
        return (
            f"{version.operation} planned on {version.read_version}: removed {sorted(before.rows - version.rows)}, "
            f"added {sorted(version.rows - before.rows)}; under way: {spanning}"
        )

    def _explains(self, told: Told, number: int) -> bool:
        if not told.spans(number):
            return False
        change, version = self._acknowledged[told], self.versions[number]
        # An append reads by a query of its own, at any time before it is planned.
        reads = range(told.before, number) if isinstance(change, Insert | Copy) else [version.read_version]
        effects = (change.effect(self.versions[read].rows.elements()) for read in reads)
        # A delete in the driver and an append of no row make versions, too.
        return any(self._makes(each, number) for each in effects if each or isinstance(change, Copy | Delete))

    def _makes(self, effect: Effect, number: int) -> bool:
        before, after = self.versions[number - 1], self.versions[number]
        return effect.apply(before.rows) == after.rows and _is_lineage(effect, before, after, number)

    def _may_do_nothing(self, told: Told) -> bool:
        change = self._acknowledged[told]
        versions = (self.versions[number] for number in range(told.before, told.after + 1))
        return any(not change.effect(version.rows.elements()) for version in versions)


def _is_lineage(effect: Effect, before: Version, after: Version, number: int) -> bool:
    """Return whether replaced rows keep their ids and creating versions, and inserted ones have new ids."""
    if not before.by_id:
        return not after.by_id
    kept = before.by_id.keys() & after.by_id.keys()
    pairs = [(before.by_id[row_id], after.by_id[row_id]) for row_id in kept]
    replaced = Counter((old, new) for (old, _), (new, _) in pairs if old != new)
    new = [after.by_id[row_id] for row_id in after.by_id.keys() - kept]
    return (
        replaced == Counter(effect.replaced)
        and all(was == now for (_, was), (_, now) in pairs)
        and Counter(row for row, _ in new) == Counter(effect.inserted)
        and all(created == number for _, created in new)
    )


def _match(candidates: Mapping[int, Sequence[Told]]) -> dict[Told, int]:
    """Give as many versions as possible a statement each, which no other version has."""
    makers: dict[Told, int] = {}

    def place(number: int, tried: set[Told]) -> bool:
        for told in candidates[number]:
            if told in tried:
                continue
            tried.add(told)
            if told not in makers or place(makers[told], tried):
                makers[told] = number
                return True
        return False

    for number in candidates:
        place(number, set())
    return makers
