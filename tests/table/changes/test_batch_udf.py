import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import CorruptFileError, InvalidInputError, LanceDataset, SchemaMismatchError, StorageError


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """Five fragments of 20 rows, one of which has a deleted row."""
    made = lance_format.write_dataset({"a": range(100), "b": ["x"] * 100}, tmp_path / "t", max_rows_per_file=20)
    made.delete("a = 33")
    return made


class Doubling:
    """Doubles a column, remembers which rows it was called with, and fails from one of them on."""

    def __init__(self, fails_at: int = 1000) -> None:
        self.fails_at = fails_at
        self.seen: list[int] = []

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = batch["a"].to_pylist()
        if max(rows) >= self.fails_at:
            raise RuntimeError("broken off")
        self.seen += rows
        return pa.record_batch({"c": pc.multiply(batch["a"], 2)})


def break_off(table: LanceDataset, checkpoint: Path, at: int = 50) -> Doubling:
    doubling = Doubling(fails_at=at)
    with pytest.raises(RuntimeError, match="broken off"):
        table.add_columns(lance_format.batch_udf(SCHEMA, checkpoint)(doubling), read_columns=["a"], batch_size=7)
    return doubling


SCHEMA = pa.schema([pa.field("c", pa.int64())])


def test_a_run_that_broke_off_is_continued(tmp_path: Path, table: LanceDataset) -> None:
    checkpoint = tmp_path / "checkpoint"
    files = sorted((tmp_path / "t" / "data").iterdir())
    first = break_off(table, checkpoint)
    assert checkpoint.exists()
    assert sorted((tmp_path / "t" / "data").iterdir()) == files
    second = Doubling()
    table.add_columns(lance_format.batch_udf(SCHEMA, checkpoint)(second), read_columns=["a"], batch_size=7)
    rows = [n for n in range(100) if n != 33]
    assert first.seen + second.seen == rows
    assert table.to_table(columns=["a", "c"]).to_pydict() == {"a": rows, "c": [2 * n for n in rows]}
    assert not checkpoint.exists()


def test_results_of_other_rows_are_computed_again(tmp_path: Path, table: LanceDataset) -> None:
    checkpoint = tmp_path / "checkpoint"
    break_off(table, checkpoint)
    table.delete("a = 5")
    table.update({"a": "a + 500"}, "a = 25")
    second = Doubling()
    table.add_columns(lance_format.batch_udf(SCHEMA, checkpoint)(second), read_columns=["a"], batch_size=7)
    # the third fragment is as it was, and of its rows those before the one that failed were kept
    assert second.seen == [n for n in range(100) if n not in (5, 25, 33, *range(40, 47))] + [525]
    assert table.to_table(columns=["c"])["c"].to_pylist() == [2 * n for n in table.to_table()["a"].to_pylist()]


@pytest.mark.parametrize("change", ["batch_size", "read_columns", "output_schema"])
def test_results_of_other_questions_are_computed_again(tmp_path: Path, table: LanceDataset, change: str) -> None:
    checkpoint = tmp_path / "checkpoint"
    break_off(table, checkpoint)
    options = {
        "batch_size": 7,
        "read_columns": ["a"],
        change: {"batch_size": 5, "read_columns": ["a", "b"]}.get(change),
    }
    schema = SCHEMA if options.pop("output_schema", SCHEMA) else pa.schema([pa.field("c", pa.int64(), nullable=False)])
    second = Doubling()
    table.add_columns(lance_format.batch_udf(schema, checkpoint)(second), **options)
    assert len(second.seen) == 99


def test_functions_may_return_tables(tmp_path: Path, table: LanceDataset) -> None:
    def halve(batch: pa.RecordBatch) -> pa.Table:
        half = batch.num_rows // 2
        return pa.concat_tables([pa.table({"c": batch["a"][:half]}), pa.table({"c": batch["a"][half:]})])

    table.add_columns(lance_format.batch_udf(SCHEMA, tmp_path / "checkpoint")(halve), read_columns=["a"], batch_size=7)
    found = table.to_table()
    assert found["c"].to_pylist() == found["a"].to_pylist()


def test_without_a_checkpoint_it_is_a_function(table: LanceDataset) -> None:
    doubling = lance_format.batch_udf()(Doubling())
    assert doubling(pa.record_batch({"a": [4]}))["c"].to_pylist() == [8]
    table.add_columns(doubling)
    assert table.to_table(filter="a = 7")["c"].to_pylist() == [14]


def test_functions_must_keep_to_their_schema(tmp_path: Path, table: LanceDataset) -> None:
    other = pa.schema([pa.field("d", pa.int64())])
    with pytest.raises(SchemaMismatchError, match="does not match the expected schema"):
        table.add_columns(lance_format.batch_udf(other, tmp_path / "checkpoint")(Doubling()))


def test_files_that_are_no_checkpoints(tmp_path: Path, table: LanceDataset) -> None:
    (tmp_path / "text").write_text("something else, which is long enough to be looked at" * 100)
    doubling = Doubling()
    with pytest.raises(CorruptFileError, match="no checkpoint"):
        table.add_columns(lance_format.batch_udf(SCHEMA, tmp_path / "text")(doubling))
    with pytest.raises(StorageError, match="cannot be used"):
        table.add_columns(lance_format.batch_udf(SCHEMA, tmp_path / "no" / "where")(doubling))
    break_off(table, tmp_path / "checkpoint")
    connection = sqlite3.connect(tmp_path / "checkpoint")
    with connection:
        connection.execute("UPDATE lance_results SET batch = substr(batch, 1, 20)")
    connection.close()
    with pytest.raises(CorruptFileError, match="cannot be read"):
        table.add_columns(lance_format.batch_udf(SCHEMA, tmp_path / "checkpoint")(doubling), ["a"], batch_size=7)
    assert (doubling.seen, table.schema.names) == ([], ["a", "b"])


def test_fragments_take_no_checkpoint(tmp_path: Path, table: LanceDataset) -> None:
    fragment = table.get_fragments()[0]
    with pytest.raises(InvalidInputError, match="checkpoint"):
        fragment.merge_columns(lance_format.batch_udf(SCHEMA, tmp_path / "checkpoint")(Doubling()))
    made, schema = fragment.merge_columns(lance_format.batch_udf(SCHEMA)(Doubling()))
    assert (len(made.files), schema.to_pyarrow().names) == (2, ["a", "b", "c"])
