"""Writers that are killed: the table is what it was before or after, and the next writer of either library goes on."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pytest

import lance_format
from tests.table.builders import rows
from tests.table.versions.kill_worker import OPERATIONS

REPOSITORY = Path(__file__).parents[3]
FEWEST_CALLS = 12  # A transaction file, a manifest and a hint: at least four calls each.


def state(path: Path) -> tuple[int, list[dict[str, Any]]]:
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    reference.validate()
    assert ours.version == reference.version
    table = ours.to_table()
    assert table == reference.to_table()
    return ours.version, table.to_pylist()


def cases() -> list[Any]:
    """Every operation, with row ids of either kind; some of them are enough for every day."""
    daily = (("append", True), ("update", False), ("compact_files", True))
    return [
        pytest.param(name, stable, marks=[] if (name, stable) in daily else [pytest.mark.nightly])
        for name in OPERATIONS
        for stable in (False, True)
    ]


@pytest.mark.parametrize(("name", "stable"), cases())
def test_a_killed_writer_leaves_the_old_or_the_new_version(tmp_path: Path, name: str, stable: bool) -> None:
    base = tmp_path / "base"
    lance_format.write_dataset(rows(0, 30), base, max_rows_per_file=10, enable_stable_row_ids=stable)
    lance_format.dataset(base).delete("a % 10 = 5")
    old = state(base)
    command = [sys.executable, "-m", "tests.table.versions.kill_worker", name, str(base), str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=True)
    num_copies = int(done.stdout)
    new = state(tmp_path / str(num_copies - 1))
    assert new[0] == old[0] + 1
    assert num_copies > FEWEST_CALLS
    found = []
    for number in range(num_copies):
        path = tmp_path / str(number)
        found.append(state(path))
        first, second = (lance_format, lance) if number % 2 else (lance, lance_format)
        first.dataset(path).delete("true")
        second.dataset(path).update_config({"next": "landed"})
        assert state(path) == (found[-1][0] + 2, [])
    landed = found.index(new)
    assert found == [old] * landed + [new] * (num_copies - landed)
