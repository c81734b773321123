"""Columns added by key, parts of tables and their validation: pylance does the same to a copy."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError, DatasetNotFoundError, InvalidInputError, LanceError, SchemaMismatchError
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.manifest import Manifest
from lance_format.table.maintenance.validation import validate
from tests.interop.test_table_pylance import assert_same

TARGET = pa.table({"k": [1, 2, 3, None, 5, 6, 3], "v": list("abcdefg"), "home": [{"a": n} for n in range(7)]})


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table of pylance with several fragments, a row of them deleted."""
    table = lance.write_dataset(TARGET, str(tmp_path / "t"), max_rows_per_file=3, enable_stable_row_ids=request.param)
    table.delete("k = 5")
    return tmp_path / "t"


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (pa.table({"k": [1, 3, None, 7], "z": [10, 30, 40, 70]}), ["k"]),
        (pa.table({"z": ["x", None, "y"], "y": [[1], None, []], "other": [6, 2, 3]}), ["k", "other"]),
        (pa.table({"k": [1, 3, 3], "z": [10, 30, 31]}), ["k"]),
        (pa.table({"k": ["b", "a"], "n": [1, 2]}).rename_columns(["w", "n"]), ["v", "w"]),
        (pa.table({"k": [100], "z": [{"q": 1}]}), ["k"]),
    ],
    ids=["some", "another name", "the last one counts", "strings", "none"],
)
def test_columns_by_key(path: Path, data: pa.Table, keys: list[str]) -> None:
    copy = path.with_name("copy")
    shutil.copytree(path, copy)
    reference, ours = lance.dataset(str(copy)), lance_format.dataset(path)
    reference.merge(data, *keys)
    ours.merge(data, *keys)
    assert ours.version == reference.version
    assert ours.to_table() == reference.to_table()
    assert ours.schema == reference.schema
    assert_same(path).validate()


