"""Columns that come, go and change: ours does to one copy of a table what pylance does to another."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_format
from lance_format import CorruptFileError, InvalidInputError, LanceError, SchemaMismatchError
from tests.interop.test_scans_pylance import people
from tests.interop.test_table_pylance import assert_same


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    table = lance.write_dataset(
        people(100), str(tmp_path / "t"), max_rows_per_file=30, enable_stable_row_ids=request.param
    )
    table.delete("id % 10 = 3 or id = 0 or id = 29 or id > 95")
    table.insert(people(20))
    return tmp_path / "t"


def tripled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"t": pc.multiply(batch["id"], 3), "l": [[str(n)] for n in batch["id"].to_pylist()]})


tripled_by_pylance = lance.batch_udf(output_schema=pa.schema({"t": pa.int64(), "l": pa.list_(pa.string())}))(tripled)


def located(batch: pa.RecordBatch) -> pa.RecordBatch:
    assert batch.schema.names == ["name", "id", "_rowid", "_rowaddr"]
    return pa.record_batch({"at": batch["_rowaddr"], "sum": pc.add(batch["id"], batch["_rowid"].cast(pa.int64()))})


CHANGES: dict[str, list[Callable[[Any, bool], None]]] = {
    "expressions": [lambda table, _: table.add_columns({"y": "x * 2", "c": "home.city", "n": "name < 'name 3'"})],
    "division by zero in a deleted row": [lambda table, _: table.add_columns({"y": "1 / (id - 97)"})],
    "nulls": [
        lambda table, _: table.add_columns(pa.field("z", pa.list_(pa.int32()))),
        lambda table, _: table.add_columns(pa.schema([pa.field("z2", pa.struct([pa.field("q", pa.string())]))])),
    ],
    "function": [lambda table, ours: table.add_columns(tripled if ours else tripled_by_pylance, read_columns=["id"])],
    "function of row ids": [
        lambda table, _: table.add_columns(located, read_columns=["_rowaddr", "name", "_rowid", "id"]),
        lambda table, _: table.add_columns(
            lambda batch: pa.record_batch({"i": batch["_rowid"]}), read_columns=["_rowid"]
        ),
    ],
    "rows": [
        lambda table, _: table.add_columns(
            pa.table({"r": range(table.count_rows())}).to_reader(max_chunksize=13),
            reader_schema=pa.schema({"r": "int64"}),
        )
    ],
    "table": [lambda table, _: table.add_columns(pa.table({"r": range(table.count_rows())}))],
    "constants": [lambda table, _: table.add_columns({"n": "cast(null as int)"})],
    "drop": [lambda table, _: table.drop_columns(["name", "x"])],
    "drop nested": [lambda table, _: table.drop_columns(["home.floor"])],
    "rename": [
        lambda table, _: table.alter_columns({"path": "name", "name": "alias"}, {"path": "home.city", "name": "town"})
    ],
    "cast": [lambda table, _: table.alter_columns({"path": "id", "data_type": pa.int32()})],
    "cast nested": [lambda table, _: table.alter_columns({"path": "home.floor", "data_type": pa.int16()})],
    "cast and rename": [
        lambda table, _: table.alter_columns({"path": "name", "name": "alias", "data_type": pa.large_string()})
    ],
    "require": [
        lambda table, _: table.alter_columns({"path": "id", "nullable": False}),
        lambda table, _: table.alter_columns({"path": "id", "nullable": True}),
    ],
    "all": [
        lambda table, _: table.add_columns({"y": "x * 2"}),
        lambda table, _: table.drop_columns(["x"]),
        lambda table, _: table.alter_columns({"path": "y", "data_type": pa.float32(), "name": "x"}),
        lambda table, _: table.update({"x": "5"}, "id < 50"),
        lambda table, _: table.add_columns({"y": "x + id"}),
        lambda table, _: table.delete("id % 7 = 0"),
        lambda table, _: table.drop_columns(["home"]),
        lambda table, _: table.add_columns({"home": "id"}),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_changes(path: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(path, tmp_path / "copy")
    ours, reference = lance_format.dataset(path), lance.dataset(str(tmp_path / "copy"))
    for change in CHANGES[name]:
        change(ours, True)
        change(reference, False)
        assert_same(path)
        assert ours.schema == reference.schema
        assert ours.version == reference.version
        key = ours.schema.names[0]
        sort = [(key, "ascending")] if name == "all" else []
        tables = [lance.dataset(str(path)).to_table(), reference.to_table(), ours.to_table()]
        assert tables[2] == tables[0]
        if sort:
            order = [pc.sort_indices(table, sort_keys=sort) for table in tables]
            assert tables[0].take(order[0])[key] == tables[1].take(order[1])[key]
        else:
            assert tables[0] == tables[1]
    if ours.has_stable_row_ids:
        lineage = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
        found = [open_.to_table(columns=lineage) for open_ in (ours, lance.dataset(str(path)))]
        expected = reference.to_table(columns=lineage)
        if name == "all":
            found = [table.sort_by("_rowid") for table in found]
            expected = expected.sort_by("_rowid")
        assert found == [expected, expected]
    # Both go on with the table of the other.
    lance.dataset(str(path)).add_columns({"later": f"{ours.schema.names[0]} is null"})
    assert_same(path)
    lance_format.dataset(tmp_path / "copy").add_columns({"later": f"{ours.schema.names[0]} is null"})
    assert_same(tmp_path / "copy")


def test_functions_get_batches_of_the_size_that_was_asked_for(path: Path) -> None:
    sizes = []

    def count(batch: pa.RecordBatch) -> pa.RecordBatch:
        sizes.append(batch.num_rows)
        return pa.record_batch({"n": batch["id"]})

    lance_format.dataset(path).add_columns(count, batch_size=7)
    assert max(sizes) == 7
    assert_same(path)


def test_a_fragment_gets_the_rows_of_a_table(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "copy")
    for library, place in ((lance_format, path), (lance, tmp_path / "copy")):
        table = library.dataset(place)
        fragments = table.get_fragments()
        merged = [
            fragment.merge_columns(pa.table({"r": [f"{n}" for n in range(fragment.count_rows())]}))
            for fragment in fragments
        ]
        operation = library.LanceOperation.Merge([fragment for fragment, _ in merged], merged[0][1])
        library.LanceDataset.commit(table, operation, read_version=table.version)
    assert lance.dataset(path).to_table() == lance.dataset(tmp_path / "copy").to_table()
    first = lance_format.dataset(path).get_fragments()[0]
    with pytest.raises(SchemaMismatchError, match="more are needed"):
        first.merge_columns(pa.table({"q": [1]}))
    with pytest.raises(SchemaMismatchError, match="more values"):
        first.merge_columns(pa.record_batch({"q": range(1000)}))


def test_functions_of_pylance_and_pandas(path: Path) -> None:
    table = lance_format.dataset(path)

    @lance.batch_udf()
    def as_frame(batch: pa.RecordBatch) -> Any:
        return batch.to_pandas().assign(doubled=lambda frame: frame["id"] * 2)[["doubled"]]

    table.add_columns(as_frame, read_columns=["id"])
    table.add_columns(lambda batch: batch.to_pandas().rename(columns={"id": "same"}), read_columns=["id"])
    found = assert_same(path).to_table(["id", "doubled", "same"])
    assert found["doubled"].to_pylist() == [2 * number for number in found["id"].to_pylist()]
    assert found["same"] == found["id"]


def test_appends_go_on(path: Path) -> None:
    lance_format.dataset(path).add_columns({"y": "x * 2"})
    lance_format.write_dataset(people(5), path, mode="append")
    assert lance_format.dataset(path).to_table(["y"])["y"].null_count == 5
    lance.dataset(str(path)).insert(people(5).append_column("y", pa.array([1.0] * 5)))
    assert_same(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.add_columns({"id": "x"}),
        lambda table: table.add_columns({"y": "nope"}),
        lambda table: table.add_columns({}),
        lambda table: table.add_columns(pa.field("y", pa.int32(), nullable=False)),
        lambda table: table.add_columns(lambda batch: batch.slice(1)),
        lambda table: table.add_columns(lambda _: None),
        lambda table: table.add_columns(iter(pa.table({"r": range(10)}).to_batches())),
        lambda table: table.add_columns(pa.table({"r": range(10)}).to_reader()),
        lambda table: table.add_columns(pa.table({"r": range(1000)}).to_reader()),
        lambda table: table.add_columns({"y": "1 / (id - 5)"}),
        lambda table: table.drop_columns(["nope"]),
        lambda table: table.drop_columns(["home.nope"]),
        lambda table: table.drop_columns([]),
        lambda table: table.drop_columns("id"),
        lambda table: table.drop_columns(table.schema.names),
        lambda table: table.alter_columns(),
        lambda table: table.alter_columns({"path": "nope", "name": "x"}),
        lambda table: table.alter_columns({"path": "id"}),
        lambda table: table.alter_columns({"path": "id", "name": "x"}),
        lambda table: table.alter_columns({"path": "id", "name": ""}),
        lambda table: table.alter_columns({"path": "id", "type": "int"}),
        lambda table: table.alter_columns({"path": "id", "nullable": "no"}),
        lambda table: table.alter_columns({"path": "name", "nullable": False}),
        lambda table: table.alter_columns({"path": "name", "data_type": pa.int32()}),
        lambda table: table.alter_columns({"path": "home", "data_type": pa.int32()}),
    ],
)
def test_nonsense_changes_nothing(path: Path, change: Callable[[Any], None]) -> None:
    table = lance_format.dataset(path)
    before = sorted(path.rglob("*"))
    with pytest.raises((InvalidInputError, SchemaMismatchError)):
        change(table)
    assert sorted(path.rglob("*")) == before


def test_a_column_with_an_index_is_not_cast(path: Path) -> None:
    lance.dataset(str(path)).create_scalar_index("id", "BTREE")
    table = lance_format.dataset(path)
    with pytest.raises(LanceError, match="id_idx"):
        table.alter_columns({"path": "id", "data_type": pa.int32()})
    table.alter_columns({"path": "id", "name": "number"})
    assert lance.dataset(str(path)).to_table(filter="number = 41", columns=["x"]).num_rows == 1
    table.drop_columns(["number"])
    assert lance.dataset(str(path)).describe_indices() == []
    assert_same(path)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
def test_all_columns_of_a_fragment_are_dropped(tmp_path: Path, version: str, *, is_stable: bool) -> None:
    """Rows that were inserted without a column have nothing else left then, and are still there."""
    rows = pa.table({"a": range(10), "b": range(10)})
    table = lance_format.write_dataset(rows, tmp_path, data_storage_version=version, enable_stable_row_ids=is_stable)
    lance_format.write_dataset(rows.select(["a"]).slice(5), tmp_path, mode="append")
    table.checkout_latest()
    table.drop_columns(["a"])
    expected = [*range(10), *[None] * 5]
    for library in (lance_format, lance):
        found = library.dataset(str(tmp_path))
        assert found.to_table()["b"].to_pylist() == expected
        assert found.count_rows("b IS NULL") == 5
        assert found.take([12, 3])["b"].to_pylist() == [None, 3]
    table.update({"b": "7"}, "b IS NULL AND _rowid % 2 = 0" if is_stable else "b IS NULL")
    table.add_columns({"c": "b + 1"})
    table.optimize.compact_files()
    table.validate()
    assert lance.dataset(str(tmp_path)).to_table().equals(table.to_table())
    assert table.count_rows() == 15


def test_pylance_drops_all_columns_of_a_fragment(tmp_path: Path) -> None:
    rows = pa.table({"a": range(10), "b": range(10)})
    table = lance.write_dataset(rows, str(tmp_path))
    table.insert(rows.select(["a"]))
    table.drop_columns(["a"])
    with pytest.raises(pa.ArrowInvalid, match="does not contain any data"):
        lance.dataset(str(tmp_path)).to_table()
    damaged = lance_format.dataset(tmp_path)
    for read in (damaged.to_table, damaged.validate, lambda: damaged.count_rows("b IS NULL")):
        with pytest.raises(CorruptFileError, match=r"fragment 1 of version 3 has no data file; .* restore the version"):
            read()
    lance_format.dataset(tmp_path, version=2).restore()
    assert lance_format.dataset(tmp_path).to_table().equals(lance.dataset(str(tmp_path)).to_table())


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_fields_of_structs_are_cast(tmp_path: Path, version: str) -> None:
    """Structs are columns in format 2.0: a file of one field of theirs would hold them a second time."""
    kind = pa.struct([("deep", pa.struct([("x", pa.int64()), ("words", pa.list_(pa.string()))])), ("y", pa.string())])
    values = pa.array([{"deep": {"x": number, "words": ["a"]}, "y": str(number)} for number in range(10)], kind)
    table = lance_format.write_dataset(
        pa.table({"s": values}), tmp_path, data_storage_version=version, max_rows_per_file=4
    )
    table.delete("s.y = '3'")
    table.create_scalar_index("s.y", "BTREE")
    table.alter_columns({"path": "s.deep.x", "data_type": pa.int16()}, {"path": "s.y", "name": "z"})
    table.validate()
    other = lance.dataset(str(tmp_path))
    other.validate()
    assert table.schema.field("s").type.field("deep").type.field("x").type == pa.int16()
    assert other.to_table().equals(table.to_table())
    assert table.to_table(columns=["s.deep.x"])["s.deep.x"].to_pylist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    for library in (table, other):
        assert library.count_rows("s.z = '7'") == 1


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_casts_write_what_a_fragment_has(tmp_path: Path, version: str) -> None:
    """Rows that lack a column are null as before; format 2.0 could not hold their null structs."""
    kind = pa.struct([("x", pa.int64()), ("y", pa.string())])
    rows = pa.table({"a": range(5), "s": pa.array([{"x": number, "y": "y"} for number in range(5)], kind)})
    table = lance_format.write_dataset(rows, tmp_path, data_storage_version=version)
    table.insert(rows.select(["a"]))
    table.insert(rows.select(["s"]))
    table.alter_columns({"path": "s.x", "data_type": pa.int16()}, {"path": "a", "data_type": pa.float64()})
    table.validate()
    other = lance.dataset(str(tmp_path))
    other.validate()
    assert other.to_table().equals(table.to_table())
    assert table.to_table(columns=["s.x"])["s.x"].to_pylist() == [*range(5), *[None] * 5, *range(5)]
    assert table.to_table()["a"].to_pylist() == [*range(5), *range(5), *[None] * 5]
    assert len(table.get_fragment(1).metadata.field_ids) == 1
    table.alter_columns({"path": "s.x", "data_type": pa.int64()})
    assert table.get_fragment(1).metadata == table.checkout_version(4).get_fragment(1).metadata
