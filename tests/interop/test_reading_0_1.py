"""Tables of file format 0.1 that pylance writes: read as pylance reads them, nulls that the format loses included."""

from __future__ import annotations

import contextlib
import random
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lance_format
from lance_format.file import LanceFileReader
from lance_format.proto import file_pb2
from tests.arrays import FLAT_TYPES, NULLS, STYLES, make_array
from tests.file.counting import CountedFile
from tests.file.zones.test_zone_statistics import check_pruning, random_table
from tests.nested_arrays import RandomValues, random_type


def _check(table: pa.Table, path: Path, rng: random.Random, rows_per_group: int | None = None) -> None:
    shutil.rmtree(path, ignore_errors=True)
    options = {"max_rows_per_group": rows_per_group or rng.choice([1, 7, 100, 1024])}
    theirs = lance.write_dataset(table, str(path), data_storage_version="legacy", **options)
    expected = theirs.to_table()
    ours = lance_format.dataset(path)
    assert ours.data_storage_version == "0.1"
    found = ours.to_table(batch_size=rng.choice([7, 1000]))
    found.validate(full=True)
    assert found.schema.equals(expected.schema, check_metadata=True)
    _assert_same(found, expected)
    rows = sorted(rng.sample(range(table.num_rows), k=min(9, table.num_rows)))
    _assert_same(ours.take(rows), expected.take(rows))


def _assert_same(found: pa.Table, expected: pa.Table) -> None:
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        ours, theirs = found[name], expected[name]
        assert ours.equals(theirs) or ours.to_pylist() == theirs.to_pylist(), name


