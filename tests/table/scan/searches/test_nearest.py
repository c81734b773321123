"""Arguments and forms of searches for nearest neighbours; `tests/interop` compares their results with pylance."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset, NotSupportedError
from lance_format.errors import InvalidInputError
from lance_format.table.dataset.scanner_builder import ScannerBuilder


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    numbers = np.random.default_rng(1).normal(size=4000).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), 4)
    rows = pa.table({"id": pa.array(range(1000)), "v": vectors, "text": pa.array(["x"] * 1000)})
    return lance_format.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=300)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"column": None}, "nearest has no column"),
    ({"column": 3}, "column of nearest is 3; text is needed"),
    ({"column": "w"}, "there is no column 'w'"),
    ({"column": "id"}, "column 'id' has no vectors, but int64"),
    ({"q": None}, "nearest has no q"),
    ({"q": [1.0, 2.0]}, "q of nearest has 2 numbers, and the vectors of column 'v' have 4"),
    ({"q": []}, "q of nearest has 0 numbers"),
    ({"q": [[1, 2, 3, 4], [1]]}, "not a vector of numbers"),
    ({"q": ["a", "b", "c", "d"]}, "not a vector of numbers"),
    ({"q": ["1", "2", "3", "4"]}, "not a vector of numbers"),
    ({"q": [1j, 2, 3, 4]}, "not a vector of numbers"),
    ({"q": [10**400, 2, 3, 4]}, "not a vector of numbers"),
    ({"q": np.zeros((2, 2, 4))}, "not a vector of numbers"),
    ({"q": "1234"}, "not a vector of numbers"),
    ({"q": np.array(["1", 2, 3, 4], object)}, "not a vector of numbers"),
    ({"q": np.array([1j, 2, 3, 4])}, "not a vector of numbers"),
    ({"q": np.array([np.datetime64(1, "s")] * 4, object)}, "not a vector of numbers"),
    ({"q": [None, 2, 3, 4]}, "not a vector of numbers"),
    ({"k": 0}, "k of nearest is 0; a whole number from 1 on is needed"),
    ({"k": 1.5}, "k of nearest is 1.5"),
    ({"k": True}, "k of nearest is True"),
    ({"nprobes": 0}, "nprobes of nearest is 0"),
    ({"refine_factor": 0}, "refine_factor of nearest is 0"),
    ({"ef": 0}, "ef of nearest is 0"),
    ({"minimum_nprobes": 5, "maximum_nprobes": 4}, "minimum_nprobes is 5, and maximum_nprobes 4"),
    ({"metric": "hamming"}, "metric is 'hamming', which vectors of float32 do not have"),
    ({"metric": "near"}, "metric is 'near'; use one of"),
    ({"metric": 5}, "metric of nearest is 5; text is needed"),
    ({"use_index": "no"}, "use_index is 'no'"),
    ({"distance_range": 3}, "distance_range of nearest is 3"),
    ({"distance_range": (1, "x")}, "has the bound 'x'"),
    ({"distance": 3}, "nearest has an unknown argument 'distance'"),
]


@pytest.mark.parametrize(("search", "message"), WRONG, ids=str)
def test_wrong_arguments(table: LanceDataset, search: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        table.scanner(nearest={"column": "v", "q": [1, 2, 3, 4], **search})


@pytest.mark.parametrize("query", [[1.0, None, 3, 4], [[1.0, 2, 3, 4], None]], ids=str)
def test_nulls_in_queries(table: LanceDataset, query: list[Any]) -> None:
    for form in (query, pa.array(query), np.array(query, object)):
        with pytest.raises(InvalidInputError, match="not a vector of numbers"):
            table.scanner(nearest={"column": "v", "q": form})


def test_forms_of_queries(table: LanceDataset) -> None:
    numbers = [0.5, 1.0, -1.0, 2.0]
    vector = pa.array([numbers], pa.list_(pa.float32(), 4))
    forms = [numbers, tuple(numbers), np.array(numbers), np.array(numbers, "f2"), pa.array(numbers), vector[0]]
    forms += [[Decimal(number) for number in numbers], np.array(numbers, object), np.array(numbers, np.longdouble)]
    expected = table.to_table(nearest={"column": "v", "q": numbers})
    for form in forms:
        assert table.to_table(nearest={"column": "v", "q": form}) == expected
    several = table.to_table(nearest={"column": "v", "q": vector})
    assert several.schema.names[0] == "query_index"
    assert several.drop(["query_index"]) == expected
    builder = ScannerBuilder(table).nearest("v", numbers, 10).prefilter(True).fast_search(False)
    assert builder.disable_scoring_autoprojection(False).to_scanner().to_table() == expected


def test_bounds_beyond_32_bits(table: LanceDataset) -> None:
    nearest = {"column": "v", "q": [1, 2, 3, 4], "k": 5}
    expected = table.to_table(nearest=nearest)
    for bounds in ((-(10**400), 10**400), (-1e300, 1e300)):
        assert table.to_table(nearest={**nearest, "distance_range": bounds}) == expected
    assert table.to_table(nearest={**nearest, "distance_range": (1e300, None)}).num_rows == 0


def test_all_rows_by_tasks(table: LanceDataset) -> None:
    nearest = {"column": "v", "q": [[0.5, 1.0, -1.0, 2.0], [1, 1, 1, 1]], "k": 7}
    scanner = table.scanner(["id"], "id % 3 = 1", nearest=nearest, prefilter=True)
    tasks = scanner.plan_tasks(split_size_bytes=4000)
    assert len(tasks) > 1
    parts = pa.Table.from_batches([batch for task in tasks for batch in scanner.read_task(task)])
    assert parts.num_rows == len(tasks) * 2 * 7
    for query in (0, 1):
        mine = parts.filter(pa.compute.equal(parts["query_index"], query)).sort_by("_distance").slice(0, 7)
        expected = scanner.to_table()
        assert mine == expected.filter(pa.compute.equal(expected["query_index"], query)).combine_chunks()
    for wrong in ({"offset": 1}, {"order_by": ["id"]}, {"filter": "id > 5"}):
        with pytest.raises(InvalidInputError, match="tasks cannot sort, skip or filter"):
            table.scanner(nearest={**nearest}, **wrong).plan_tasks()


def test_batches_and_counts(table: LanceDataset) -> None:
    nearest = {"column": "v", "q": [1, 2, 3, 4], "k": 25}
    scanner = table.scanner(nearest=nearest, batch_size=10)
    assert [batch.num_rows for batch in scanner.to_batches()] == [10, 10, 5]
    assert scanner.count_rows() == 25
    assert scanner.metrics is not None
    assert scanner.metrics.rows_scanned == 1000
    assert table.scanner(nearest=nearest, filter="id < 500", limit=3).count_rows() == 3
    assert scanner.head(4) == scanner.to_table().slice(0, 4)
    with pytest.raises(NotSupportedError, match="no order in the table"):
        next(scanner.matching())


def test_a_search_of_one_fragment(table: LanceDataset) -> None:
    nearest = {"column": "v", "q": [1, 2, 3, 4], "k": 5}
    (_, fragment, *_) = table.get_fragments()
    found = fragment.to_table(["id"], nearest=nearest)["id"].to_pylist()
    assert found == table.to_table(["id"], "id BETWEEN 300 AND 599", nearest=nearest, prefilter=True)["id"].to_pylist()


def test_a_plan_of_a_search(table: LanceDataset) -> None:
    nearest = {"column": "v", "q": [1, 2, 3, 4], "k": 5, "metric": "dot"}
    lines = table.scanner(nearest=nearest, filter="id < 3").explain_plan().splitlines()
    assert lines[:2] == ["LanceNearest: 5 rows by v, dot, without an index", "  filter the rows found: id < 3"]
    assert table.scanner(nearest=nearest).analyze_plan().startswith(lines[0])
    assert table.scanner(nearest=nearest).plan_reads()


def test_deleted_rows_are_not_searched(table: LanceDataset) -> None:
    with pytest.raises(NotSupportedError, match="deleted rows are not searched"):
        table.scanner(nearest={"column": "v", "q": [1, 2, 3, 4]}, include_deleted_rows=True, with_row_id=True)


def test_extension_types(tmp_path: Path) -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(24, dtype=np.float32).reshape(4, 6))
    table = lance_format.write_dataset(pa.table({"id": pa.array(range(4)), "t": tensors}), tmp_path / "t.lance")
    found = table.to_table(["id"], nearest={"column": "t", "q": np.arange(12, 18), "k": 2})
    assert found["id"].to_pylist() == [2, 1]
