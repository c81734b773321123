"""Names of columns: all that are written without being asked for are read by pylance, and odd ones can be cured."""

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, LanceDataset, LanceOperation
from lance_format.table.format.column_names import RESERVED_COLUMNS
from lance_format.table.fragments.row_columns import ROW_COLUMNS

PORTABLE = [
    "a b",
    " a",
    "a'b",
    'a"b',
    "a/b",
    "a[0]",
    "a\nb",
    "a=b",
    "SELECT",
    "a\\b",
    "$",
    "é",
    "日本",
    "0",
    "_",
    "True",
]
UNPORTABLE = ["a.b", ".", "s.x", ".a", "a.", "a`b", "`", "``", "`a`", ""]
HOW = "choose another one, such as|name it"


def rows(name: str) -> pa.Table:
    return pa.table(
        {"id": range(3), name: [1, 2, 3], "s": [{"x": 1, "y.z": number, "`": number} for number in range(3)]}
    )


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def check_reads(table: "LanceDataset | lance.LanceDataset", expected: pa.Table, name: str) -> None:
    assert table.to_table() == expected
    assert table.to_table(columns=[name]) == expected.select([name])
    assert table.to_table(columns={"v": quoted(name)}) == expected.select([name]).rename_columns(["v"])
    assert table.to_table(filter=f"{quoted(name)} > 1") == expected.slice(1)
    assert table.to_table(filter="id > 1") == expected.slice(2)
    assert table.take([2]) == expected.slice(2)


@pytest.mark.parametrize("name", PORTABLE)
def test_names_that_both_read(tmp_path: Path, name: str) -> None:
    for number, write in enumerate((lance_format.write_dataset, lance.write_dataset)):
        path = str(tmp_path / str(number))
        write(rows(name), path)
        check_reads(lance_format.dataset(path), rows(name), name)
        check_reads(lance.dataset(path), rows(name), name)


@pytest.mark.parametrize("name", UNPORTABLE)
def test_what_pylance_cannot_read_is_written_on_request_alone(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "table")
    with pytest.raises(InvalidInputError, match=f"({HOW}).*allow_unportable_names"):
        lance_format.write_dataset(rows(name), path)
    assert not Path(path).exists()
    table = lance_format.write_dataset(rows(name), path, allow_unportable_names=True)
    if name:
        check_reads(table, rows(name), name)
    with pytest.raises((ValueError, OSError), match="No field named"):
        lance.dataset(path).to_table()


CHANGES: dict[str, Callable[[LanceDataset, str], object]] = {
    "append": lambda table, name: lance_format.write_dataset(rows(name), table, mode="append", merge_schema=True),
    "overwrite": lambda table, name: lance_format.write_dataset(rows(name), table, mode="overwrite"),
    "add by SQL": lambda table, name: table.add_columns({name: "id + 1"}),
    "add nulls": lambda table, name: table.add_columns(pa.field(name, pa.int64())),
    "merge": lambda table, name: table.merge(rows(name).select(["id", name]), "id"),
    "rename": lambda table, name: table.alter_columns({"path": "plain", "name": name}),
    "row delta": lambda table, name: table.with_new_columns(pa.schema([(name, pa.int64())])),
    "raw": lambda _, name: LanceOperation.Overwrite(rows(name).schema, []),
}


@pytest.mark.parametrize("name", [*UNPORTABLE, "a\0b", *RESERVED_COLUMNS])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_tables_gain_no_such_columns(tmp_path: Path, change: Callable[[LanceDataset, str], object], name: str) -> None:
    table = lance_format.write_dataset(rows("plain"), str(tmp_path / "table"))
    with pytest.raises(InvalidInputError, match=r"(choose another one|name it|needs a name|reserved)"):
        change(table, name)
    assert lance_format.dataset(table.uri).version == 1
    assert lance.dataset(table.uri).to_table() == rows("plain")


def test_all_metadata_columns_but_that_of_spark_are_reserved() -> None:
    assert {*ROW_COLUMNS} - {*RESERVED_COLUMNS} == {"_fragid"}


