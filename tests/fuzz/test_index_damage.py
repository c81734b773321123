"""What a search notices of damage to an index of pylance, `verify` notices too, and a repair mends it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import lance_format
from tests.fuzz.index_damage import KINDS, Damages, is_noticed, run_campaign


@pytest.mark.parametrize(
    "cases",
    [pytest.param(24, marks=pytest.mark.slow), pytest.param(1000, marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("name", KINDS)
def test_verify_notices_what_a_search_notices(tmp_path: Path, name: str, cases: int) -> None:
    found = run_campaign(tmp_path, name, cases, 0)
    assert set(found) <= {"both", "verify", "neither"}
    assert found["both"]


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_repair_mends_an_index(tmp_path: Path, name: str) -> None:
    kind, path = KINDS[name], tmp_path / "t"
    kind.make(path)
    expected = [sorted(search(lance_format.dataset(path))["id"].to_pylist()) for search in kind.searches]
    damages, rng = Damages(path, kind), random.Random(name)
    while not is_noticed(path, kind.searches):
        damages.restore()
        damages.apply(rng)
    dataset = lance_format.dataset(path)
    report = dataset.verify(repair=True)
    assert report.problems
    assert {found.repair for found in report.problems} == {"rebuild the index"}
    assert report.rebuilt_indices == (f"{kind.column}_idx",)
    dataset = lance_format.dataset(path)
    assert dataset.verify().problems == ()
    if kind.column != "v":
        assert [sorted(search(dataset)["id"].to_pylist()) for search in kind.searches] == expected
