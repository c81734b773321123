"""Changes of a table that other processes change too.

`appends` adds rows with numbers of the worker, and `deletes` removes some of every third row. `acknowledged` appends as
well: it returns the numbers that were added, and those that may have been. `changes` owns the rows whose `owner` is the
worker. It deletes and updates them, appends more, and in between compacts the table or adds a column. It returns its
rows as values of `a` and `n`.
"""

import importlib
import random
import time
from collections.abc import Callable

import pyarrow as pa

from lance_format import (
    CommitConflictError,
    CommitStateUnknownError,
    DatasetExistsError,
    RetryableCommitConflictError,
    write_dataset,
)

_MAX_SECONDS = 500
_MOST_ATTEMPTS = 100


def appends(name: str, path: str, worker: int, count: int, options: dict[str, str] | None = None) -> None:
    library = importlib.import_module(name)
    for number in range(count):
        row = pa.table({"a": [1000 * worker + number]})
        library.write_dataset(row, path, mode="append", storage_options=options)


def changes_of_own_rows(name: str, path: str, kind: str, writer: int, count: int, options: dict[str, str]) -> None:
    """Merge into or delete rows that are this writer's, or maintain the table; what conflicts is tried again.

    So is what was planned on a version that has been cleaned up, which pylance does not call a conflict.
    """
    library = importlib.import_module(name)

    def row(number: int) -> pa.Table:
        return pa.table({"id": pa.array([number], pa.int64()), "value": pa.array([writer], pa.int64())})

    def apply(number: int) -> None:
        table = library.dataset(path, storage_options=options)
        if kind == "merge":
            for first in (writer * 100, writer * 10_000):
                changed = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
                changed.execute(row(first + number))
        elif kind == "delete":
            table.delete(f"id = {writer * 100 + number}")
        elif kind == "compaction":
            table.optimize.compact_files()
        else:
            table.cleanup_old_versions(retain_versions=8)

    for number in range(count):
        for attempt in range(_MOST_ATTEMPTS):
            try:
                apply(number)
                break
            except Exception as error:
                told = f"{type(error).__name__} {error}".lower()
                if attempt + 1 == _MOST_ATTEMPTS or not any(
                    word in told for word in ("conflict", "contention", "retry", ".manifest was not found")
                ):
                    raise


def acknowledged(name: str, path: str, worker: int, count: int) -> tuple[list[int], list[int]]:
    library = importlib.import_module(name)
    added, unknown = [], []
    for number in range(1000 * worker, 1000 * worker + count):
        try:
            library.write_dataset(pa.table({"a": [number]}), path, mode="append")
            added.append(number)
        except RetryableCommitConflictError:
            pass
        except CommitStateUnknownError:
            unknown.append(number)
    return added, unknown


def persist(attempt: Callable[[], object]) -> None:
    """Do something again until nobody interferes; both libraries give up after some attempts of their own."""
    deadline = time.monotonic() + _MAX_SECONDS
    while True:
        try:
            attempt()
            return
        except (OSError, RuntimeError, CommitConflictError) as error:
            if "conflict" not in str(error).lower() and "run it again" not in str(error):
                raise
            if time.monotonic() > deadline:
                raise


def changes(name: str, path: str, worker: int, count: int) -> list[tuple[int, int]]:
    library = importlib.import_module(name)
    chosen = random.Random(worker)
    owned = {1000 * worker + number: 0 for number in range(20)}
    compacts = worker % 4 < 2  # Of workers that take turns in their library, one of either.
    for step in range(count):
        a = chosen.choice(sorted(owned))
        match step % 5:
            case 0:
                persist(lambda a=a: library.dataset(path).delete(f"a = {a}"))
                del owned[a]
            case 1 | 3:
                persist(lambda a=a, n=step: library.dataset(path).update({"n": str(n)}, f"a = {a}"))
                owned[a] = step
            case 2:
                a = 1000 * worker + 100 + step
                row = pa.table({"owner": [worker], "a": [a], "n": [0]})
                persist(lambda row=row: library.write_dataset(row, path, mode="append"))
                owned[a] = 0
            case 4 if compacts:
                persist(lambda: library.dataset(path).optimize.compact_files())
            case 4:
                column = f"c{worker}_{step}"
                persist(lambda column=column: library.dataset(path).add_columns({column: "a + 1"}))
    return sorted(owned.items())


def deletes(name: str, path: str, worker: int, count: int) -> list[int]:
    """Delete some of the rows 0 to 1000 * `count`, of which each of three workers owns a third, and return the rest."""
    library = importlib.import_module(name)
    chosen = random.Random(worker)
    left = set(range(worker, 1000 * count, 3))
    for size in chosen.choices((1, 3, 40, 300), k=count):
        gone = chosen.sample(sorted(left), min(size, len(left) - 1))
        left.difference_update(gone)
        persist(lambda gone=gone: library.dataset(path).delete(f"a in ({', '.join(map(str, gone))})"))
    return sorted(left)


def create(path: str, value: int) -> bool:
    """Create a table, and return whether it is this one."""
    try:
        write_dataset(pa.table({"a": [value]}), path)
    except DatasetExistsError:
        return False
    return True