@pytest.mark.slow
@pytest.mark.parametrize("arrow_type", FLAT_TYPES, ids=str)
def test_flat_types(arrow_type: pa.DataType, tmp_path: Path) -> None:
    rng = random.Random(0)
    for num_rows, sizes in ((1, [1]), (10, [1, 7, 10]), (300, [7, 300])):
        columns = {
            f"{nulls}, {style}": make_array(arrow_type, num_rows, nulls, style)
            for nulls in NULLS
            for style in STYLES[1:]
        }
        for rows_per_group in sizes:
            _check(pa.table(columns), tmp_path / "t", rng, rows_per_group)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_nesting(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    arrow_type = random_type(rng, rng.randint(1, 3), maps=False)
    values = RandomValues(rng, rng.choice([0, 0.1, 0.5]), rng.choice([0, 0.2]), rng.choice([1, 3, 20]))
    array = values.array(arrow_type, rng.choice([1, 3, 40, 300]))
    _check(pa.table({"c": array, "after": pa.array(range(len(array)))}), tmp_path / "t", rng)


@pytest.mark.slow
@pytest.mark.parametrize("value_type", [pa.string(), pa.int64(), pa.large_string(), pa.binary(), pa.float64()], ids=str)
def test_dictionaries(value_type: pa.DataType, tmp_path: Path) -> None:
    rng = random.Random(0)
    for index_type in (pa.int8(), pa.uint16(), pa.int32()):
        values = make_array(value_type, 300, "no nulls", "small").dictionary_encode()
        array = values.cast(pa.dictionary(index_type, value_type))
        _check(pa.table({"c": array}), tmp_path / "t", rng)
        lists = pa.ListArray.from_arrays(pa.array(range(0, 301, 3), pa.int32()), array)
        _check(pa.table({"c": lists}), tmp_path / "t", rng)


def test_fixed_size_lists(tmp_path: Path) -> None:
    rng = random.Random(0)
    values = RandomValues(rng, 0, 0, 1)
    for item in (pa.float32(), pa.bool_(), pa.binary(3), pa.list_(pa.int64(), 2)):
        _check(pa.table({"c": values.array(pa.list_(item, 5), 200)}), tmp_path / "t", rng)


def _table(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    data = pa.table(
        {"id": range(300), "s": [f"{row}" for row in range(300)], "l": [[row] * (row % 3) for row in range(300)]}
    )
    lance.write_dataset(data, path, data_storage_version="legacy", max_rows_per_file=120, max_rows_per_group=50)
    return path


def test_deletes_and_filters(tmp_path: Path) -> None:
    path = _table(tmp_path)
    ours = lance_format.dataset(path)
    ours.delete("id % 7 = 3")
    theirs = lance.dataset(path)
    assert theirs.count_rows() == ours.count_rows()
    assert ours.to_table() == theirs.to_table()
    for where in ("id > 250", "s = '17'", "id in (1, 130, 299)", "s is null"):
        assert ours.to_table(filter=where) == theirs.to_table(filter=where)
    theirs.delete("id < 10")
    assert lance_format.dataset(path).to_table(["l"]) == lance.dataset(path).to_table(["l"])


def test_the_way_out(tmp_path: Path) -> None:
    path = _table(tmp_path)
    table = lance_format.dataset(path)
    before = table.to_table()
    reader = table.scanner().to_reader()
    lance_format.write_dataset(reader, path, mode="overwrite", data_storage_version="2.2")
    for found in (lance_format.dataset(path), lance.dataset(path)):
        assert found.data_storage_version == "2.2"
        assert found.to_table() == before
    assert lance_format.dataset(path, version=1).to_table() == before


@pytest.mark.slow
def test_damaged_ends_are_refused(tmp_path: Path) -> None:
    path = _table(tmp_path)
    file = sorted(Path(path, "data").iterdir())[0]
    data = file.read_bytes()
    rng = random.Random(0)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            damaged[len(data) - rng.randint(1, 2500)] = rng.randrange(256)
        file.write_bytes(damaged)
        with contextlib.suppress(lance_format.LanceError):
            lance_format.dataset(path).to_table().validate(full=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_statistics_leave_out_nothing_that_matches(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path = str(tmp_path / "t")
    num_rows = rng.choice([1, 50, 400])
    types = rng.sample([pa.int64(), pa.int8(), pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.binary()], 3)
    columns = {f"c{place}": _ascending(rng, kind, num_rows) for place, kind in enumerate(types)}
    inner = pa.StructArray.from_arrays([_ascending(rng, pa.int32(), num_rows)], ["x"])
    data = pa.table(columns | {"s": inner})
    lance.write_dataset(data, path, data_storage_version="legacy", max_rows_per_group=rng.choice([7, 64]))
    ours = lance_format.dataset(path)
    rows = ours.to_table()
    for name, values in {**{name: rows[name] for name in columns}, "s.x": pc.struct_field(rows["s"], "x")}.items():
        constant = rng.choice(values.to_pylist() or [None])
        for operator, compare in (("=", pc.equal), ("<", pc.less), (">=", pc.greater_equal)):
            if constant is not None:
                mask = compare(values, pa.scalar(constant, values.type))
                field = pc.field(*name.split("."))
                condition = {"=": field == constant, "<": field < constant, ">=": field >= constant}[operator]
                assert ours.to_table(filter=condition).equals(rows.filter(mask)), (name, operator, constant)
        assert ours.to_table(filter=f"{name} is null").num_rows == values.null_count


@pytest.mark.parametrize("arrow_type", [pa.decimal128(10, 2), pa.decimal128(38, 0)], ids=str)
def test_statistics_of_decimals_that_are_null(arrow_type: pa.DataType, tmp_path: Path) -> None:
    """Their bounds have more digits than decimals can."""
    values = pa.array([None] * 50 + list(range(50)), arrow_type)
    path = str(tmp_path / "t")
    lance.write_dataset(pa.table({"d": values}), path, data_storage_version="legacy", max_rows_per_group=50)
    ours, theirs = lance_format.dataset(path), lance.dataset(path)
    for where in (pc.field("d") > pa.scalar(40, arrow_type), pc.field("d") == pa.scalar(0, arrow_type)):
        assert ours.to_table(filter=where) == theirs.to_table().filter(where)


def test_items_of_a_negative_number_are_refused(tmp_path: Path) -> None:
    path = _table(tmp_path)
    file = min(Path(path, "data").iterdir())
    data = bytearray(file.read_bytes())
    position = int.from_bytes(data[-16:-8], "little")
    metadata = file_pb2.LegacyMetadata.FromString(bytes(data[position + 4 : -16]))
    num_batches = len(metadata.batch_offsets) - 1
    length = metadata.page_table_position + (3 * num_batches) * 16 + 8  # Field 3 has the items of the lists.
    data[length : length + 8] = (-5).to_bytes(8, "little", signed=True)
    file.write_bytes(data)
    with pytest.raises(lance_format.CorruptFileError, match="has -5 values"):
        lance_format.dataset(path).to_table(["l"])


def _has_no_statistics(kind: pa.DataType) -> bool:
    """Return whether pylance writes no bounds of a type in 0.1."""
    is_time = pa.types.is_time(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
    return is_time or kind in (pa.float16(), pa.binary(2), pa.decimal256(60, 5))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32))
@example(2388)
def test_statistics_prune_no_row_that_matches_a_predicate(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("zones") / "t"
    table = random_table(rng, null_structs=False)
    numbers = pa.array([rng.choice([None, -5, 0, 7]) for _ in range(table.num_rows)], pa.int64())
    table = table.add_column(0, "n", numbers)  # Of two columns at least there are statistics.
    lance.write_dataset(table, str(path), data_storage_version="legacy", max_rows_per_group=rng.choice([3, 10, 64]))
    file = CountedFile(next((path / "data").iterdir()))
    found = file.reader.zone_statistics(file.columns())
    assert len(found) >= 2
    kinds = {(name,): table.schema.field(name).type for name in table.column_names[:-1]}
    kinds |= {("st", "in", field.name): field.type for field in table.schema.field("st").type.field("in").type}
    assert found.keys() == {path for path, kind in kinds.items() if not _has_no_statistics(kind)}
    (batch,) = lance_format.dataset(path).to_table().combine_chunks().to_batches()
    for statistics in found.values():
        assert int(statistics.num_rows.sum()) == table.num_rows
    for _ in range(10):
        check_pruning(rng, batch, found)


def _ascending(rng: random.Random, arrow_type: pa.DataType, num_rows: int) -> pa.Array:
    """Return values that ascend, more or less, so that batches differ; some may be null, or empty strings."""
    numbers = [row // 10 + rng.randint(0, 3) for row in range(num_rows)]
    values = pa.array(numbers, pa.int64())
    if pa.types.is_binary(arrow_type) or pa.types.is_string(arrow_type):
        texts = [("" if rng.random() < 0.02 else f"{number:03}") for number in numbers]
        values = pa.array(texts).cast(arrow_type)
    elif pa.types.is_boolean(arrow_type):
        values = pc.greater(values, 20)
    elif arrow_type == pa.int8():
        values = pc.min_element_wise(values, 100).cast(arrow_type)
    else:
        values = values.cast(pa.int32()).cast(arrow_type)
    if rng.random() < 0.5:
        mask = pa.array([rng.random() < 0.05 for _ in range(num_rows)])
        values = pc.if_else(mask, pa.scalar(None, arrow_type), values)
    return values


def test_statistics_prune(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    data = pa.table(
        {"id": range(1000), "s": [f"{row:04}" for row in range(1000)], "f": [row / 7 for row in range(1000)]}
    )
    lance.write_dataset(data, path, data_storage_version="legacy", max_rows_per_group=100)
    ours = lance_format.dataset(path)
    file = next(iter((tmp_path / "t" / "data").iterdir()))
    counted = CountedFile(file)
    zones = counted.reader.zone_statistics(counted.columns())
    assert zones["id",].lower.to_pylist() == list(range(0, 1000, 100))
    assert zones["id",].upper.to_pylist() == list(range(99, 1000, 100))
    assert zones["s",].upper.to_pylist()[:2] == ["0099", "0199"]
    assert set(zones) == {("id",), ("s",), ("f",)}
    for where, found in (("id = 555", 1), ("s = '0555'", 1), ("id > 990 and f < 200", 9)):
        assert ours.count_rows(where) == found


def test_files_by_themselves(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    data = pa.table({"s": [{"x": row, "l": [str(row)] * (row % 3)} for row in range(50)], "n": range(50)})
    lance.write_dataset(data, path, data_storage_version="legacy", max_rows_per_group=20)
    reader = LanceFileReader(next(iter((tmp_path / "t" / "data").iterdir())))
    assert reader.read_all(batch_size=7).to_table().equals(data)
    assert reader.take_rows([3, 30]).to_table().equals(data.take([3, 30]))
    metadata = reader.metadata()
    assert (metadata.major_version, metadata.minor_version, metadata.num_rows) == (0, 2, 50)
    assert [len(column.pages) for column in metadata.columns] == [3] * 5