def test_views_are_keys_and_values(tmp_path: Path) -> None:
    kinds = [pa.string_view(), pa.binary_view(), pa.list_(pa.string_view()), pa.struct([("a", pa.string_view())])]
    values = [["x", None], [b"y", b""], [["z"], None], [{"a": "w"}, None]]
    columns = {f"c{number}": pa.array(*pair) for number, pair in enumerate(zip(values, kinds, strict=True))}
    table = lance_format.write_dataset({"k": ["a", "b", "c"], "v": [1, 2, 3]}, tmp_path)
    keys = pa.array(["b", "a"], pa.string_view())
    table.merge(pa.table({"k": keys, **columns}), "k")
    expected = [{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": "c", "v": 3}]
    for row, number in zip(expected, (1, 0, None), strict=True):
        row |= {name: None if number is None else column[number].as_py() for name, column in columns.items()}
    assert table.to_table().to_pylist() == lance.dataset(tmp_path).to_table().to_pylist() == expected
    fragment, fields = table.get_fragments()[0].update_columns(pa.table({"k": keys, "v": [20, 10]}), "k")
    operation = lance_format.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    assert LanceDataset.commit(tmp_path, operation, table.version).to_table()["v"].to_pylist() == [10, 20, 3]


def test_columns_by_key_without_data(path: Path) -> None:
    table = lance_format.dataset(path)
    table.merge(pa.table({"k": pa.array([], pa.int64()), "z": pa.array([], pa.string())}), "k")
    assert table.to_table()["z"].null_count == table.count_rows()
    assert_same(path)


@pytest.mark.parametrize(
    ("data", "keys", "error"),
    [
        ({"k": [1], "v": ["a"]}, ["k"], InvalidInputError),
        ({"k": [1]}, ["k"], InvalidInputError),
        ({"k": [1], "z": [1]}, ["nope"], InvalidInputError),
        ({"k": [1], "z": [1]}, ["k", "nope"], InvalidInputError),
        ({"k": ["1"], "z": [1]}, ["k"], SchemaMismatchError),
    ],
    ids=["taken", "no column", "no key", "no key in the data", "other type"],
)
def test_columns_that_make_no_sense(path: Path, data: Any, keys: list[str], error: type[Exception]) -> None:
    files = sorted(path.rglob("*"))
    with pytest.raises(error):
        lance_format.dataset(path).merge(data, *keys)
    assert sorted(path.rglob("*")) == files


def test_inserts_and_truncation(path: Path) -> None:
    table = lance_format.dataset(path)
    table.insert(TARGET.slice(0, 2))
    assert (table.version, table.count_rows()) == (3, 8)
    table.truncate_table()
    assert (table.version, table.count_rows(), table.schema) == (4, 0, TARGET.schema)
    table.insert({"q": [1]}, mode="overwrite")
    assert table.to_table().to_pydict() == {"q": [1]}
    assert_same(path)


@pytest.mark.parametrize("bounds", [(0, 3), (2, 5), (4, 100), (50, 60), (3, 3)], ids=str)
def test_slices(path: Path, bounds: tuple[int, int]) -> None:
    ours, reference = lance_format.dataset(path), lance.dataset(str(path))
    assert ours.slice(*bounds) == reference.slice(*bounds)
    assert ours.slice(*bounds, columns=["v"]) == reference.slice(*bounds, columns=["v"])


@pytest.mark.parametrize("bounds", [(-1, 2), (5, 3)], ids=str)
def test_slices_that_make_no_sense(path: Path, bounds: tuple[int, int]) -> None:
    with pytest.raises(InvalidInputError):
        lance_format.dataset(path).slice(*bounds)


def test_samples(path: Path) -> None:
    table = lance_format.dataset(path)
    rows = table.to_table(columns=["v"])["v"].to_pylist()
    assert sorted(table.sample(6)["v"].to_pylist()) == rows
    chosen = table.sample(4, ["v"], randomize_order=False)["v"].to_pylist()
    assert chosen == [row for row in rows if row in chosen]
    assert len(chosen) == 4
    assert table.sample(0).num_rows == 0
    for number in (-1, 7, True):
        with pytest.raises(InvalidInputError):
            table.sample(number)


def test_whole_tables_are_valid(path: Path) -> None:
    table = lance_format.dataset(path)
    table.validate()
    table.update({"v": "'new'"}, "k < 3")
    table.add_columns({"twice": "k * 2"})
    table.drop_columns(["v"])
    table.validate()
    lance_format.write_dataset({"k": [1]}, path, mode="append").validate()


@pytest.mark.parametrize("directory", ["data", "_deletions"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_damaged_files_are_found(path: Path, directory: str, damage: str) -> None:
    table = lance_format.dataset(path)
    file = sorted((path / directory).iterdir())[0]
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-7])
    else:
        file.unlink()
    with pytest.raises(CorruptFileError if damage == "cut" else DatasetNotFoundError, match=file.name):
        table.validate()


def _with(change: Callable[[Manifest], dict[str, Any]]) -> Callable[[LanceDataset], None]:
    def check(table: LanceDataset) -> None:
        version = table._table
        validate(
            dataclasses.replace(version, manifest=dataclasses.replace(version.manifest, **change(version.manifest)))
        )

    return check


def _first(manifest: Manifest, **changes: Any) -> dict[str, Any]:
    fragments = FragmentList((dataclasses.replace(manifest.fragments[0], **changes), *manifest.fragments[1:]))
    return {"fragments": fragments}


@pytest.mark.parametrize(
    "check",
    [
        _with(lambda manifest: {"fragments": FragmentList([manifest.fragments[0]] * 2)}),
        _with(lambda manifest: {"fragments": FragmentList(manifest.fragments[::-1])}),
        _with(lambda manifest: _first(manifest, physical_rows=7)),
        _with(lambda manifest: _first(manifest, files=manifest.fragments[0].files * 2)),
        _with(lambda manifest: _first(manifest, files=manifest.fragments[1].files, physical_rows=2)),
    ],
    ids=["twice", "order", "rows", "files", "other file"],
)
def test_manifests_that_contradict_the_files(path: Path, check: Callable[[LanceDataset], None]) -> None:
    with pytest.raises(LanceError):
        check(lance_format.dataset(path))


@pytest.mark.parametrize(
    "check",
    [
        _with(lambda _: {"next_row_id": 5}),
        _with(lambda manifest: _first(manifest, row_id_meta=None)),
        _with(lambda manifest: _first(manifest, row_id_meta=manifest.fragments[2].row_id_meta)),
        _with(lambda manifest: _first(manifest, created_at_version_meta=b"\xff")),
    ],
    ids=["next id", "no ids", "another's ids", "versions"],
)
def test_row_ids_that_contradict(tmp_path: Path, check: Callable[[LanceDataset], None]) -> None:
    table = lance_format.write_dataset({"k": range(9)}, tmp_path / "t", max_rows_per_file=3, enable_stable_row_ids=True)
    with pytest.raises(CorruptFileError):
        check(table)