@pytest.mark.parametrize("data", [{"a\0b": [1]}, {"s": [{"a\0b": 1}]}, {"s": [[{"t": {"\0": 1}}]]}])
def test_nul_characters_are_refused_at_any_depth(tmp_path: Path, data: dict[str, object]) -> None:
    path = str(tmp_path / "table")
    with pytest.raises(InvalidInputError, match=r"a NUL character.*such as '(a_b|_)'"):
        lance_format.write_dataset(data, path)
    table = lance_format.write_dataset(data, path, allow_unportable_names=True)
    assert table.to_table().to_pydict() == data


@pytest.mark.parametrize("name", ["a.b", "s.x", "a`b", "``"])
def test_tables_with_such_columns_can_be_used_and_cured(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "table")
    if "." in name:
        lance_format.write_dataset(rows(name), path, allow_unportable_names=True)
    else:
        lance.write_dataset(rows(name), path)
    check_reads(lance_format.dataset(path), rows(name), name)
    table = lance_format.write_dataset(rows(name), path, mode="overwrite")
    lance_format.write_dataset(rows(name), path, mode="append")
    table = lance_format.dataset(path)
    table.delete(f"{quoted(name)} = 1")
    table.update({name: f"{quoted(name)} + 10"}, where=f"{quoted(name)} = 2")
    table.merge_insert(name).when_matched_delete().execute(rows(name).slice(2))
    table.add_columns({"more": f"{quoted(name)} * 2"})
    table.alter_columns({"path": name, "nullable": False})
    table.alter_columns({"path": name, "data_type": pa.int32()})
    table.optimize.compact_files()
    expected = {"id": [1, 1], name: [12, 12], "s": rows(name)["s"].to_pylist()[1:2] * 2, "more": [24, 24]}
    assert table.to_table().to_pydict() == expected
    with pytest.raises((ValueError, OSError)):
        lance.dataset(path).to_table()
    table.alter_columns({"path": name, "name": "cured"})
    assert lance.dataset(path).to_table().to_pydict() == {key.replace(name, "cured"): expected[key] for key in expected}
    table.checkout_version(table.version - 1).restore()
    table = lance_format.dataset(path)
    assert table.schema.names == list(expected)
    table.drop_columns([name])
    del expected[name]
    assert lance.dataset(path).to_table().to_pydict() == expected


def test_paths_of_fields_may_be_quoted(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    table = lance_format.write_dataset(rows("a b"), path)
    table.alter_columns({"path": "s.`y.z`", "name": "z.y"}, {"path": "s.````", "nullable": False})
    table.alter_columns({"path": "a b", "nullable": False})
    expected = {"x": 1, "z.y": 2, "`": 2}
    assert table.to_table()["s"][2].as_py() == lance.dataset(path).to_table()["s"][2].as_py() == expected
    table.drop_columns(["s.`z.y`"])
    assert lance.dataset(path).to_table()["s"][2].as_py() == {"x": 1, "`": 2}


def test_fields_without_names_are_found_and_renamed(tmp_path: Path) -> None:
    """Such tables could not rename any column, nor name a field of a struct that has no name."""
    structs = pa.array([{"": 1, "y": 2}, None])
    table = lance_format.write_dataset(
        pa.table({"": [1, 2], "b": [3, 4], "s": structs}), tmp_path, allow_unportable_names=True
    )
    table.create_scalar_index("s.``", "BTREE")
    assert table.to_table(["s.``"], filter="s.`` = 1").num_rows == 1
    with pytest.raises(InvalidInputError, match="a column has no name"):
        table.alter_columns({"path": "b", "name": ""})
    table.alter_columns({"path": "b", "name": "c"})
    table.alter_columns({"path": "s.``", "name": "x"}, {"path": "``", "name": "a"})
    expected = pa.table({"a": [1, 2], "c": [3, 4], "s": pa.array([{"x": 1, "y": 2}, None])})
    assert lance.dataset(str(tmp_path)).to_table() == table.to_table() == expected
