"""No damage to a table gives a wrong answer: the campaign of `flips.py`, briefly and, nightly, at length."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.flips import DAMAGES, EXCHANGE, run_campaign

pytestmark = pytest.mark.system

GOOD = {"found", "found by verify", "harmless", "unchanged"}


def _by_result(results: Counter[tuple[str, str]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (_, result), count in results.items():
        found[result] += count
    return found


@pytest.mark.parametrize("how", [*DAMAGES, EXCHANGE])
def test_no_damage_is_a_wrong_answer(tmp_path: Path, how: str) -> None:
    found = _by_result(run_campaign(tmp_path, 30, 0, how, num_rows=300))
    assert set(found) <= GOOD
    assert found["found"] > 15


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("how", "cases"), [("flip", 20_000), ("truncation", 1000), ("zeros", 3000), ("repetition", 3000), (EXCHANGE, 1000)]
)
def test_no_damage_of_many_is_a_wrong_answer(tmp_path: Path, how: str, cases: int) -> None:
    found = _by_result(run_campaign(tmp_path, cases, 1, how))
    assert set(found) <= (GOOD - {"unchanged"} if how == "flip" else GOOD)
