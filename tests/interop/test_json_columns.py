"""Columns of JSON as we write them, which pylance reads, and stores byte by byte the same."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import lance.file
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format import InvalidInputError, NotSupportedError, SchemaMismatchError
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.jsonb import from_text

_NUMBERS = [
    sign * (2**bits + more) for bits in (0, 7, 8, 15, 16, 31, 32, 63, 64) for more in (-1, 0, 1) for sign in (1, -1)
]
_NUMBERS += [10**40, 0.1, -0.0, 1e-5, 9.9e-6, 1e22, 5e-324, 1.7976931348623157e308]
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from(_NUMBERS)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
)
_TEXTS = ['{"b": [1, {"a": null}], "a": "é"}', None, "[1, 2.5]", '"x"']


def _json(texts: list[str | None], storage: pa.DataType | None = None) -> pa.ExtensionArray:
    storage = storage or pa.string()
    return pa.ExtensionArray.from_storage(pa.json_(storage), pa.array(texts, storage))


def _stored(directory: Path) -> pa.Table:
    (path,) = directory.glob("data/*.lance")
    return LanceFileReader(path).read_all().to_table()


def _assert_same_for_both(path: Path) -> list[dict[str, object]]:
    ours, theirs = lance_format.dataset(path), lance.dataset(str(path))
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_table().equals(theirs.to_table())
    theirs.validate()
    rows: list[dict[str, object]] = ours.to_table().to_pylist()
    return rows


def _table(path: Path) -> lance_format.LanceDataset:
    return lance_format.write_dataset(pa.table({"n": [1, 2, 3], "c": _json(_TEXTS[:3])}), path)


@pytest.mark.slow
@given(st.lists(_values, min_size=1, max_size=20), st.booleans())
def test_bytes_are_those_of_pylance(
    tmp_path_factory: pytest.TempPathFactory, values: list[object], plain: bool
) -> None:
    path = tmp_path_factory.mktemp("json")
    texts = [json.dumps(value, ensure_ascii=not plain, indent=1 if plain else None) for value in values]
    data = pa.table({"c": _json([*texts, None])})
    lance.write_dataset(data, str(path / "theirs"))
    lance_format.write_dataset(data, path / "ours")
    assert _stored(path / "ours").equals(_stored(path / "theirs"), check_metadata=True)
    _assert_same_for_both(path / "ours")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "1e999",
            "[-1e999, NaN, Infinity, -Infinity]",
            "-0",
            "1E+2",
            "-0.0e-1",
            "1" * 400,
            "1" * 5000,
            "0." + "0" * 400 + "1",
        ),
        *('"\\ud83d\\ude00\\u0000\\/"', '"a\tb\n\x01"', " \t\r\n[ ] ", '{"":{"":{}}}', "[" * 300 + "]" * 300),
        *(
            '{"aa":1,"b":2,"a":3,"é":4,"\U0001f600":5,"\uffff":6}',
            json.dumps(list(range(70_000))),
            '"' + "é" * 70_000 + '"',
        ),
    ],
    ids=lambda text: text[:20].encode("unicode_escape").decode(),
)
def test_special_documents(text: str, tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"c": _json([text])}), str(tmp_path / "t"))
    assert _stored(tmp_path / "t").column(0).to_pylist() == [from_text(text)]


@pytest.mark.parametrize("storage", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_schema_is_that_of_pylance(storage: pa.DataType, version: str, tmp_path: Path) -> None:
    field = pa.field("c", pa.json_(storage), metadata={"k": "v"})
    data = pa.table([_json(_TEXTS, storage)], schema=pa.schema([field], {"of": "the table"}))
    theirs = lance.write_dataset(data, str(tmp_path / "theirs"), data_storage_version=version)
    ours = lance_format.write_dataset(data, tmp_path / "ours", data_storage_version=version)
    assert ours.lance_schema == lance_format.dataset(tmp_path / "theirs").lance_schema
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    files = [LanceFileReader(next(tmp_path.glob(f"{name}/data/*.lance"))) for name in ("ours", "theirs")]
    assert files[0].metadata().schema.equals(files[1].metadata().schema, check_metadata=True)
    _assert_same_for_both(tmp_path / "ours")
    lance.write_dataset(data, str(tmp_path / "ours"), mode="append")
    lance_format.write_dataset(data, tmp_path / "theirs", mode="append")
    assert _assert_same_for_both(tmp_path / "ours") == _assert_same_for_both(tmp_path / "theirs")


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_json_inside_of_other_types(version: str, tmp_path: Path) -> None:
    inner = _json(["1", "no JSON, but null above" if version != "2.0" else "7", *_TEXTS])
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"] * 6, pa.binary(16)))
    mask = pa.array([False, version != "2.0", False, False, False, False])
    valid = inner.slice(2)
    columns = {
        "struct": pa.StructArray.from_arrays([inner, uuids, pa.array(range(6))], ["j", "u", "n"], mask=mask).slice(1),
        "list": pa.ListArray.from_arrays(pa.array([0, 1, None, 3, 3, 4], pa.int32()), valid),
        "large": pa.LargeListArray.from_arrays(pa.array([0, 1, 1, 3, 3, 4]), valid),
    }
    if version == "2.2":
        columns["map"] = pa.MapArray.from_arrays(pa.array([0, 1, 1, 3, 4, 4], pa.int32()), pa.array(range(4)), valid)
    data = pa.table(columns).slice(0, 4)
    lance.write_dataset(data.slice(1), str(tmp_path / "theirs"), data_storage_version=version)
    lance_format.write_dataset(data.slice(1), tmp_path / "ours", data_storage_version=version)
    assert _stored(tmp_path / "ours").equals(_stored(tmp_path / "theirs"))
    lance_format.write_dataset(data, tmp_path / "theirs", mode="append")
    rows = _assert_same_for_both(tmp_path / "theirs")
    assert rows[:3] == rows[4:] == _assert_same_for_both(tmp_path / "ours")


def test_text_that_is_no_json_is_found_among_others(tmp_path: Path) -> None:
    texts = [*["1"] * 700, "{'a': 1}", *["2"] * 300, ""]
    batches = pa.table({"n": range(len(texts)), "c": _json(texts)}).to_batches(max_chunksize=100)
    with pytest.raises(
        InvalidInputError, match=r"column 'c', row 700: .\{'a': 1\}. cannot be stored as JSON: Expecting"
    ):
        lance_format.write_dataset(pa.Table.from_batches(batches), tmp_path / "t")
    assert not (tmp_path / "t").exists()
    lists = pa.ListArray.from_arrays(pa.array([0, 699, 701, 1002], pa.int32()), _json(texts))
    with pytest.raises(InvalidInputError, match="column 'c', row 1: "):
        lance_format.write_dataset(pa.table({"c": lists}), tmp_path / "t")


_REFUSED = {
    '{"b": 1, "a": 2, "a": 3}': "an object has the key 'a' twice",
    '["\\ud83d"]': r"a string has the surrogate '\\ud83d' without the other of its pair",
    "": "Expecting value",
    "[1] [2]": "Extra data",
    "[1,]": "Expecting value|Illegal trailing comma",
    '{"a": ' + "1" * 100: "1111'… cannot be",
}


@pytest.mark.parametrize("text", _REFUSED)
def test_refused_documents(text: str) -> None:
    with pytest.raises(InvalidInputError, match=_REFUSED[text]):
        from_text(text)


def test_documents_nested_too_deeply() -> None:
    for text in ("[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000):
        with pytest.raises(NotSupportedError, match="is nested too deeply to be stored as JSON"):
            from_text(text)


def test_append_of_texts_and_overwrite(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    lance_format.write_dataset(pa.table({"c": pa.array(['{"z": 1}', None], pa.large_string())}), table, mode="append")
    rows = _assert_same_for_both(tmp_path / "t")
    assert [row["c"] for row in rows] == ['{"a":"é","b":[1,{"a":null}]}', None, "[1,2.5]", '{"z":1}', None]
    for kind in (pa.array([b"x"]), pa.array([b"x"], pa.large_binary()), pa.array([1])):
        with pytest.raises(SchemaMismatchError, match=f"column 'c' is {kind.type}, the table's is JSON"):
            lance_format.write_dataset(pa.table({"c": kind}), table, mode="append")
    with pytest.raises(InvalidInputError, match="column 'c', row 1: 'x' cannot be stored as JSON"):
        lance_format.write_dataset(pa.table({"c": ["1", "x"]}), table, mode="append")
    lance_format.write_dataset(pa.table({"c": ["1", "x"]}), table, mode="overwrite")
    with pytest.raises(SchemaMismatchError, match="column 'c' is JSON, the table's is string"):
        lance_format.write_dataset(pa.table({"c": _json(["1"])}), table.uri, mode="append")


def test_jsonb_is_stored_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.lance"
    with LanceFileWriter(path) as writer:
        writer.write_batch(pa.table({"c": _json(_TEXTS)}))
    read = LanceFileReader(path).read_all().to_table()
    theirs = lance.file.LanceFileReader(str(path)).read_all().to_table()
    assert read.equals(theirs)
    assert read.column(0).to_pylist()[2] == from_text("[1, 2.5]")
    with LanceFileWriter(tmp_path / "y.lance") as writer:
        writer.write_batch(read)
    assert LanceFileReader(tmp_path / "y.lance").read_all().to_table().equals(read)
    lance_format.write_dataset(read, tmp_path / "t")
    assert _stored(tmp_path / "t").equals(read)
    _assert_same_for_both(tmp_path / "t")


def test_update(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    table.add_columns(pa.field("d", pa.json_()))
    table.update({"c": """concat('{"n": ', CAST(n AS string), '}')""", "d": "c"}, where="n < 3")
    table.update({"c": "NULL"}, where="n = 2")
    rows = sorted(_assert_same_for_both(tmp_path / "t"), key=lambda row: row["n"])
    assert rows[0] == {"n": 1, "c": '{"n":1}', "d": '{"a":"é","b":[1,{"a":null}]}'}
    assert rows[1:] == [{"n": 2, "c": None, "d": None}, {"n": 3, "c": "[1,2.5]", "d": None}]
    with pytest.raises(InvalidInputError, match="column 'c', row 0: 'x' cannot be stored as JSON"):
        table.update({"c": "'x'"})
    for value, kind in (("n", "int64"), ("X'00'", ".*binary"), ("CAST('1' AS binary)", ".*binary")):
        with pytest.raises((SchemaMismatchError, InvalidInputError), match=f"column 'c', which is JSON, is {kind};"):
            table.update({"c": value})
    assert _assert_same_for_both(tmp_path / "t") == table.to_table().to_pylist()


@pytest.mark.parametrize("kind", ["json", "text"])
def test_merge_insert_and_new_columns(kind: str, tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    texts: list[str | None] = ['{"z": [1]}', None, "7"]
    news = _json(texts) if kind == "json" else pa.array(texts)
    merge = table.merge_insert("n").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"n": [3, 4, 5], "c": news}))
    table.merge(pa.table({"n": [5, 1], "d": _json(["[5]", "[1]"])}), "n")
    table.add_columns(pa.table({"e": _json([str(x) for x in range(5)])}).to_reader())
    table.optimize.compact_files()
    rows = {row["n"]: row for row in _assert_same_for_both(tmp_path / "t")}
    assert {n: (row["c"], row["d"]) for n, row in rows.items()} == {
        1: ('{"a":"é","b":[1,{"a":null}]}', "[1]"),
        2: (None, None),
        3: ('{"z":[1]}', None),
        4: (None, None),
        5: ("7", "[5]"),
    }
    assert sorted(str(row["e"]) for row in rows.values()) == list("01234")


def test_columns_of_a_fragment_are_updated(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    (fragment,) = table.get_fragments()
    data = pa.table({"n": [3, 1], "c": _json(["[3]", None])})
    made, fields = fragment.update_columns(data, left_on="n", right_on="n")
    operation = lance_format.LanceOperation.Update(updated_fragments=[made], fields_modified=fields)
    lance_format.LanceDataset.commit(table.uri, operation, table.version)
    assert [row["c"] for row in _assert_same_for_both(tmp_path / "t")] == [None, None, "[3]"]


def test_what_columns_of_json_are_not_for(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    table.add_columns({"s": "'[1]'"})
    for kind in (pa.json_(), pa.list_(pa.json_())):
        with pytest.raises(NotSupportedError, match="column 's' cannot be made JSON; add a column of JSON instead"):
            table.alter_columns({"path": "s", "data_type": kind})
    with pytest.raises(NotSupportedError, match="rows cannot be matched by column 'c', which is JSON"):
        table.merge(pa.table({"c": _json(["[1]"]), "w": [1]}), "c")
    vectors = pa.FixedSizeListArray.from_arrays(_json(["1", "2"]), 2)
    with pytest.raises(NotSupportedError, match=r"column 'x' has type extension<arrow\.json>, which"):
        lance_format.write_dataset(pa.table({"x": vectors}), tmp_path / "u")
    _assert_same_for_both(tmp_path / "t")


def test_keys_of_json_are_compared_as_they_are_stored(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    merge = table.merge_insert("c").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"n": [9, 8], "c": _json([" [ 1,\n2.50 ]", "[2]"])}))
    rows = {row["c"]: row["n"] for row in _assert_same_for_both(tmp_path / "t")}
    assert (rows["[1,2.5]"], rows["[2]"], len(rows)) == (9, 8, 4)


def test_new_columns_come_with_appended_rows(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    inner = pa.StructArray.from_arrays([_json(["6"])], ["j"])
    data = pa.table({"n": [4], "z": _json(["5"]), "w": inner})
    lance_format.write_dataset(data, table, mode="append", merge_schema=True)
    row = _assert_same_for_both(tmp_path / "t")[-1]
    assert row == {"n": 4, "c": None, "z": "5", "w": {"j": "6"}}
