"""Changes a table that others change too: `python -m tests.table.versions.race_worker TASK ours|pylance PATH N COUNT`.

Worker N of `appends` adds rows with numbers of its own, worker N of `deletes` removes some of every third row.
Worker N of `acknowledged` appends as well, COUNT times, and prints as JSON which numbers it was told have been added,
and of which it was told that they may have been.
Worker N of `changes` owns the rows whose `owner` is N: it deletes and updates them, appends more, and in between
compacts the table or adds a column. What it made of its rows is printed as JSON: the values of `a` and `n`.
"""

import importlib
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

_MAX_SECONDS = 500


def appends(library: Any, path: str, worker: int, count: int) -> None:
    for number in range(count):
        library.write_dataset(pa.table({"a": [1000 * worker + number]}), path, mode="append")


def acknowledged(library: Any, path: str, worker: int, count: int) -> None:
    errors = importlib.import_module("lance_format")
    added, unknown = [], []
    for number in range(1000 * worker, 1000 * worker + count):
        try:
            library.write_dataset(pa.table({"a": [number]}), path, mode="append")
            added.append(number)
        except errors.RetryableCommitConflictError:
            pass
        except errors.CommitStateUnknownError:
            unknown.append(number)
    print(json.dumps([added, unknown]))


def persist(attempt: Callable[[], object]) -> None:
    """Do something again until nobody interferes; both libraries give up after some attempts of their own."""
    deadline = time.monotonic() + _MAX_SECONDS
    while True:
        try:
            attempt()
            return
        except (OSError, RuntimeError, importlib.import_module("lance_format").CommitConflictError) as error:
            if "conflict" not in str(error).lower() and "run it again" not in str(error):
                raise
            if time.monotonic() > deadline:
                raise


def changes(library: Any, path: str, worker: int, count: int) -> None:
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
    print(json.dumps(sorted(owned.items())))


def deletes(library: Any, path: str, worker: int, count: int) -> None:
    """Delete rows 0 to 1000 * COUNT, of which a third belongs to each of three workers, few or many at once."""
    chosen = random.Random(worker)
    left = set(range(worker, 1000 * count, 3))
    for size in chosen.choices((1, 3, 40, 300), k=count):
        gone = chosen.sample(sorted(left), min(size, len(left) - 1))
        left.difference_update(gone)
        persist(lambda gone=gone: library.dataset(path).delete(f"a in ({', '.join(map(str, gone))})"))
    print(json.dumps(sorted(left)))


def main(task: str, kind: str, path: str, worker: int, count: int) -> None:
    library = importlib.import_module("lance_format" if kind == "ours" else "lance")
    {"acknowledged": acknowledged, "appends": appends, "changes": changes, "deletes": deletes}[task](
        library, path, worker, count
    )


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]))
