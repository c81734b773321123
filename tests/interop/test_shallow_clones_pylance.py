"""Shallow clones that one library makes, and the other reads and changes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format

Clone = Callable[[Path, Path, Any], object]


def _ours(source: Path, target: Path, reference: Any) -> None:
    lance_format.dataset(source, storage_options=_allow(source)).shallow_clone(target, reference)


def _theirs(source: Path, target: Path, reference: Any) -> None:
    lance.dataset(str(source)).shallow_clone(str(target), reference)


def _allow(path: Path) -> dict[str, str]:
    return {"allowed_base_paths": str(path.parent)}


def _both(path: Path) -> list[tuple[int, str]]:
    """Return the rows in order, after a comparison of what both libraries read."""
    ours = lance_format.dataset(path, storage_options=_allow(path)).to_table()
    assert ours == lance.dataset(str(path)).to_table()
    return sorted(zip(*ours.to_pydict().values(), strict=True))


@pytest.fixture(params=["addresses", "stable row ids"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "source"
    stable = request.param == "stable row ids"
    rows = pa.table({"a": range(30), "b": [f"name {number}" for number in range(30)]})
    lance.write_dataset(rows, str(path), max_rows_per_file=10, enable_stable_row_ids=stable)
    table = lance.dataset(str(path))
    table.delete("a % 7 = 3")
    table.create_scalar_index("a", "ZONEMAP")
    table.create_branch("feat/x")
    table.tags.create("first", 1)
    lance.dataset(str(path)).checkout_version(("feat/x", None)).delete("a > 20")
    return path


@pytest.mark.parametrize("clone", [_ours, _theirs])
@pytest.mark.parametrize("reference", [1, 2, "first", ("feat/x", None), (None, None)], ids=str)
def test_both_read_a_clone(source: Path, tmp_path: Path, clone: Clone, reference: Any) -> None:
    clone(source, tmp_path / "clone", reference)
    opened = lance_format.dataset(source).checkout_version(reference)
    assert _both(tmp_path / "clone") == sorted(zip(*opened.to_table().to_pydict().values(), strict=True))
    lance.dataset(str(tmp_path / "clone")).validate()
    clone(tmp_path / "clone", tmp_path / "again", (None, None))
    assert _both(tmp_path / "again") == _both(tmp_path / "clone")


@pytest.mark.parametrize("clone", [_ours, _theirs])
@pytest.mark.parametrize("seed", range(4))
def test_both_change_a_clone(source: Path, tmp_path: Path, clone: Clone, seed: int) -> None:
    chance = random.Random(seed)
    before = _both(source)
    target = tmp_path / "clone"
    clone(source, target, (None, None))
    model = dict(before)
    for step in range(8):
        ours = chance.random() < 0.5
        table: Any = (
            lance_format.dataset(target, storage_options=_allow(target)) if ours else lance.dataset(str(target))
        )
        key = chance.randrange(40)
        match chance.randrange(6):
            case 0:
                table.delete(f"a = {key}")
                model.pop(key, None)
            case 1:
                table.update({"b": f"'step {step}'"}, where=f"a >= {key}")
                model = {a: f"step {step}" if a >= key else b for a, b in model.items()}
            case 2:
                rows = pa.table({"a": [key, 100 + step], "b": ["merged", "merged"]})
                table.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(rows)
                model |= {key: "merged", 100 + step: "merged"}
            case 3:
                table.optimize.compact_files(target_rows_per_fragment=chance.choice([15, 100]))
            case 4:
                table.optimize.optimize_indices()
            case _:
                table.insert(pa.table({"a": [200 + step], "b": ["new"]}))
                model[200 + step] = "new"
        assert _both(target) == sorted(model.items())
    assert _both(source) == before
    found = lance_format.dataset(target, storage_options=_allow(target))
    assert found.to_table(filter="a > 25") == lance.dataset(str(target)).to_table(filter="a > 25")
    assert found.verify().problems == ()
