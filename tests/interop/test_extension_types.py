"""Extension types survive round trips at any place in a column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lance
import lance.file
import pyarrow as pa
import pytest
from lance.arrow import bfloat16_array

import lance_format
from lance_format.extension_types import resolve, retype, storage_of, storage_schema
from lance_format.file import LanceFileReader, LanceFileWriter


class _Celsius(pa.ExtensionType):
    def __init__(self, digits: int) -> None:
        self.digits = digits
        super().__init__(pa.float64(), "tests.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return str(self.digits).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> _Celsius:
        return cls(int(serialized))


@pytest.fixture
def _celsius() -> Iterator[None]:
    pa.register_extension_type(_Celsius(0))
    yield
    pa.unregister_extension_type("tests.celsius")


_TYPES: dict[str, tuple[pa.DataType, list[object]]] = {
    "uuid": (pa.uuid(), [b"0123456789abcdef", None]),
    "bool8": (pa.bool8(), [1, None]),
    "opaque": (pa.opaque(pa.int32(), "kind", "vendor"), [7, None]),
    "tensor": (pa.fixed_shape_tensor(pa.float32(), [2, 2]), [[1, 2, 3, 4], None]),
    "of Python": (_Celsius(2), [21.5, None]),
}


def _array(name: str) -> pa.ExtensionArray:
    arrow_type, values = _TYPES[name]
    return pa.ExtensionArray.from_storage(arrow_type, pa.array(values, arrow_type.storage_type))


def _nestings(array: pa.Array, *, null_structs: bool = True) -> dict[str, pa.Array]:
    struct = pa.StructArray.from_arrays([array, pa.array([1, 2])], ["e", "n"], mask=pa.array([False, null_structs]))
    offsets = pa.array([0, 1, 2], pa.int32())
    return {
        "plain": array,
        "struct": struct,
        "list": pa.ListArray.from_arrays(offsets, array),
        "list of structs": pa.ListArray.from_arrays(offsets, struct),
        "map": pa.MapArray.from_arrays(offsets, pa.array(["a", "b"]), array),
        "vector of structs": pa.FixedSizeListArray.from_arrays(pa.StructArray.from_arrays([array], ["e"]), 1),
    }


@pytest.mark.slow
@pytest.mark.usefixtures("_celsius")
@pytest.mark.parametrize("nesting", _nestings(pa.array([1, 2])))
@pytest.mark.parametrize("name", _TYPES)
def test_both_directions(name: str, nesting: str, tmp_path: Path) -> None:
    array = _nestings(_array(name))[nesting]
    table = pa.table([array], schema=pa.schema([pa.field("c", array.type, metadata={"kept": "1"})]))
    for write in (LanceFileWriter, lance.file.LanceFileWriter):
        with write(str(tmp_path / "f.lance"), table.schema, version="2.2") as writer:
            writer.write_batch(table.to_batches()[0])
        for read in (LanceFileReader, lance.file.LanceFileReader):
            found = read(str(tmp_path / "f.lance")).read_all().to_table()
            shows_checksums = write is LanceFileWriter and read is not LanceFileReader
            assert set(found.schema.metadata or ()) == ({b"lance.checksums"} if shows_checksums else set())
            assert found.schema.remove_metadata().equals(table.schema, check_metadata=True)
            assert found.equals(table)
        for rows in ([1], []):
            found = LanceFileReader(tmp_path / "f.lance").take_rows(rows).to_table()
            assert found.equals(table.slice(2 - len(rows)))
    _check_tables(table, tmp_path / "t")


def _check_tables(table: pa.Table, path: Path) -> None:
    """Write a table twice, the second time without its extension types."""
    lance_format.write_dataset(table, path)
    storage = pa.table([storage_of(table.column(0).chunk(0))], ["c"])
    assert storage.schema.types == storage_schema(table.schema).types
    lance_format.write_dataset(storage, path, mode="append")
    expected = pa.concat_tables([table, table])
    for dataset in (lance_format.dataset(path), lance.dataset(str(path))):
        assert dataset.schema.equals(table.schema, check_metadata=True)
        assert dataset.to_table().equals(expected)
        assert dataset.take([3, 0]).equals(expected.take([3, 0]))


def test_types_that_are_not_registered_are_storage_with_metadata(tmp_path: Path) -> None:
    metadata = {"ARROW:extension:name": "tests.unknown", "ARROW:extension:metadata": "x", "kept": "1"}
    inner = pa.field("x", pa.int32(), metadata=metadata)
    schema = pa.schema([pa.field("c", pa.int32(), metadata=metadata), pa.field("s", pa.struct([inner]))])
    table = pa.table([[1, 2], [{"x": 1}, None]], schema=schema)
    with lance.file.LanceFileWriter(str(tmp_path / "f.lance"), schema) as writer:
        writer.write_batch(table.to_batches()[0])
    found = LanceFileReader(tmp_path / "f.lance").read_all().to_table()
    theirs = lance.file.LanceFileReader(str(tmp_path / "f.lance")).read_all().to_table()
    assert found.schema.equals(theirs.schema, check_metadata=True)
    assert found.equals(theirs)


@pytest.mark.parametrize("name", [b"arrow.uuid", b"arrow.fixed_shape_tensor"])
def test_storage_that_does_not_fit_its_extension_stays_readable(name: bytes, tmp_path: Path) -> None:
    field = pa.field("c", pa.int32(), metadata={b"ARROW:extension:name": name, b"ARROW:extension:metadata": b"{"})
    assert resolve(field).equals(field, check_metadata=True)
    table = pa.table([[1, 2]], schema=pa.schema([field]))
    with LanceFileWriter(tmp_path / "f.lance", table.schema) as writer:
        writer.write_batch(table)
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table().column(0).to_pylist() == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("nesting", ["plain", "vector", "struct", "list", "list of structs"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_vectors_of_bfloat16(nesting: str, version: str, tmp_path: Path) -> None:
    """The one extension type that items of vectors may have: the format has a name for these."""
    vectors = pa.FixedSizeListArray.from_arrays(bfloat16_array([1.5, 2, -3, 4]), 2)
    nestings = _nestings(vectors, null_structs=version != "2.0")
    array = pa.FixedSizeListArray.from_arrays(vectors, 1) if nesting == "vector" else nestings[nesting]
    table = pa.table({"c": array})
    for library, other in ((lance, lance_format), (lance_format, lance)):
        path = tmp_path / library.__name__
        library.write_dataset(table, str(path), data_storage_version=version)
        assert other.dataset(str(path)).to_table() == table
        assert str(lance.dataset(str(path)).lance_schema).count('"fixed_size_list:lance.bfloat16:2"') == (
            nesting != "vector"
        )
        ours = lance_format.dataset(path)
        ours.insert(table)
        ours.update({"c": "c"}, "_rowid = 0")
        ours.optimize.compact_files()
        assert (
            lance.dataset(str(path)).to_table()
            == ours.to_table()
            == pa.concat_tables([table.slice(1), table, table.slice(0, 1)])
        )


def test_vectors_that_only_say_that_they_are_of_bfloat16(tmp_path: Path) -> None:
    item = pa.field("item", pa.float32(), metadata={"ARROW:extension:name": "lance.bfloat16"})
    table = pa.table([pa.array([[1.5, 2.5]], pa.list_(item, 2))], ["c"])
    assert lance_format.write_dataset(table, tmp_path / "t").to_table()["c"].to_pylist() == [[1.5, 2.5]]
    assert lance.dataset(str(tmp_path / "t")).to_table()["c"].to_pylist() == [[1.5, 2.5]]


@pytest.mark.parametrize("name", _TYPES)
def test_extensions_inside_of_vectors_and_dictionaries_are_refused(name: str, tmp_path: Path) -> None:
    for arrow_type in (pa.list_(_TYPES[name][0], 2), pa.dictionary(pa.int8(), _TYPES[name][0])):
        with pytest.raises(lance_format.NotSupportedError, match="column 'c'"):
            LanceFileWriter(tmp_path / "f.lance", pa.schema([("c", arrow_type)]))


@pytest.mark.usefixtures("_celsius")
def test_an_extension_of_another_storage_is_left_out() -> None:
    metadata = {"ARROW:extension:name": "tests.celsius", "ARROW:extension:metadata": "2"}
    wrong, right = (pa.field("c", storage, metadata=metadata) for storage in (pa.float32(), pa.float64()))
    assert resolve(wrong).equals(wrong, check_metadata=True)
    assert resolve(right).type == _Celsius(2)
    nested = pa.field("s", pa.struct([wrong, right]))
    assert resolve(nested).equals(nested, check_metadata=True)


def test_nothing_is_copied() -> None:
    array = _nestings(_array("uuid"))["list of structs"]
    storage = storage_of(array)
    again = retype(storage, array.type)
    assert again.equals(array)
    buffers = [[buffer and buffer.address for buffer in one.buffers()] for one in (array, storage, again)]
    assert buffers[0] == buffers[1] == buffers[2]


def test_a_schema_of_storage_types() -> None:
    inner = pa.struct([pa.field("b", pa.bool8(), nullable=False, metadata={"kept": "1"})])
    schema = pa.schema([("u", pa.uuid()), ("s", inner), ("j", pa.json_())], metadata={"kept": "2"})
    kept = pa.struct([pa.field("b", pa.int8(), nullable=False, metadata={"kept": "1"})])
    expected = pa.schema([("u", pa.binary(16)), ("s", kept), ("j", pa.string())], metadata={"kept": "2"})
    assert storage_schema(schema).equals(expected, check_metadata=True)


def test_a_type_that_is_registered_later(tmp_path: Path) -> None:
    array = pa.ExtensionArray.from_storage(_Celsius(2), pa.array([21.5, None]))
    lance_format.write_dataset(pa.table({"c": array}), str(tmp_path / "t.lance"))
    table = lance_format.dataset(str(tmp_path / "t.lance"))
    for _ in range(2):
        assert table.to_table(["c"]).schema.field("c").type == pa.float64()
    pa.register_extension_type(_Celsius(0))
    try:
        assert table.to_table(["c"]).schema.field("c").type == _Celsius(2)
        assert table.take([0])["c"].type == _Celsius(2)
    finally:
        pa.unregister_extension_type("tests.celsius")
    assert table.to_table(["c"]).schema.field("c").type == pa.float64()
