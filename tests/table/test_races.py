"""Writers that race, as real processes."""

import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.table.merge_worker import FIRST_FOUND, KEYS

REPOSITORY = Path(__file__).parents[2]
APPENDS = 10
MERGES = 6


@pytest.mark.parametrize("kinds", [["ours"] * 4, ["ours", "pylance"] * 2], ids=["ours", "ours and pylance"])
def test_every_append_lands_once(tmp_path: Path, kinds: list[str]) -> None:
    path = str(tmp_path / "t")
    lance_format.write_dataset(pa.table({"a": [-1]}), path)
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.table.append_worker", kind, path, str(100 * number), str(APPENDS)],
            cwd=REPOSITORY,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, kind in enumerate(kinds)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors

    table = lance_format.dataset(path)
    expected = [-1] + [100 * number + row for number in range(len(kinds)) for row in range(APPENDS)]
    assert sorted(table.to_table()["a"].to_pylist()) == sorted(expected)
    assert [entry["version"] for entry in table.versions()] == list(range(1, 2 + len(kinds) * APPENDS))
    ids = [fragment.fragment_id for fragment in table.get_fragments()]
    assert ids == list(range(len(ids)))
    reference = lance.dataset(path)
    reference.validate()
    assert reference.to_table() == table.to_table()


def test_of_several_creations_one_wins(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    script = (
        "import sys, pyarrow as pa, lance_format\n"
        "try:\n    lance_format.write_dataset(pa.table({'a': [int(sys.argv[2])]}), sys.argv[1])\n"
        "except lance_format.DatasetExistsError:\n    sys.exit(3)\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", script, path, str(number)]) for number in range(4)]
    results = [worker.wait(timeout=60) for worker in workers]
    assert sorted(results) == [0, 3, 3, 3]
    assert lance_format.dataset(path).to_table()["a"].to_pylist() == [results.index(0)]
    assert len(list(Path(path, "data").iterdir())) == len(list(Path(path, "_transactions").iterdir())) == 1


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_no_merge_is_lost_and_no_key_inserted_twice(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "t")
    schema = pa.schema([(name, pa.int64()) for name in "kabcd"])
    start = pa.table({"k": range(5), "d": [0] * 5} | {name: pa.nulls(5, pa.int64()) for name in "abc"})
    lance_format.write_dataset(start.select(schema.names), path, enable_stable_row_ids=stable)
    works = ["a", "b", "c", "append", "delete", "update"]
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.table.merge_worker", work, path, str(MERGES)],
            cwd=REPOSITORY,
            stderr=subprocess.PIPE,
            text=True,
        )
        for work in works
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=180)
        assert worker.returncode == 0, errors

    table = lance_format.dataset(path)
    assert table.version == 1 + (len(works) + 3) * MERGES
    merged = table.to_table(filter=f"k < {KEYS}").sort_by("k")
    assert merged["k"].to_pylist() == list(range(KEYS))
    for name in "abc":
        assert merged[name].to_pylist() == [MERGES - 1] * KEYS
    assert merged["d"].to_pylist() == [MERGES] * 5 + [None] * (KEYS - 5)
    found = table.to_table(filter=f"k between {FIRST_FOUND} and 999")["k"].to_pylist()
    assert sorted(found) == list(range(FIRST_FOUND, FIRST_FOUND + MERGES))
    if stable:
        ids = table.to_table(columns=["k", "_rowid", "_row_created_at_version"], filter="k < 5").sort_by("k")
        assert ids["_rowid"].to_pylist() == list(range(5))
        assert ids["_row_created_at_version"].to_pylist() == [1] * 5
    reference = lance.dataset(path)
    reference.validate()
    assert reference.to_table() == table.to_table()
