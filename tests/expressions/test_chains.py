"""Chains of comparisons with constants are looked up, and mean what each comparison means."""

import pyarrow as pa
import pytest

from lance_format.expressions import as_expression, filter_mask, nodes

ROWS = pa.record_batch(
    {
        "small": pa.array([0, 1, 2, None, 5, -128], pa.int8()),
        "big": pa.array([0, 1, 2**64 - 1, None, 5, 2**63], pa.uint64()),
        "text": ["a", "b", "", None, "'", "A"],
        "real": [0.0, -0.0, float("nan"), None, 0.1, 5.0],
        "keyed": pa.array(["a", "b", "a", None, "b", "c"]).dictionary_encode(),
    }
)
CHAINS = [
    ("small = 1 OR small = 2", "small IN (1, 2)", True),
    ("1 = 1 AND (small = 1 OR small = 300 OR small = -128)", "small IN (1, 300, -128)", True),
    ("small = 300 OR small = 301", "small IN (300, 301)", True),
    ("small != 1 AND small != 5 AND small != 1", "small NOT IN (1, 5)", True),
    ("NOT (small = 1 OR small = 5)", "small NOT IN (1, 5)", True),
    ("big = 1 OR big = 5 OR big = 18446744073709551615", "big IN (1, 5, 18446744073709551615)", False),
    ("text = 'a' OR small = 5 OR text = '' OR small = 0", "text IN ('a', '') OR small IN (5, 0)", True),
    ("text != 'a' AND text != 'A'", "text NOT IN ('a', 'A')", True),
    ("small = 1 OR small = NULL OR small = 2", "small IN (1, 2, NULL)", False),
    ("real = 0 OR real = 0.1", "real IN (0, 0.1)", False),
    ("keyed = 'a' OR keyed = 'c'", "keyed IN ('a', 'c')", False),
    ("small = 1 OR small = 1.5", "small IN (1, 1.5)", False),
]


@pytest.mark.parametrize(("chain", "among", "is_looked_up"), CHAINS)
def test_they_mean_the_same(chain: str, among: str, is_looked_up: bool) -> None:
    bound = as_expression(chain, ROWS.schema)
    wanted = as_expression(among, ROWS.schema)
    assert filter_mask(bound, ROWS).equals(filter_mask(wanted, ROWS))
    inverse, other = (as_expression(f"NOT ({text})", ROWS.schema) for text in (chain, among))
    assert filter_mask(inverse, ROWS).equals(filter_mask(other, ROWS))
    if is_looked_up:
        assert not [node for node in nodes.walk(bound.expression) if isinstance(node, nodes.Comparison)]


def test_a_column_of_a_chain_has_to_be_there() -> None:
    with pytest.raises(ValueError, match="there is no column 'smal'"):
        as_expression("smal = 1 OR smal = 2", ROWS.schema)


def test_thousands_of_terms_are_one_look_up() -> None:
    bound = as_expression(" OR ".join(f"small = {number}" for number in range(-3000, 3000)), ROWS.schema)
    assert isinstance(bound.expression, nodes.In)
    assert filter_mask(bound, ROWS).to_pylist() == [True, True, True, False, True, True]
