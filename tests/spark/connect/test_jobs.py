"""Planned changes as jobs of Spark Connect."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.system


def test_a_job_does_its_change_or_leaves_no_file(connect: dict[str, Any]) -> None:
    found = connect["jobs"]
    assert found["class"].startswith("pyspark.sql.connect.")
    assert found["tasks"]
    assert (found["updated"], found["rows"]) == (2000, 2000)
    assert found["conflict"].startswith("RetryableCommitConflictError: ")
    assert found["bad"].startswith("DatasetNotFoundError: ")
    assert found["left"] == -1
