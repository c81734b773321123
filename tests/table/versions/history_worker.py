"""Processes that write, read or clean up a table.

The writer makes changes of all kinds, every other one with the other library, and knows what rows each version has to
have. The others go on until it is done. The writer returns what it made and a reader what it saw, as digests of the
rows by version. A cleaner returns how many versions it removed.
"""

import hashlib
import importlib
import random
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_format
from lance_format import VersionNotFoundError

Rows = dict[int, int]
READS_OF_A_VERSION = 3
KEPT_VERSIONS = 3
MAX_REMOVAL_SECONDS = 200
_LIBRARIES = ("lance_format", "lance")


def digest(rows: Iterable[tuple[int, int]]) -> str:
    return hashlib.sha256(repr(sorted(rows)).encode()).hexdigest()


def change(library: Any, path: str, step: int, rows: Rows) -> Rows:
    """Change a table, and return the rows that it has since: `n` by `a`."""
    chosen = random.Random(step)
    table = library.dataset(path)
    some = chosen.sample(sorted(rows), len(rows) // 10)
    listed = f"a in ({', '.join(map(str, some))})"
    new = {1000 * step + number: step for number in range(40)}
    match step % 9:
        case 0 | 4:
            data = pa.table({"a": pa.array(new.keys()), "n": pa.array(new.values())})
            library.write_dataset(data, path, mode="append", max_rows_per_file=30)
            return rows | new
        case 1 | 5:
            table.delete(listed)
            return {a: n for a, n in rows.items() if a not in some}
        case 2 | 6:
            table.update({"n": f"n + {step}"}, listed)
            return rows | {a: rows[a] + step for a in some}
        case 3:
            upsert = table.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
            upsert.execute(pa.table({"a": [*some, *new], "n": [-step] * (len(some) + len(new))}))
            return rows | dict.fromkeys([*some, *new], -step)
        case 7:
            table.optimize.compact_files(target_rows_per_fragment=200)
        case 8:
            table.update_config({"step": str(step)})
    return rows


def write(path: str, count: int) -> dict[int, str]:
    table = lance_format.dataset(path)
    rows = {row["a"]: row["n"] for row in table.to_table().to_pylist()}
    last = table.version
    made = {last: digest(rows.items())}
    for step in range(1, count + 1):
        changed = change(importlib.import_module(_LIBRARIES[step % 2]), path, step, rows)
        version = lance_format.dataset(path).version
        made.update(dict.fromkeys(range(last + 1, version), digest(rows.items())))  # A compaction can be two versions.
        made[version] = digest(changed.items())
        rows, last = changed, version
    return made


def examine(table: Any) -> str:
    """Read a version in several ways, which have to agree, and return its digest."""
    found = table.to_table()
    rows = list(zip(found["a"].to_pylist(), found["n"].to_pylist(), strict=True))
    assert table.count_rows() == len(rows)
    assert sorted(table.to_table(columns=["n", "a"], filter="a % 2 = 0")["a"].to_pylist()) == sorted(
        a for a, _ in rows if a % 2 == 0
    )
    places = random.sample(range(len(rows)), min(5, len(rows)))
    assert table.take(places)["a"].to_pylist() == [rows[place][0] for place in places]
    return digest(rows)


def versions(path: str) -> list[int]:
    return [ref["version"] for ref in lance_format.dataset(path).version_refs()]


def is_removal(error: Exception, table: Any, path: str) -> bool:
    """Return whether what went wrong is that a version, which may not have been opened, is not there anymore.

    Cleanups of pylance remove files before the manifests that name them: the version may be listed a little longer.
    """
    if not isinstance(error, (VersionNotFoundError, FileNotFoundError)) and "Not found: " not in str(error):
        return False
    deadline = time.monotonic() + MAX_REMOVAL_SECONDS
    while table is not None and table.version in versions(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def read(library: Any, path: str, end: Path) -> dict[str, Any]:
    """Read the latest version, or one of the others, again and again."""
    seen: Counter[tuple[int, str]] = Counter()
    removed = 0
    while not (end.exists() and seen):
        table = None
        try:
            table = library.dataset(path, random.choice([None, *versions(path)]))
            for _ in range(READS_OF_A_VERSION):
                seen[table.version, examine(table)] += 1
        except (OSError, ValueError) as error:
            if not is_removal(error, table, path):
                raise
            removed += 1
    return {"seen": [(version, rows) for version, rows in seen], "reads": seen.total(), "removed": removed}


def clean(library: Any, path: str, end: Path) -> int:
    removed = 0
    is_last = False
    while not is_last:
        is_last = end.exists()  # Then what the writer left is cleaned up, however seldom this process ran before.
        removed += library.dataset(path).cleanup_old_versions(retain_versions=KEPT_VERSIONS).old_versions
        time.sleep(0.02)
    return removed


def play(role: str, library: str, path: str, count: int) -> Any:
    end = Path(f"{path}.done")
    if role == "write":
        try:
            return write(path, count)
        finally:
            end.touch()
    return (read if role == "read" else clean)(importlib.import_module(library), path, end)
