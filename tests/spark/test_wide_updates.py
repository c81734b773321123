"""UPDATE of many columns: planning takes time for each column, instead of for all of them once more."""

from __future__ import annotations

import re

import pytest

from tests.spark.conftest import Catalog


@pytest.mark.slow
def test_kept_columns_are_found_in_time_by_columns(catalog: Catalog) -> None:
    rules = catalog.spark._jvm.org.apache.spark.sql.catalyst.rules.RuleExecutor  # type: ignore[union-attr]
    nanoseconds = []
    for number in (500, 500, 2000):
        columns = [f"c{column}" for column in range(number)]
        catalog.sql(f"CREATE OR REPLACE TABLE @.wide (id BIGINT, {', '.join(f'{name} INT' for name in columns)})")
        catalog.sql("INSERT INTO @.wide (id) VALUES (1)")
        assigned = ", ".join(f"{name} = {name} + 1" for name in columns[: number // 2])
        rules.resetMetrics()
        catalog.sql(f"EXPLAIN UPDATE @.wide SET {assigned} WHERE id = 1")
        spent = re.search(r"lance\.KeptColumns +\d+ / (\d+)", rules.dumpTimeSpent())
        assert spent is not None
        nanoseconds.append(int(spent[1]))
    assert nanoseconds[2] < 16 * nanoseconds[1]
