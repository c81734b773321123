"""Decimals whose digits are counted by their words."""

from __future__ import annotations

import numpy as np
import pytest

from lance_format.kernels.columns.decimals import are_within

MOST = 10**18 - 1


@pytest.mark.parametrize("number", [0, 1, -1, MOST, -MOST])
def test_numbers_within(number: int) -> None:
    assert are_within(_words(5, number, -5), MOST)


@pytest.mark.parametrize("number", [MOST + 1, -MOST - 1, 2**63, -(2**63) - 1, 2**64, 2**64 + 5, -(2**64), 2**126])
def test_numbers_beyond(number: int) -> None:
    assert not are_within(_words(5, number, -5), MOST)


def _words(*numbers: int) -> np.ndarray:
    return np.frombuffer(b"".join(number.to_bytes(16, "little", signed=True) for number in numbers), "<i8")
