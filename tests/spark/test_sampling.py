"""Samples that the reader draws: `TABLESAMPLE` and `DataFrame.sample`."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lance_format

_NUM_ROWS = 40_000
_SPREAD = 5 * (_NUM_ROWS * 0.1 * 0.9) ** 0.5


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("sampling") / "t")
    rows = pa.table({"id": range(_NUM_ROWS), "text": [str(number % 1000) for number in range(_NUM_ROWS)]})
    lance_format.write_dataset(rows, path, max_rows_per_file=_NUM_ROWS // 4)
    return path


@pytest.fixture
def frame(planner: SparkSession, table: str) -> DataFrame:
    frame = planner.read.format("lance").load(table)
    frame.createOrReplaceTempView("sampled")
    return frame


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def test_a_sample_is_drawn_by_the_reader(planner: SparkSession, frame: DataFrame) -> None:
    sample = planner.sql("SELECT * FROM sampled TABLESAMPLE (10 PERCENT) REPEATABLE (7)")
    assert "Sample" not in _plan(sample)
    assert 'sample: ["SAMPLE",0.0,0.1,"7",1]' in _plan(sample)
    drawn = _ids(sample)
    assert abs(len(drawn) - _NUM_ROWS * 0.1) < _SPREAD
    assert _ids(frame.sample(fraction=0.1, seed=7)) == drawn
    assert _ids(frame.sample(fraction=0.1, seed=8)) != drawn
    assert set(drawn) < set(_ids(frame.sample(fraction=0.3, seed=7)))


def test_every_scan_has_the_same_rows(planner: SparkSession, table: str, frame: DataFrame) -> None:
    drawn = _ids(frame.sample(fraction=0.1, seed=7))
    for name, value in (("batch_size", "100"), ("split_size_bytes", "10000")):
        assert _ids(planner.read.format("lance").option(name, value).load(table).sample(fraction=0.1, seed=7)) == drawn


def test_filters_and_aggregates_see_the_sample_only(planner: SparkSession, frame: DataFrame) -> None:
    drawn = _ids(frame.sample(fraction=0.1, seed=7))
    sample = "sampled TABLESAMPLE (10 PERCENT) REPEATABLE (7)"
    assert planner.sql(f"SELECT count(*) FROM {sample}").first()[0] == len(drawn)
    assert planner.sql(f"SELECT min(id), max(id) FROM {sample}").first() == (drawn[0], drawn[-1])
    assert planner.sql(f"SELECT sum(id) FROM {sample} WHERE id % 2 = 0").first()[0] == sum(
        x for x in drawn if x % 2 == 0
    )
    assert _ids(planner.sql(f"SELECT id FROM {sample} WHERE text = '7'")) == [x for x in drawn if x % 1000 == 7]
    groups = planner.sql(f"SELECT text, count(*) FROM {sample} GROUP BY text").collect()
    assert sum(count for _, count in groups) == len(drawn)
    assert [row.id for row in planner.sql(f"SELECT id FROM {sample} ORDER BY id LIMIT 5").collect()] == drawn[:5]
    assert planner.sql(f"SELECT id FROM {sample} LIMIT 3 OFFSET 2").first()[0] in drawn
    joined = planner.sql(f"SELECT a.id FROM {sample} a JOIN sampled b ON a.id = b.id AND b.id < 1000")
    assert _ids(joined) == [x for x in drawn if x < 1000]


def test_samples_of_both_sides_of_a_join(planner: SparkSession, frame: DataFrame) -> None:
    first, second = frame.sample(fraction=0.5, seed=1), frame.sample(fraction=0.5, seed=2)
    assert _ids(first.join(second, "id")) == sorted(set(_ids(first)) & set(_ids(second)))
    assert _ids(first.union(second)) == sorted(_ids(first) + _ids(second))


def test_deleted_rows_leave_the_others_in_the_sample(planner: SparkSession, tmp_path: object) -> None:
    path = f"{tmp_path}/t"
    dataset = lance_format.write_dataset(pa.table({"id": range(1000)}), path)
    before = _ids(planner.read.format("lance").load(path).sample(fraction=0.5, seed=3))
    dataset.delete("id % 3 = 0")
    after = _ids(planner.read.format("lance").load(path).sample(fraction=0.5, seed=3))
    assert after == [number for number in before if number % 3]


def test_all_and_nothing(frame: DataFrame) -> None:
    assert frame.sample(fraction=1.0, seed=1).count() == _NUM_ROWS
    assert frame.sample(fraction=0.0, seed=1).count() == 0


def test_what_spark_draws_itself(planner: SparkSession, frame: DataFrame) -> None:
    twice = frame.sample(withReplacement=True, fraction=1.5, seed=1)
    assert "Sample" in _plan(twice)
    assert twice.count() > _NUM_ROWS
    again = frame.sample(fraction=0.5, seed=7).sample(fraction=0.5, seed=7)
    assert "Sample" in _plan(again)
    assert abs(again.count() - _NUM_ROWS / 4) < 2 * _SPREAD
    parts = frame.randomSplit([0.25, 0.75], seed=5)
    assert sorted(_ids(parts[0]) + _ids(parts[1])) == list(range(_NUM_ROWS))


def test_blocks(planner: SparkSession, frame: DataFrame) -> None:
    """A block is 8,192 rows of a fragment. Older versions of Spark do not know the word."""
    if planner.version < "4.3":
        pytest.skip("this version of Spark does not know TABLESAMPLE SYSTEM")

    def block_of(number: int) -> tuple[int, int]:
        return number // 10_000, number % 10_000 // 8192

    sample = planner.sql("SELECT id FROM sampled TABLESAMPLE SYSTEM (50 PERCENT)")
    assert "Sample" not in _plan(sample)
    drawn = _ids(sample)
    blocks = set(map(block_of, drawn))
    assert drawn == [number for number in range(_NUM_ROWS) if block_of(number) in blocks]
