"""A short campaign, and one of a night; see `campaign.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import make_samples, run_campaign

pytestmark = pytest.mark.system

_SMALL = [("file", "compiled", 1200), ("file", "guarded", 100), ("table", "compiled", 400)]
_LARGE = [("file", "compiled", 500_000), ("file", "checked", 200_000), ("file", "guarded", 20_000)]
_LARGE += [("table", "compiled", 200_000)]


def _run(kind: str, mode: str, cases: int, seed: int, path: Path) -> None:
    make_samples(path, kind, mode)
    report = run_campaign(kind, mode, seed, cases, path)
    assert sum(report.outcomes.values()) >= cases
    assert not report.defects, "\n\n".join(defects[0] for defects in report.kinds().values())


@pytest.mark.parametrize(("kind", "mode", "cases"), _SMALL)
def test_some_damage(kind: str, mode: str, cases: int, tmp_path: Path) -> None:
    _run(kind, mode, cases, 0, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "mode", "cases"), _LARGE)
def test_much_damage(kind: str, mode: str, cases: int, tmp_path: Path) -> None:
    _run(kind, mode, cases, 1, tmp_path)
