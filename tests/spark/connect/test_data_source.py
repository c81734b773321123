"""Spark Connect: queries are planned by a server that knows nothing of the client's process."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.system


@pytest.fixture
def found(connect: dict[str, Any]) -> Any:
    """Return the findings of a program whose server is another process."""
    return connect["data source"]


def test_the_session_is_remote(found: Any) -> None:
    assert found["class"] == "pyspark.sql.connect.session"


def test_reads_return_what_writes_brought(found: Any) -> None:
    assert found["rows"] == [[1, "owl", [0.5, 1.0]], [2, "emu", None], [3, None, []]]
    assert found["schema"] == "struct<id:bigint,name:string,at:array<float>>"
    assert found["counted"] == 6


def test_filters(found: Any) -> None:
    assert found["filtered"] == [2, 12, 13]


def test_options(found: Any) -> None:
    assert found["option"] == [11]
    assert found["old"] == [1, 2, 3]
    assert found["metadata"] == 2
    assert "unknown option 'versoin': did you mean 'version'" in found["option error"]
    assert "there is no Lance table at" in found["missing"]
    assert "SchemaMismatchError: the data does not fit the table" in found["misfit"]
    assert "InvalidInputError: there is no column 'nope'" in found["filter error"]


def test_errors_have_one_line_of_our_traceback(found: Any) -> None:
    for name in ("option error", "missing", "misfit", "filter error"):
        assert found[name].count("/connector/") == 1
        assert "/lance_format/" not in found[name]


def test_save_modes_that_need_the_planner_are_refused(found: Any) -> None:
    for mode in ("error", "ignore"):
        assert "UNSUPPORTED_DATA_SOURCE_SAVE_MODE" in found[mode]
    assert "not there through Spark Connect" in found["named"]


def test_views_and_changes_of_tables(found: Any) -> None:
    assert found["inserted"] == [1, 2, 3, 11, 12, 13, 20]
    assert found["deleted"] == [1, 2, 13, 20]
    assert found["joined"] == 3


def test_registering_says_what_is_not_pushed(found: Any) -> None:
    assert found["registered"] == [
        "Spark Connect plans Lance tables without pushdown: the driver is not in this process"
    ]
    assert found["read after"] == [13, 20]
    assert found["written after"] == [1, 2, 3]
