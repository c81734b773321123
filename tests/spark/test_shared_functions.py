"""Aggregate functions that follow from others."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.read.shared_functions import Function, SharedFunctions
from lance_format.aggregation import Aggregate, PartialAggregation
from lance_format.expressions import Expression, bind, evaluate, nodes

SCHEMA = pa.schema([("key", pa.int32()), ("tiny", pa.int8()), ("small", pa.int16()), ("many", pa.int32())])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.integers(0, 2),
            "tiny": st.none() | st.integers(-128, 127),
            "small": st.none() | st.integers(-(2**15), 2**15 - 1),
            "many": st.none() | st.integers(-1000, 1000),
        }
    ),
    max_size=12,
)


def widened(name: str) -> Expression:
    return nodes.Cast(nodes.Column((name,)), pa.int32())


def constant(number: int | None) -> Expression:
    return nodes.Literal(pa.scalar(number, pa.int32()))


def shifted(name: str, number: int, *, operator: str = "+", is_mirrored: bool = False) -> Expression:
    operands = (constant(number), widened(name)) if is_mirrored else (widened(name), constant(number))
    return nodes.CheckedArithmetic("-" if operator == "-" else "+", *operands, pa.int32())


def function(name: str, *values: Expression) -> Function:
    return name, tuple(bind(value, SCHEMA) for value in values)


SUMS = st.builds(
    shifted,
    st.sampled_from(["tiny", "small", "many"]),
    st.sampled_from([-3, 0, 1, 2, 100_000]),
    operator=st.sampled_from(["+", "-"]),
    is_mirrored=st.booleans(),
)
FUNCTIONS = st.lists(
    st.builds(function, st.just("sum"), SUMS)
    | st.builds(function, st.sampled_from(["sum", "count", "min"]), st.sampled_from([widened("tiny"), widened("many")]))
    | st.just(("count_all", ())),
    min_size=1,
    max_size=7,
)


def aggregate(functions: Sequence[Function], rows: pa.RecordBatch) -> list[pa.Array]:
    """Return the values of functions, in the order of the groups."""
    kinds = [Aggregate(str(n), name, values[0].type if values else None) for n, (name, values) in enumerate(functions)]
    aggregation = PartialAggregation(pa.schema([SCHEMA.field("key")]), kinds)
    arguments = [evaluate(values[0], rows) if values else None for _, values in functions]
    found = list(aggregation.add([rows.column("key")], arguments, rows.num_rows)) + list(aggregation.finish())
    table = pa.Table.from_batches(found, aggregation.schema).combine_chunks()
    order = pc.sort_indices(table.column(0))
    return [column.combine_chunks() for column in table.take(order).columns[1:]]


@given(FUNCTIONS, ROWS)
def test_values_are_those_of_all_functions(functions: list[Function], rows: list[dict[str, int | None]]) -> None:
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    shared = SharedFunctions(functions, SCHEMA)
    assert shared.complete(aggregate(shared.computed, batch)) == aggregate(functions, batch)


def test_sums_that_differ_by_constants_are_one() -> None:
    functions = [function("sum", shifted("small", number)) for number in range(90)]
    assert [name for name, _ in SharedFunctions(functions, SCHEMA).computed] == ["sum", "count"]


def test_equal_functions_are_computed_once() -> None:
    functions = [function("sum", widened("many")), function("min", widened("many")), function("sum", widened("many"))]
    assert [name for name, _ in SharedFunctions(functions, SCHEMA).computed] == ["sum", "min"]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([shifted("many", 1), shifted("many", 2)], id="they may exceed their type"),
        pytest.param([shifted("small", 2**31 - 1), shifted("small", 1)], id="one may exceed its type"),
        pytest.param([shifted("small", 1), shifted("tiny", 2)], id="two columns"),
        pytest.param([shifted("small", 1, operator="-", is_mirrored=True), widened("small")], id="a negated column"),
        pytest.param(
            [nodes.CheckedArithmetic("+", widened("tiny"), constant(None), pa.int32()), widened("tiny")], id="null"
        ),
    ],
)
def test_other_sums_are_computed(values: list[Expression]) -> None:
    functions = [function("sum", value) for value in values]
    assert SharedFunctions(functions, SCHEMA).computed == functions
