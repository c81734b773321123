"""Numbers that are drawn by hashing: uniform, and independent for each seed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError
from lance_format.expressions.functions.sampling import hash_fraction

_NUMBERS = pa.array(np.arange(100_000))


def _fractions(seed: int, run: int = 1) -> np.ndarray:
    return np.asarray(hash_fraction(_NUMBERS, pa.scalar(seed), pa.scalar(run)))


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_fractions_are_uniform(seed: int) -> None:
    fractions = _fractions(seed)
    assert fractions.min() >= 0
    assert fractions.max() < 1
    counts = np.histogram(fractions, bins=100, range=(0, 1))[0]
    assert abs(counts - 1000).max() < 5 * np.sqrt(1000)
    assert abs(np.corrcoef(fractions[1:], fractions[:-1])[0, 1]) < 0.02


@pytest.mark.parametrize("other", [1, 2, -1, 1 << 32])
def test_seeds_are_independent(other: int) -> None:
    drawn, again = _fractions(0) < 0.1, _fractions(other) < 0.1
    assert 800 < np.count_nonzero(drawn & again) < 1200
    for shift in (1, 2, 64):
        assert 800 < np.count_nonzero(drawn[shift:] & again[:-shift]) < 1200


def test_runs_get_one_number() -> None:
    fractions = _fractions(3, 1000)
    assert (fractions.reshape(-1, 1000) == fractions[::1000, None]).all()
    assert len(np.unique(fractions)) == 100


def test_nulls_and_slices() -> None:
    values = pa.array([None, 5, None, 6, 5], pa.int32())[1:]
    found = hash_fraction(values.cast(pa.int64()), pa.scalar(1)).to_pylist()
    assert found[1] is None
    assert found[0] == found[3] != found[2]


def test_in_a_filter(tmp_path: object) -> None:
    lance_format.write_dataset(pa.table({"x": np.arange(10_000)}), f"{tmp_path}/t", max_rows_per_file=1000)
    dataset = lance_format.dataset(f"{tmp_path}/t")
    drawn = dataset.to_table(filter="hash_fraction(x, 7) < 0.1")["x"].to_numpy()
    assert drawn.tolist() == np.flatnonzero(_fractions(7)[:10_000] < 0.1).tolist()
    of_rows = dataset.to_table(filter="hash_fraction(_rowaddr, 7) < 0.1")["x"].to_numpy()
    assert 800 < len(of_rows) < 1200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hash_fraction(x, 1.5) < 1", "the seed of hash_fraction must be an integer of 64 bits, and is 1.5"),
        ("hash_fraction(x, NULL) < 1", "the seed of hash_fraction must be an integer"),
        ("hash_fraction(x, 1, 0) < 1", "the length of runs of hash_fraction must be 1 or more, and is 0"),
        ("hash_fraction(x) < 1", "hash_fraction takes 2 to 3 arguments, and is given 1"),
        ("hash_fraction(x, x) < 1", "hash_fraction needs a constant"),
        ("hash_fraction('a', 1) < 1", "hash_fraction needs a integer"),
    ],
)
def test_bad_arguments(tmp_path: object, text: str, message: str) -> None:
    lance_format.write_dataset(pa.table({"x": [1, 2]}), f"{tmp_path}/t")
    with pytest.raises(InvalidInputError, match=message):
        lance_format.dataset(f"{tmp_path}/t").to_table(filter=text)
