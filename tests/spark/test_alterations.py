"""ALTER TABLE as Python does it: a statement looks at the columns of the table once, however many it changes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

import lance_format
from connector.catalog.alterations import alter
from lance_format import LanceDataset

NUM_COLUMNS = 60


@pytest.fixture
def schemas(monkeypatch: pytest.MonkeyPatch) -> list[pa.Schema]:
    """Return a list of the schemas that tables are asked for."""
    found: list[pa.Schema] = []
    schema: Any = LanceDataset.schema

    def asked(dataset: LanceDataset) -> pa.Schema:
        found.append(schema.fget(dataset))
        return found[-1]

    monkeypatch.setattr(LanceDataset, "schema", property(asked))
    return found


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("drop", None),
        ("comment", "x"),
        ("nullable", True),
        ("type", t.StructType([t.StructField("a", t.LongType())]).json()),
    ],
)
def test_many_columns_are_changed_by_one_look_at_all(
    spark: SparkSession, path: str, schemas: list[pa.Schema], kind: str, value: object
) -> None:
    counts = []
    for number in (2, NUM_COLUMNS):
        values = {f"c{column}": pa.array([column], pa.int32()) for column in range(NUM_COLUMNS)}
        table = lance_format.write_dataset(pa.table({"id": [1], **values}), f"{path}/{number}")
        schemas.clear()
        alter(table, [{"kind": kind, "name": [f"c{column}"], "value": value} for column in range(number)])
        counts.append(len(schemas))
        assert lance_format.dataset(f"{path}/{number}").version == 2
    assert counts[0] == counts[1]


def test_fields_below_arrays_are_refused_beside_other_columns(path: str) -> None:
    table = lance_format.write_dataset(pa.table({"a": [1], "s": [{"x": [{"y": 1}]}]}), path)
    changes = [{"kind": "drop", "name": name, "value": None} for name in (["a"], ["s", "x", "element", "y"])]
    with pytest.raises(lance_format.NotSupportedError, match="below an array or a map"):
        alter(table, changes)
    assert lance_format.dataset(path).version == 1
