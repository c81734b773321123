"""`LanceTable` through Spark Connect, whose server knows nothing of the process of its client."""

from __future__ import annotations

from typing import Any

import lance
import pytest

pytestmark = pytest.mark.system


@pytest.fixture
def found(connect: dict[str, Any]) -> Any:
    """Return the findings of a program with a session of Spark Connect, and with the server in its own process."""
    return connect["LanceTable"]


def test_the_session_is_remote(found: Any) -> None:
    assert found["class"] == "pyspark.sql.connect.session"


def test_changes_of_rows(found: Any) -> None:
    assert found["deleted"] == [3, 0, 0, 4]
    assert found["deleted by column"] == [4, 0, 0, 1]
    assert found["updated"] == [5, 1, 0, 0]
    assert found["merged"] == [6, 2, 1, 1]
    assert found["rows"] == [
        [1, "BIRD 1", 8.0],
        [3, "bird 3", 4.5],
        [4, "bird 4", 6.0],
        [5, "other", 7.5],
        [9, "new", 2.0],
    ]


def test_errors_are_those_of_the_library(found: Any) -> None:
    assert "InvalidInputError: several rows of the source match one row" in found["twice"]
    assert "SchemaMismatchError: column 'id' is bigint" in found["wrong type"]
    assert "SchemaMismatchError: column 'id' holds nulls" in found["null"]
    assert "UNRESOLVED_COLUMN" in found["unknown"]
    assert "LanceTable.forPath works without it" in found["name"]
    assert found["by name"] == 5


def test_a_change_starts_again_after_a_conflict(found: Any) -> None:
    assert found["again"] == [8, 3, 0, 0]


def test_changes_and_versions(found: Any) -> None:
    assert found["changes"] == [
        [4, "delete", 0, "bird 0"],
        [5, "update_postimage", 1, "BIRD 1"],
        [5, "update_preimage", 1, "bird 1"],
    ]
    assert found["history"] == [[8, "update"], [7, "update"]]
    assert found["detail"] == 5
    assert found["restored"] == 9
    assert found["restored rows"] == 10


def test_columns_that_no_text_names_are_read_by_a_second_run(found: Any) -> None:
    assert found["unnamed"] == [10, 1, 0, 0]
    assert found["unnamed rows"] == [3, "bird 3!", 4.5]


def test_pylance_reads_what_is_left(found: Any) -> None:
    theirs = lance.dataset(found["path"])
    theirs.validate()
    assert theirs.count_rows() == 10
