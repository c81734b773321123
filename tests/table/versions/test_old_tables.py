"""Tables of early releases: their manifests open, and their data files are read."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError, DatasetNotFoundError, NotSupportedError, StorageError
from lance_format.proto import table_pb2
from tests.table.builders import changed_manifest, rows

TABLES = Path(__file__).parents[2] / "data" / "old_tables"


def table_names() -> list[str]:
    return sorted(str(path.parent.relative_to(TABLES)) for path in TABLES.glob("*/*/_versions"))


@pytest.mark.parametrize("name", table_names())
def test_manifests_open_as_in_pylance(name: str) -> None:
    ours, reference = lance_format.dataset(TABLES / name), lance.dataset(str(TABLES / name))
    assert ours.schema == reference.schema
    assert (ours.version, ours.latest_version) == (reference.version, reference.latest_version)
    assert [entry["version"] for entry in ours.versions()] == [entry["version"] for entry in reference.versions()]
    assert ours.data_storage_version == reference.data_storage_version
    assert [f.fragment_id for f in ours.get_fragments()] == [f.fragment_id for f in reference.get_fragments()]


def test_data_files_that_are_gone_are_a_clear_error() -> None:
    table = lance_format.dataset(TABLES / "v0.5.9/dataset_with_fragments")
    with pytest.raises(DatasetNotFoundError, match=table.get_fragments()[0].data_files()[0].path):
        table.to_table()


@pytest.mark.parametrize("name", ["v0.5.9/no_fragments", "v0.15.0/v1_no_files.lance", "v0.15.0/v2_no_files.lance"])
def test_tables_without_rows_are_read(name: str) -> None:
    table = lance_format.dataset(TABLES / name)
    assert table.count_rows() == table.to_table().num_rows == 0


@pytest.mark.parametrize(
    "name",
    [
        "v0.7.5/with_deletions",
        "v0.13.0/string_encoding.lance",
        "v0.15.0/v1_with_files.lance",
        "v0.15.0/v2_with_files.lance",
        "v7.1.0/sizes_without_footers.lance",
    ],
)
def test_rows_are_read_as_by_pylance(name: str) -> None:
    ours, reference = lance_format.dataset(TABLES / name), lance.dataset(str(TABLES / name))
    assert ours.to_table() == reference.to_table()
    assert ours.take([2, 0]) == reference.take([2, 0])


def _bytes_to_strings(message: table_pb2.Manifest) -> None:
    """Declare the lists of bytes of a table as text, which has no field for the bytes."""
    [fragment] = message.fragments
    [file] = fragment.files
    columns = dict(zip(file.fields, file.column_indices, strict=True))
    kept = [field for field in message.fields if field.logical_type != "uint8"]
    for field in kept:
        if {other.parent_id for other in message.fields if other.logical_type == "uint8"} >= {field.id}:
            field.logical_type = field.logical_type.replace("large_list", "large_string").replace("list", "string")
    del message.fields[:]
    message.fields.extend(kept)
    file.fields[:] = [field.id for field in kept]
    file.column_indices[:] = [columns[field.id] for field in kept]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
@pytest.mark.parametrize("wrap", ["plain", "struct", "list"])
def test_byte_strings_are_lists_of_bytes_in_the_first_files_of_2_0(
    tmp_path: Path, kind: Callable[[pa.Field], pa.DataType], wrap: str
) -> None:
    random = np.random.default_rng(5)
    texts = [None if n % 7 == 3 else "é" * int(random.integers(0, 9)) + str(n) * (n % 3) for n in range(3000)]
    lists = pa.array(
        [None if text is None else list(text.encode()) for text in texts], kind(pa.field("item", pa.uint8(), False))
    )
    column: pa.Array = lists
    if wrap == "struct":
        column = pa.StructArray.from_arrays([lists, pa.array(range(3000))], ["text", "number"])
    if wrap == "list":
        column = pa.ListArray.from_arrays(pa.array(range(0, 3001, 3), pa.int32()), lists)
    path = tmp_path / "t"
    table = pa.table({"id": range(len(column)), "c": column, "last": range(len(column))})
    lance.write_dataset(table, str(path), data_storage_version="2.0")
    _change_latest(path, _bytes_to_strings)
    ours, theirs = lance_format.dataset(path), lance.dataset(str(path))
    found = ours.to_table()
    flat = found["c"].combine_chunks()
    strings = flat.field("text") if wrap == "struct" else flat.values if wrap == "list" else flat
    assert strings.to_pylist() == texts
    assert strings.type == (pa.string() if kind is pa.list_ else pa.large_string())
    assert found == theirs.to_table()
    numbers = random.integers(0, len(column), 50).tolist()
    assert ours.take(numbers) == found.take(numbers)
    assert ours.to_table(filter="id % 5 = 2") == found.filter(pa.compute.equal(found["id"].to_numpy() % 5, 2))


def test_rows_are_counted_where_the_manifest_tells(tmp_path: Path) -> None:
    for name in ("v0.15.0/v1_with_files.lance", "v0.15.0/v2_with_files.lance"):
        assert lance_format.dataset(TABLES / name).count_rows() == 3


@pytest.mark.parametrize("name", ["v0.32.1/text_index.lance", "v2.0.1/text_index.lance"])
def test_text_indices_are_searched_as_by_pylance(name: str) -> None:
    ours, reference = lance_format.dataset(TABLES / name), lance.dataset(str(TABLES / name))
    for words in ("owl", "emu wren", "the"):
        query = {"full_text_query": words, "columns": ["id", "_score"]}
        expected = reference.to_table(**query)
        assert sorted(ours.to_table(**query).to_pylist(), key=str) == sorted(expected.to_pylist(), key=str)
    ours.verify()


def test_rows_of_a_text_index_of_the_first_form_are_searched_without_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    shutil.copytree(TABLES / "v0.26.1/text_index.lance", path)
    table = lance_format.dataset(path)
    for _ in range(2):  # Texts of other rows are indexed by the same rules, which stem no tokens.
        for word, found in (("owl", [1, 5]), ("owls", [0])):
            assert sorted(table.to_table(full_text_query=word)["id"].to_pylist()) == found
        table.verify()
        table.insert({"id": [6], "text": ["emu"]})
        table.optimize.optimize_indices()
    table.create_scalar_index("text", "INVERTED", replace=True)
    for opened in (table, lance.dataset(str(path))):
        assert sorted(opened.to_table(full_text_query="owl")["id"].to_pylist()) == [0, 1, 5]


def test_an_overwrite_takes_an_old_table_over(tmp_path: Path) -> None:
    shutil.copytree(TABLES / "v0.5.9/dataset_with_fragments", tmp_path / "t")
    with pytest.raises(NotSupportedError, match=r"0\.1"):
        lance_format.write_dataset(rows(0, 5), tmp_path / "t", mode="overwrite")
    ours = lance_format.write_dataset(rows(0, 5), tmp_path / "t", mode="overwrite", data_storage_version="2.2")
    assert (ours.version, ours.get_fragments()[0].fragment_id) == (4, 3)
    assert (tmp_path / "t/_versions/4.manifest").exists()
    reference = lance.dataset(str(tmp_path / "t"))
    reference.validate()
    assert reference.to_table() == ours.to_table() == rows(0, 5)


def test_an_append_to_a_table_of_the_first_file_format_is_refused(tmp_path: Path) -> None:
    shutil.copytree(TABLES / "v0.15.0/v1_with_files.lance", tmp_path / "t")
    table = lance_format.dataset(tmp_path / "t")
    with pytest.raises(lance_format.InvalidInputError, match=r"cannot be added.*compact_files"):
        lance_format.write_dataset(
            table.schema.empty_table(), tmp_path / "t", mode="append", data_storage_version="2.2"
        )


@pytest.mark.parametrize(
    ("name", "indices"),
    [
        ("v0.20.0/old_btree_bitmap_indices.lance", ["bitmap_idx", "btree_idx"]),
        ("v0.36.0/btree_in_index_pkg.lance", ["x_idx"]),
    ],
)
def test_tables_with_indices_of_other_kinds_are_read_and_appended_to(
    name: str, indices: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "t"
    shutil.copytree(TABLES / name, path)
    ours, reference = lance_format.dataset(path), lance.dataset(str(path))
    before = reference.to_table()
    assert ours.to_table() == before
    assert [index["name"] for index in ours.list_indices()] == indices
    ours.insert(before)
    column = before.schema.names[0]
    value = before[column][0].as_py()
    expected = 2 * before[column].to_pylist().count(value)
    for found in (lance_format.dataset(path), lance.dataset(str(path))):
        assert found.to_table() == pa.concat_tables([before, before])
        assert found.count_rows(f"{column} = {value}") == expected


@pytest.mark.parametrize(
    "name", ["v0.7.5/with_deletions", "v0.15.0/v1_with_files.lance", "v7.1.0/sizes_without_footers.lance"]
)
def test_tables_of_the_first_file_format_change(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    shutil.copytree(TABLES / name, path)
    table = lance_format.dataset(path)
    column = table.schema.names[0]
    before = table.to_table()
    table.update({column: f"{column} + 1000"}, f"{column} = 1")
    table.add_columns({"twice": f"{column} * 2"})
    assert lance_format.dataset(path).to_table() == lance.dataset(str(path)).to_table()
    table.optimize.compact_files(data_storage_version="2.2")
    table.insert(table.to_table())
    reference = lance.dataset(str(path))
    reference.validate()
    assert reference.data_storage_version == "2.2"
    assert table.to_table() == reference.to_table()
    values = [value + 1000 if value == 1 else value for value in before[column].to_pylist()]
    assert sorted(reference.to_table()[column].to_pylist()) == sorted(values * 2)


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1"])
@pytest.mark.parametrize("flags", [0, 4])
def test_files_tell_the_version_of_a_table_that_names_none(version: str, flags: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance.write_dataset(rows(0, 9), str(path), data_storage_version=version)

    def forget(message: table_pb2.Manifest) -> None:
        message.ClearField("data_format")
        message.reader_feature_flags = message.writer_feature_flags = flags

    _change_latest(path, forget)
    ours, reference = lance_format.dataset(path), lance.dataset(str(path))
    assert ours.data_storage_version == reference.data_storage_version == version.replace("legacy", "0.1")
    assert ours.to_table() == reference.to_table() == rows(0, 9)


def _change_latest(path: Path, change: Callable[[table_pb2.Manifest], object]) -> None:
    latest = min(path.glob("_versions/*.manifest"))  # Of names that count down.
    latest.write_bytes(changed_manifest(latest.read_bytes(), change))


def _three_fragments(path: Path) -> None:
    for first in (0, 10, 20):
        lance_format.write_dataset(rows(first, first + 10), path, mode="append")


def test_fragments_that_share_an_id_are_read_as_by_pylance(tmp_path: Path) -> None:
    path = tmp_path / "t"
    _three_fragments(path)
    lance_format.dataset(path).create_scalar_index("a", "ZONEMAP")
    _change_latest(path, lambda message: setattr(message.fragments[2], "id", 1))
    ours, reference = lance_format.dataset(path), lance.dataset(str(path))
    assert [fragment.fragment_id for fragment in ours.get_fragments()] == [0, 1, 1]
    options = {"with_row_id": True, "with_row_address": True}
    assert ours.to_table(**options).equals(reference.to_table(**options))
    assert ours.to_table(filter="a >= 15").equals(rows(15, 30))
    assert ours.count_rows() == reference.count_rows() == 30
    for change in (lambda: ours.delete("a = 12"), lambda: ours.update({"a": "0"}, where="a = 22")):
        with pytest.raises(
            CorruptFileError, match="fragment 1 is listed twice, so that it can be read, but not changed"
        ):
            change()
    ours.delete("a = 3")
    ours.insert(rows(30, 33))
    expected = pa.concat_tables([rows(0, 3), rows(4, 33)])
    assert lance_format.dataset(path).to_table().equals(expected)
    assert lance.dataset(str(path)).to_table().equals(expected)
    lance_format.write_dataset(rows(0, 5), path, mode="overwrite")
    lance_format.dataset(path).delete("a = 1")
    lance.dataset(str(path)).validate()


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_indices_do_not_name_rows_of_fragments_that_share_an_id(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    _three_fragments(path)
    _change_latest(path, lambda message: setattr(message.fragments[2], "id", 1))
    table = lance_format.dataset(path)
    table.create_scalar_index("a", kind)
    assert [index["fragment_ids"] for index in table.list_indices()] == [{0}]
    version = table.version
    table.optimize.optimize_indices()
    assert table.version == version
    for number in (5, 15, 25):
        assert table.to_table(filter=f"a = {number}").equals(rows(number, number + 1))
        assert lance.dataset(str(path)).to_table(filter=f"a = {number}").num_rows == 1


def test_an_old_index_gets_another_part(tmp_path: Path) -> None:
    path = shutil.copytree(TABLES / "v0.36.0" / "btree_in_index_pkg.lance", tmp_path / "t")
    table = lance_format.dataset(path)
    before = table.to_table()
    table.insert(before)
    table.optimize.optimize_indices()
    fragments = {fragment.fragment_id for fragment in table.get_fragments()}
    assert fragments == set().union(*(index["fragment_ids"] for index in table.list_indices()))
    for number in before["x"].to_pylist()[:3]:
        given = f"x = {number}"
        assert table.to_table(filter=given).num_rows == lance.dataset(str(path)).to_table(filter=given).num_rows == 2
    table.optimize.optimize_indices(retrain=True)
    assert lance.dataset(str(path)).to_table(filter=given).num_rows == 2


def test_tasks_have_the_rows_of_fragments_that_share_an_id(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for first in (0, 10, 20, 30):
        lance_format.write_dataset(rows(first, first + 10), path, mode="append")
    _change_latest(path, lambda message: [setattr(message.fragments[index], "id", 1) for index in (2, 3)])
    table = lance_format.dataset(path)
    for options in ({}, {"filter": "a > 3"}, {"filter": "_rowaddr >= 5"}, {"limit": 22, "offset": 13}):
        scanner = table.scanner(with_row_address=True, **options)
        for split_size_bytes in (1, 2**27):
            batches = [batch for task in scanner.plan_tasks(split_size_bytes) for batch in scanner.read_task(task)]
            assert pa.Table.from_batches(batches).equals(scanner.to_table())


def test_fragments_that_share_an_id_get_columns_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "t"
    _three_fragments(path)
    _change_latest(path, lambda message: setattr(message.fragments[2], "id", 1))
    table = lance_format.dataset(path)
    table.add_columns({"b": "a * 2"})
    plan = table.plan_add_columns({"c": "a * 3"}, split_size_bytes=1)
    assert len(plan.tasks) == 3
    plan.commit(table, [task.execute(table) for task in plan.tasks])
    found = lance.dataset(str(path)).to_table(columns=["a", "b", "c"])
    assert found == table.to_table(columns=["a", "b", "c"])
    assert found["b"].to_pylist() == [2 * a for a in range(30)]
    assert found["c"].to_pylist() == [3 * a for a in range(30)]


def test_of_a_field_in_two_data_files_the_first_is_read_as_by_pylance(tmp_path: Path) -> None:
    path = tmp_path / "t"
    _three_fragments(path)
    table = lance_format.dataset(path)
    table.add_columns({"z": "a * 3"})
    table.add_columns({"b": "a * 4"})

    def give_the_id_anew(message: table_pb2.Manifest) -> None:
        z, b = (next(field for field in message.fields if field.name == name) for name in "zb")
        for fragment in message.fragments:
            fragment.files[2].fields[0] = z.id
        b.id = z.id
        message.fields.remove(z)

    _change_latest(path, give_the_id_anew)
    ours, reference = lance_format.dataset(path), lance.dataset(str(path))
    assert ours.to_table()["b"].to_pylist() == [3 * number for number in range(30)]
    assert ours.to_table().equals(reference.to_table())
    assert ours.take([25, 3]).equals(reference.take([25, 3]))
    ours.delete("b = 9")
    ours.update({"b": "1"}, where="a = 20")
    ours.optimize.compact_files()
    expected = [1 if number == 20 else 3 * number for number in range(30) if number != 3]
    for found in (lance_format.dataset(path), lance.dataset(str(path))):
        assert sorted(found.to_table()["b"].to_pylist()) == sorted(expected)
    lance.dataset(str(path)).validate()


def test_a_version_of_the_blobs_is_ignored_as_by_pylance(tmp_path: Path) -> None:
    path = tmp_path / "t"
    _three_fragments(path)
    _change_latest(path, lambda message: setattr(message, "blob_dataset_version", 7))
    assert lance_format.dataset(path).to_table().equals(lance.dataset(str(path)).to_table())
    lance_format.dataset(path).insert(rows(30, 31))
    assert lance.dataset(str(path)).count_rows() == lance_format.dataset(path).count_rows() == 31


@pytest.mark.parametrize("directory", ["data", "_versions"])
def test_a_pipe_in_the_place_of_a_file_is_an_error(directory: str, tmp_path: Path) -> None:
    _three_fragments(tmp_path / "t")
    file = sorted((tmp_path / "t" / directory).glob("*.[lm]a*"))[0]
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(StorageError, match="it is a pipe"):
        lance_format.dataset(tmp_path / "t").to_table()
