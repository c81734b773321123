"""Extension types and JSON survive all changes of a table: the same changes by both libraries give the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.interop.test_blobs import FIELD


def _uuids(first: int, count: int) -> pa.ExtensionArray:
    values = [number.to_bytes(16, "big") if number % 5 else None for number in range(first, first + count)]
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16)))


def _rows(first: int, count: int) -> pa.Table:
    ids = pa.array(range(first, first + count))
    uuids = _uuids(first, count)
    null = pa.array([number % 7 == 3 for number in range(count)])
    struct = pa.StructArray.from_arrays([uuids, ids], ["u", "n"], mask=null)
    offsets = pa.array([min(2 * number, count) for number in range(count + 1)], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([uuids, ids], ["u", "n"]))
    text = [None if number % 4 == 1 else f'{{"n":{number},"s":["x",null]}}' for number in range(count)]
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(text))
    return pa.table({"id": ids, "u": uuids, "s": struct, "l": lists, "j": json})


def _types(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([[str(batch["u"].type)] * len(batch), batch["u"]], names=["types", "w"])


_types_by_pylance = lance.batch_udf(output_schema=pa.schema({"types": pa.string(), "w": pa.uuid()}))(_types)
_ADDED = pa.schema([pa.field("f", pa.uuid()), pa.field("g", pa.struct([pa.field("u", pa.uuid())]))])

_CHANGES: list[Callable[[Any, bool], object]] = [
    lambda table, _: table.update({"id": "id + 100"}, "id < 3"),
    lambda table, _: table.update({"u": "null"}, "id = 6"),
    lambda table, _: table.delete("id = 4 or id = 17"),
    lambda table, _: table.add_columns({"v": "u", "twice": "id * 2"}),
    lambda table, ours: table.add_columns(_types if ours else _types_by_pylance, read_columns=["u"]),
    lambda table, _: table.add_columns(_ADDED),
    lambda table, _: table.alter_columns({"path": "s.n", "data_type": pa.int32()}, {"path": "s.u", "name": "x"}),
    lambda table, _: table.alter_columns({"path": "u", "name": "renamed"}),
    lambda table, _: table.drop_columns(["s.n", "v"]),
    lambda table, _: table.optimize.compact_files(),
]


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_changes(stable: bool, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("ours", "theirs")]
    for path in paths:
        for mode, first in (("create", 0), ("append", 12)):
            lance.write_dataset(
                _rows(first, 12), path, mode=mode, data_storage_version="2.2", enable_stable_row_ids=stable
            )
    for change in _CHANGES:
        change(lance_format.dataset(paths[0]), True)
        change(lance.dataset(paths[1]), False)
        expected = lance.dataset(paths[1]).to_table()
        for found in (lance_format.dataset(paths[0]), lance.dataset(paths[0]), lance_format.dataset(paths[1])):
            assert found.schema.equals(expected.schema, check_metadata=True)
            assert found.to_table().equals(expected)
            assert found.take([20, 0, 3, 3]).equals(expected.take([20, 0, 3, 3]))
            assert found.take([]).schema.equals(expected.schema)


@pytest.mark.parametrize(
    "columns", [["u"], ["s.u", "id"], {"a": "s.u", "b": "u", "c": "s"}, ["l", "j"], {"d": "j", "e": "id + 1"}]
)
def test_projections(columns: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    lance.write_dataset(_rows(0, 20), path, data_storage_version="2.2")
    for filter in (None, "id > 4 and u is not null", "s.u is null"):
        expected = lance.dataset(path).to_table(columns=columns, filter=filter)
        found = lance_format.dataset(path).to_table(columns=columns, filter=filter)
        assert found.schema.equals(expected.schema)
        assert found.equals(expected)


def test_functions_get_json_as_text(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    lance.write_dataset(_rows(0, 8), path, data_storage_version="2.2")
    ours = lance_format.dataset(path)
    ours.add_columns(lambda batch: pa.record_batch([batch["j"].storage], names=["text"]), read_columns=["j"])
    assert lance.dataset(path).to_table()["text"].to_pylist() == ours.to_table()["j"].to_pylist()


def test_columns_of_other_types_are_of_no_extension(tmp_path: Path) -> None:
    array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8()))
    rows = pa.table({"b": array, "s": pa.StructArray.from_arrays([array, array], ["x", "y"])})
    tables = []
    for module in (lance_format, lance):
        path = str(tmp_path / module.__name__)
        lance.write_dataset(rows, path, data_storage_version="2.2")
        module.dataset(path).alter_columns({"path": "b", "data_type": pa.int32()})
        module.dataset(path).alter_columns({"path": "s.x", "data_type": pa.int16()})
        tables += [lance_format.dataset(path).to_table(), lance.dataset(path).to_table()]
    assert all(table.equals(tables[-1]) for table in tables)
    assert tables[0].schema.types == [pa.int32(), pa.struct([("x", pa.int16()), ("y", pa.bool8())])]


def test_json_is_cast_to_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    lance.write_dataset(_rows(0, 8), path, data_storage_version="2.2")
    with pytest.raises(lance_format.NotSupportedError, match="column 'j' cannot be changed: it is JSON"):
        lance_format.dataset(path).alter_columns({"path": "j", "data_type": pa.string()})


def test_blobs_beside_other_extensions(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    blobs = [b"x" * 100_000, None, b"", b"y"]
    schema = pa.schema([("id", pa.int64()), ("u", pa.uuid()), FIELD])
    rows = pa.table([pa.array(range(4)), _uuids(0, 4), pa.array(blobs, FIELD.type)], schema=schema)
    lance_format.write_dataset(rows, path, data_storage_version="2.2")
    ours = lance_format.dataset(path)
    ours.update({"id": "id + 10"}, "id < 2")
    ours.optimize.compact_files()
    for reader in (ours, lance.dataset(path)):
        found = reader.scanner(blob_handling="all_binary").to_table().sort_by("id")
        assert found["id"].to_pylist() == [2, 3, 10, 11]
        assert found[FIELD.name].to_pylist() == [*blobs[2:], *blobs[:2]]
        assert found["u"].type == pa.uuid()
        assert found["u"].to_pylist() == [rows["u"].to_pylist()[row] for row in (2, 3, 0, 1)]


def test_json_is_not_taken_from_bytes(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    lance.write_dataset(_rows(0, 3).select(["j"]), path, data_storage_version="2.2")
    with pytest.raises(lance_format.SchemaMismatchError, match="column 'j' is large_binary, the table's is JSON"):
        lance_format.write_dataset(pa.table({"j": pa.array([b"{}"], pa.large_binary())}), path, mode="append")
