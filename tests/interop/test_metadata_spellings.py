"""Spellings of metadata that say how a column is stored: ours and pylance's take each of them for the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import lance
import lance.file
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_format
from lance_format import InvalidInputError
from lance_format.file import LanceFileReader, LanceFileWriter

_YES = ("true", "1", "yes", "y", "on")
_WORDS = (*_YES, "false", "0", "no", "n", "off", "none", "t", "2", "01", "+1", "1.0", "enable", "\ufb00", "")
_POINT = pa.struct([("x", pa.int32()), ("y", pa.float64())])
_POINTS = pa.array([{"x": row, "y": row / 7} for row in range(40)], _POINT)
_PACKED_KEYS = ("lance-encoding:packed", "packed")


@st.composite
def _spellings(draw: st.DrawFn) -> str:
    """Words in any case, some of them with blanks around."""
    word = draw(st.sampled_from(_WORDS))
    cased = "".join(letter.upper() if draw(st.booleans()) else letter for letter in word)
    return draw(st.sampled_from(["", "", "", " ", "\t"])) + cased + draw(st.sampled_from(["", "", "", " ", "\n"]))


def _beside(field: pa.Field, array: pa.Array) -> pa.Table:
    """Return a column between two others, which a misread column would shift."""
    numbers = pa.array(range(len(array)))
    return pa.table([numbers, array, numbers], pa.schema([("before", pa.int64()), field, ("after", pa.int64())]))


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(_PACKED_KEYS), _spellings(), min_size=1),
    st.sampled_from(["2.0", "2.1", "2.2"]),
)
def test_packing(metadata: dict[str, str], version: str) -> None:
    """Both write packed structs for every yes; pylance itself reads those alone whose metadata says `true`."""
    data = _beside(pa.field("c", _POINT, metadata=metadata), _POINTS)
    says_yes = any(value.lower() in _YES for value in metadata.values())
    says_only_yes = all(value.lower() in _YES for value in metadata.values())
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/f.lance"
        for writer_class in (LanceFileWriter, lance.file.LanceFileWriter):
            with writer_class(path, data.schema, version=version) as writer:
                writer.write_batch(data)
            if version == "2.0" and writer_class is not LanceFileWriter and not says_only_yes:
                continue  # Pylance packs for other values too in 2.0, and cannot read the column again.
            assert LanceFileReader(path).read_all().to_table().equals(data)
            theirs = lance.file.LanceFileReader(path)
            assert len(theirs.metadata().columns) == (3 if says_yes else 4 + (version == "2.0"))
            if writer_class is LanceFileWriter:
                assert theirs.read_all().to_table().equals(data)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_packed_structs_of_tables(version: str, tmp_path: Path) -> None:
    data = _beside(pa.field("c", _POINT, metadata={"packed": "Y", "lance-encoding:packed": "off"}), _POINTS)
    path = str(tmp_path / "t")
    lance_format.write_dataset(data, path, data_storage_version=version)
    lance.write_dataset(data, path, mode="append")
    lance_format.write_dataset(data, path, mode="append")
    for table in (lance_format.dataset(path), lance.dataset(path)):
        assert table.to_table().equals(pa.concat_tables([data] * 3))
        assert table.schema.field("c").metadata == {b"packed": b"true", b"lance-encoding:packed": b"off"}
    lance.write_dataset(data, str(tmp_path / "theirs"), data_storage_version=version)
    theirs = lance_format.dataset(tmp_path / "theirs")
    theirs.insert(data)
    theirs.update({"before": "before + 1"}, where="after = 3")
    assert theirs.to_table(["c"]).num_rows == 80
    assert theirs.to_table(["c"], filter="c.x = 3").column(0).to_pylist() == [{"x": 3, "y": 3 / 7}] * 2


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(_spellings(), st.sampled_from(["2.0", "2.1", "2.2"]))
def test_blobs(value: str, version: str) -> None:
    field = pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": value, "unit": "px"})
    data = _beside(field, pa.array([None if row % 7 == 3 else b"blob" * row for row in range(40)], pa.large_binary()))
    with tempfile.TemporaryDirectory() as directory:
        tables = []
        for number, writer in enumerate((lance_format, lance)):
            path = f"{directory}/{number}"
            writer.write_dataset(data, path, data_storage_version=version)
            ours, theirs = lance_format.dataset(path), lance.dataset(path)
            for appender in (lance_format, lance):
                appender.write_dataset(data, path, mode="append")
            assert ours.schema == theirs.schema
            assert ours.schema.field("c").metadata == theirs.schema.field("c").metadata
            ours, theirs = lance_format.dataset(path), lance.dataset(path)
            tables.append(ours.to_table())
            assert [pa.types.is_struct(column.type) for column in tables[-1].itercolumns()] == [False, True, False]
            expected = theirs.to_table().to_pylist()
            if version == "2.0":  # Which null descriptions pylance shows as this.
                expected = [
                    row | {"c": None if row["c"] == {"position": 1, "size": 0} else row["c"]} for row in expected
                ]
            assert tables[-1].to_pylist() == expected
            read = ours.scanner(blob_handling="all_binary").to_table()
            assert read.to_pylist() == data.to_pylist() * 3
            assert theirs.scanner(blob_handling="all_binary").to_table().equals(read)
            if version != "2.2":
                assert read.schema.field("c").metadata[b"lance-encoding:blob"] == value.encode()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(
    "array",
    [pa.array([1, 2]), pa.array(["a", "b"]), pa.array([{"a": 1}] * 2), pa.array([[b"a"]] * 2), pa.array([{}] * 2)],
    ids=lambda array: str(array.type),
)
def test_what_cannot_be_a_blob_is_not_marked_as_one(array: pa.Array, version: str, tmp_path: Path) -> None:
    data = pa.table([array], pa.schema([pa.field("c", array.type, metadata={"lance-encoding:blob": "false"})]))
    if version != "2.0" or not pa.types.is_nested(array.type):  # Pylance ignores it there.
        with pytest.raises(OSError, match=r"[Bb]lob"):
            lance.write_dataset(data, str(tmp_path / "theirs"), data_storage_version=version)
    with pytest.raises(InvalidInputError, match="whatever its value, makes it a column of blobs"):
        lance_format.write_dataset(data, tmp_path / "ours", data_storage_version=version)
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.struct([("data", pa.large_binary()), ("uri", pa.string())]),
        pa.struct(
            [("data", pa.large_binary()), ("uri", pa.string()), ("position", pa.uint64()), ("size", pa.uint64())]
        ),
    ],
    ids=["two fields", "four fields"],
)
def test_storage_of_blobs_that_is_marked_becomes_the_extension(arrow_type: pa.StructType, tmp_path: Path) -> None:
    field = pa.field("c", arrow_type, metadata={"lance-encoding:blob": "1"})
    data = pa.table([pa.array([{"data": b"abc"}, None], arrow_type)], pa.schema([field]))
    for writer in (lance_format, lance):
        path = str(tmp_path / writer.__name__)
        writer.write_dataset(data, path, data_storage_version="2.2")
        ours, theirs = lance_format.dataset(path), lance.dataset(path)
        assert ours.schema == theirs.schema
        read = ours.scanner(blob_handling="all_binary").to_table()
        assert read.column("c").to_pylist() == [b"abc", None]
        assert theirs.scanner(blob_handling="all_binary").to_table().equals(read)


@pytest.mark.parametrize(
    ("arrow_type", "version"),
    [
        (pa.list_(pa.int32()), "2.0"),
        (pa.list_(pa.int32()), "2.1"),
        (pa.list_(pa.int32()), "2.2"),
        (pa.large_list(_POINT), "2.1"),
        (pa.large_list(_POINT), "2.2"),
        (pa.list_(_POINT, 2), "2.2"),
        (pa.map_(pa.string(), pa.int32()), "2.2"),
    ],
    ids=str,
)
def test_only_structs_are_packed(arrow_type: pa.DataType, version: str, tmp_path: Path) -> None:
    """pylance writes such columns and reads back other values; ours reads them, and refuses to write them."""
    value = [("a", 1)] if pa.types.is_map(arrow_type) else [{"x": 1, "y": 2.0}] * 2
    value = [1, 2] if arrow_type == pa.list_(pa.int32()) else value
    field = pa.field("c", arrow_type, metadata={"lance-encoding:packed": "yes"})
    data = _beside(field, pa.array([value, value], arrow_type))
    lance.write_dataset(data, str(tmp_path / "theirs"), data_storage_version=version)
    assert lance_format.dataset(tmp_path / "theirs").to_table().equals(data)
    with pytest.raises(InvalidInputError, match="structs alone are packed"):
        lance_format.write_dataset(data, tmp_path / "ours", data_storage_version=version)


@pytest.mark.parametrize("key", ["lance-encoding:packed", "packed", "lance-encoding:blob"])
def test_how_a_column_is_stored_stays(key: str, tmp_path: Path) -> None:
    """pylance lets it change, and shows null for what is there from then on."""
    is_packed = key.endswith("packed")
    metadata = {key: "yes", "unit": "m"} if is_packed else {"unit": "m"}
    data = _beside(pa.field("c", _POINT, metadata=metadata), _POINTS)
    table = lance_format.write_dataset(data, tmp_path / "t")
    for values in ({key: "no"}, {key: None}) if is_packed else ({key: "true"}, {key: "no"}):
        with pytest.raises(InvalidInputError, match="says how its data files store it, and cannot change"):
            table.update_field_metadata({"c": values})
    for values in ({"unit": "km"}, {key: "1"}) if is_packed else ({"unit": "km"}, {key: None}):
        table.update_field_metadata({"c": values})
        for read in (lance_format.dataset(tmp_path / "t"), lance.dataset(str(tmp_path / "t"))):
            assert read.to_table().to_pylist() == data.to_pylist()


def _key_members(table: Any) -> list[Any]:
    (field,) = table.lance_schema.fields()
    return [
        field.is_unenforced_primary_key(),
        field.unenforced_primary_key_position(),
        field.is_unenforced_clustering_key(),
        field.unenforced_clustering_key_position(),
    ]


@pytest.mark.parametrize("value", [*_YES, "Yes", "2", "+1", "+01", "01", "0", "-1", "1.0", " 1", "", "4294967295"])
@pytest.mark.parametrize("key", ["primary-key", "primary-key:position", "clustering-key:position"])
def test_keys(key: str, value: str, tmp_path: Path) -> None:
    field = pa.field("a", pa.int64(), False, {f"lance-schema:unenforced-{key}": value})
    data = pa.table([pa.array([1, 2])], pa.schema([field]))
    members = []
    for writer in (lance_format, lance):
        path = str(tmp_path / writer.__name__)
        writer.write_dataset(data, path)
        members += [_key_members(lance_format.dataset(path)), _key_members(lance.dataset(path))]
        shutil.rmtree(path)
    assert all(found == members[0] for found in members)
