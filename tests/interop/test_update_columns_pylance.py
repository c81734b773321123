"""Values of a fragment that are replaced by key, its other columns staying where they are."""

import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyroaring
import pytest

import lance_format
from lance_format import InvalidInputError, LanceOperation, SchemaMismatchError
from tests.interop.test_table_pylance import assert_same

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
POINT = pa.struct([("x", pa.int64()), ("y", pa.string())])
TARGET = pa.table(
    {
        "k": [1, 2, None, 4, 5, 6, 7, 8],
        "v": [10, None, 30, 40, 50, 60, 70, 80],
        "s": ["a", "b", None, "d", "e", "f", "g", "h"],
        "p": pa.array([None if n == 3 else {"x": n, "y": f"{n}"} for n in range(8)], POINT),
        "l": [[n] * (n % 3) for n in range(8)],
    }
)


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two fragments with columns in two data files; the first has deleted rows."""
    lance.write_dataset(TARGET, tmp_path / "t", max_rows_per_file=5, enable_stable_row_ids=request.param)
    lance.dataset(tmp_path / "t").delete("k in (2, 8)")
    lance.dataset(tmp_path / "t").add_columns({"w": "v + 1"})
    return tmp_path / "t"


def update(library: Any, path: Path, number: int, *arguments: Any, with_offsets: bool = False) -> Any:
    table = library.dataset(path)
    fragment, fields, *offsets = table.get_fragment(number).update_columns(*arguments, with_offsets=with_offsets)
    operation = (LanceOperation if library is lance_format else lance.LanceOperation).Update(
        updated_fragments=[fragment],
        fields_modified=fields,
        update_mode="rewrite_columns",
        updated_fragment_offsets={number: offsets[0]} if with_offsets else None,
    )
    library.LanceDataset.commit(path, operation, read_version=table.version)
    return [sorted(fields), *map(pyroaring.BitMap.deserialize, offsets)]


def addresses(*rows: int) -> pa.Array:
    return pa.array(rows, pa.uint64())


UPDATES: dict[str, tuple[Any, ...]] = {
    "one column": (pa.table({"k": [5, 1, 77], "v": [-5, None, 0]}), "k"),
    "the last of several": (pa.table({"k": [4, 4, 1, 4], "s": ["x", "y", "z", "w"]}), "k"),
    "null is a key": (pa.table({"k": [None, 4], "v": [0, 1]}), "k"),
    "another name": (pa.table({"key": [4, 1], "w": [1, 2], "v": [3, 4]}), "k", "key"),
    "nested columns": (
        pa.table({"k": [1, 5], "l": [[9, 9], None], "p": pa.array([{"x": 1, "y": None}, None], POINT)}),
        "k",
    ),
    "by strings": (pa.table({"s": ["a", "e"], "k": [100, 500]}), "s"),
    "no match": (pa.table({"k": [99], "v": [0]}), "k"),
    "by row id": (pa.table({"_rowid": addresses(0, 3), "v": [1, 2]}),),
    "by address": (pa.table({"_rowaddr": addresses(4, 3, 1), "v": [1, 2, 3]}), "_rowaddr"),
    "all columns": (TARGET.append_column("w", TARGET["k"]).append_column("row", addresses(*range(8))), "_rowid", "row"),
}


@pytest.mark.slow
@pytest.mark.parametrize("with_offsets", [False, True], ids=["columns", "rows"])
@pytest.mark.parametrize("name", UPDATES)
def test_updates(path: Path, name: str, with_offsets: bool) -> None:
    copy = path.with_name("copy")
    shutil.copytree(path, copy)
    expected = update(lance, copy, 0, *UPDATES[name], with_offsets=with_offsets)
    assert update(lance_format, path, 0, *UPDATES[name], with_offsets=with_offsets) == expected
    ours, reference = assert_same(path), lance.dataset(copy)
    assert ours.to_table() == reference.to_table()
    assert ours.to_table(LINEAGE) == reference.to_table(columns=LINEAGE)
    assert ours.to_table().num_rows == 6
    changed = update(lance_format, path, 1, pa.table({"k": [6], "s": ["again"]}), "k")
    update(lance, copy, 1, pa.table({"k": [6], "s": ["again"]}), "k")
    assert changed == [[2]]
    assert assert_same(path).to_table() == lance.dataset(copy).to_table()


def test_an_index_on_what_changed_is_not_believed(path: Path) -> None:
    lance.dataset(path).create_scalar_index("v", "BTREE")
    lance.dataset(path).create_scalar_index("k", "BTREE")
    update(lance_format, path, 0, pa.table({"k": [5, 1], "v": [-5, -1]}), "k")
    table = lance.dataset(path)
    assert sorted(table.to_table(filter="v < 0")["k"].to_pylist()) == [1, 5]
    assert table.to_table(filter="v = 50").num_rows == 0
    assert table.to_table(filter="k = 5")["v"].to_pylist() == [-5]
    assert_same(path)


def test_many_rows(tmp_path: Path) -> None:
    """More than a batch, in a random order, with deleted rows in between."""
    numbers = np.random.default_rng(0).permutation(30_000)
    lance_format.write_dataset({"k": numbers, "v": numbers, "s": numbers.astype(str)}, tmp_path)
    lance_format.dataset(tmp_path).delete("k % 7 = 0")
    changed = numbers[numbers % 3 == 0][::-1]
    update(lance_format, tmp_path, 0, pa.table({"k": changed, "v": -changed}), "k")
    found = assert_same(tmp_path).to_table(["k", "v"])
    k = found["k"].to_numpy()
    assert k.tolist() == numbers[numbers % 7 != 0].tolist()
    assert found["v"].to_numpy().tolist() == np.where(k % 3 == 0, -k, k).tolist()


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((pa.table({"k": [1]}), "k"), InvalidInputError, "no column to update"),
        ((pa.table({"k": [1], "z": [1]}), "k"), InvalidInputError, "column 'z' does not exist"),
        ((pa.table({"k": [1], "_rowid": [1]}), "k"), InvalidInputError, "'_rowid' is a metadata column"),
        ((pa.table({"k": [1], "v": [1]}), "k", "q"), InvalidInputError, "the data has no column 'q'"),
        ((pa.table({"k": [1], "v": [1]}), "q", "k"), InvalidInputError, "no column 'q'"),
        ((pa.table({"k": pa.array([1], pa.int32()), "v": [1]}), "k"), SchemaMismatchError, "the keys differ"),
        ((pa.table({"k": [1], "v": ["1"]}), "k"), SchemaMismatchError, "does not fit"),
    ],
)
def test_what_cannot_be_updated(path: Path, arguments: tuple[Any, ...], error: type, match: str) -> None:
    files = sorted(path.rglob("*"))
    with pytest.raises(error, match=match):
        update(lance_format, path, 0, *arguments)
    assert sorted(path.rglob("*")) == files


def test_a_file_without_other_columns_goes(path: Path) -> None:
    """The columns that stay in it were dropped from the table: pylance calls such files damaged."""
    columns = [name for name in TARGET.column_names if name not in ("k", "v")]
    lance_format.dataset(path).drop_columns(columns)
    update(lance_format, path, 0, pa.table({"key": [5, 1], "k": [5, 1], "v": [-5, -1]}), "k", "key")
    assert [file.fields for file in lance_format.dataset(path).get_fragment(0).data_files()] == [(8,), (0, 1)]
    lance.dataset(path).validate()
    assert assert_same(path).to_table().num_rows == 6


def test_a_file_of_dropped_columns_goes_with_a_new_column(path: Path) -> None:
    """Rows that lack all columns keep such a file until they get another one."""
    table = lance_format.dataset(path)
    table.insert(pa.table({"v": [1, 2]}))
    table.drop_columns(["v"])
    table.add_columns({"x": "7"})
    lance.dataset(path).validate()
    assert assert_same(path).to_table()["x"].null_count == 0
