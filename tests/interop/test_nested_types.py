"""Structs, lists and maps of any nesting, in both directions between this library and pylance."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import lance.file
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceOperation
from lance_format.errors import NotSupportedError, SchemaMismatchError
from lance_format.file import LanceFileReader, LanceFileWriter
from tests.arrays import same_values
from tests.encoding_options import fitting
from tests.nested_arrays import RandomValues, random_type

_POINT = pa.struct([("x", pa.int32()), ("name", pa.string())])


def _check_rows(reader: LanceFileReader, table: pa.Table, rng: random.Random) -> None:
    sizes = [size for size in (1, 7, 100, 10_000) if table.num_rows <= 2000 * size]
    found = reader.read_all(batch_size=rng.choice(sizes)).to_table()
    found.validate(full=True)
    assert found.schema == table.schema
    assert same_values(found, table)
    rows = sorted(rng.choices(range(table.num_rows), k=8))
    taken = reader.take_rows(rows).to_table()
    taken.validate(full=True)
    assert same_values(taken, table.take(rows))
    start = rng.randint(0, table.num_rows - 1)
    count = rng.randint(0, table.num_rows - start)
    ranged = reader.read_range(start, count).to_table()
    ranged.validate(full=True)
    assert same_values(ranged, table.slice(start, count))


def _check_both(table: pa.Table, version: str, path: Path, rng: random.Random) -> None:
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    _check_rows(LanceFileReader(path), table, rng)
    theirs = lance.file.LanceFileReader(str(path))
    assert same_values(theirs.read_all(batch_size=10_000).to_table(), table)
    rows = sorted(rng.sample(range(table.num_rows), k=min(8, table.num_rows)))
    assert same_values(theirs.take_rows(rows).to_table(), table.take(rows))
    with lance.file.LanceFileWriter(str(path), table.schema, version=version) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    _check_rows(LanceFileReader(path), table, rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(180))
def test_random_nesting(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    version = rng.choice(["2.0", "2.1", "2.2"])
    arrow_type = random_type(rng, rng.randint(1, 4), maps=version == "2.2")
    longest = rng.choice([1, 3, 20, 200])
    num_rows = rng.choice([1, 3, 40, 300] if longest == 200 else [1, 3, 40, 300, 1500])
    nulls, empties = rng.choice([0, 0, 0.1, 0.5, 1]), rng.choice([0, 0, 0.2, 0.9])
    values = RandomValues(rng, nulls, empties, longest, null_structs=version != "2.0")
    _check_both(pa.table({"c": values.array(arrow_type, num_rows)}), version, tmp_path / "n.lance", rng)


@pytest.mark.parametrize("seed", range(12))
def test_fixed_size_lists_of_structs(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    inner = rng.choice([_POINT, pa.struct([("p", _POINT)]), pa.struct([("l", pa.list_(_POINT, 2))])])
    arrow_type = pa.list_(inner, rng.randint(1, 3))
    if seed % 3 == 0:
        arrow_type = pa.struct([("only", arrow_type)])
    values = RandomValues(rng, rng.choice([0, 0.1, 0.5]), 0, 1)
    table = pa.table({"c": values.array(arrow_type, rng.choice([1, 5, 300]))})
    _check_both(table, "2.2", tmp_path / "f.lance", rng)


def test_many_rows_and_pages(tmp_path: Path) -> None:
    rng = random.Random(0)
    piece = RandomValues(rng, 0.1, 0.2, 6).array(pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())])), 3000)
    table = pa.table({"c": pa.concat_arrays([piece] * 60)})
    path = tmp_path / "m.lance"
    with LanceFileWriter(path, table.schema, max_page_bytes=1 << 20) as writer:
        writer.write_batch(table)
    assert len(LanceFileReader(path).metadata().columns[0].pages) > 5
    _check_rows(LanceFileReader(path), table, rng)
    assert lance.file.LanceFileReader(str(path)).read_all(batch_size=10_000).to_table().equals(table)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_more_empty_lists_than_a_chunk_can_count(version: str, tmp_path: Path) -> None:
    rows = [[1]] + [[]] * 200_000 + [[2, 3]] + [None] * 70_000 + [[4]]
    table = pa.table({"c": pa.array(rows, pa.list_(pa.int32()))})
    _check_both(table, version, tmp_path / "e.lance", random.Random(0))


def test_what_lies_beneath_nulls_is_not_stored(tmp_path: Path) -> None:
    secret = pa.StructArray.from_arrays(
        [pa.array(["a", "SECRET", "c"]), pa.array([[1], [2, 2, 2], [3]])],
        ["s", "l"],
        mask=pa.array([False, True, False]),
    )
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4], pa.int32()),
        pa.array(["x", "SECRET", "SECRET", "y"]),
        mask=pa.array([False, True, False]),
    )
    table = pa.table({"struct": secret, "list": hidden})
    with LanceFileWriter(tmp_path / "s.lance", table.schema) as writer:
        writer.write_batch(table)
    assert b"SECRET" not in (tmp_path / "s.lance").read_bytes()
    for reader in (LanceFileReader(tmp_path / "s.lance"), lance.file.LanceFileReader(str(tmp_path / "s.lance"))):
        assert reader.read_all().to_table().to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("arrow_type", "version"),
    [
        (pa.map_(pa.string(), pa.int32()), "2.0"),
        (pa.list_(_POINT, 2), "2.0"),
        (pa.map_(pa.string(), pa.int32()), "2.1"),
        (pa.list_(_POINT, 2), "2.1"),
        (pa.list_(pa.list_(_POINT, 2)), "2.2"),
        (pa.list_(pa.struct([("l", pa.list_(pa.int32()))]), 2), "2.2"),
        (pa.struct([("f", pa.list_(_POINT, 2)), ("other", pa.int32())]), "2.2"),
        (pa.list_(pa.list_(pa.int32()), 2), "2.2"),
    ],
    ids=str,
)
def test_nesting_that_pylance_cannot_read_is_not_written(arrow_type: pa.DataType, version: str, tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match="'c"):
        LanceFileWriter(tmp_path / "n.lance", pa.schema([("c", arrow_type)]), version=version)
    assert not list(tmp_path.iterdir())


def test_nested_fields_that_must_not_be_null(tmp_path: Path) -> None:
    arrow_type = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    table = pa.table({"c": pa.array([{"x": 1}, {"x": None}], arrow_type)})
    writer = LanceFileWriter(tmp_path / "n.lance", table.schema)
    writer.write_batch(table)
    with pytest.raises(SchemaMismatchError, match=r"'x' of column 'c\.x' must not be null"):
        writer.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("layout", ["fullzip", "miniblock"])
@pytest.mark.parametrize("seed", range(12))
def test_layouts_that_are_asked_for(seed: int, layout: str, version: str, tmp_path: Path) -> None:
    rng = random.Random(seed)
    leaf = rng.choice([pa.int32(), pa.string(), pa.bool_(), pa.list_(pa.float32(), 3), pa.binary(300)])
    arrow_type = rng.choice([leaf, leaf, pa.list_(leaf), pa.struct([("x", leaf)]), pa.list_(pa.list_(leaf))])
    values = RandomValues(rng, rng.choice([0, 0.1, 0.5]), 0.2, 5, null_structs=version != "2.0")
    metadata = {"lance-encoding:structural-encoding": layout, "lance-encoding:dict-divisor": "1000000"}
    schema = pa.schema([pa.field("c", arrow_type, metadata=fitting(arrow_type, metadata))])
    table = pa.table([values.array(arrow_type, rng.choice([1, 10, 500]))], schema=schema)
    _check_both(table, version, tmp_path / "l.lance", rng)


def test_lists_that_must_not_be_null_below_structs_that_are(tmp_path: Path) -> None:
    inner = pa.field("l", pa.list_(pa.int64()), nullable=False)
    table = pa.table({"c": pa.array([None, {"l": [1]}, {"l": []}], pa.struct([inner]))})
    _check_both(table, "2.2", tmp_path / "n.lance", random.Random(0))


def test_fields_of_null_structs_are_null_on_their_own(tmp_path: Path) -> None:
    """Also where the fields hold no null themselves: pylance reads such a field alone when it filters."""
    numbers = pa.array([1, 2, 3, 4])
    inner = pa.StructArray.from_arrays([numbers, pa.array([[n, n] for n in range(4)])], ["n", "l"])
    outer = pa.StructArray.from_arrays([inner], ["b"], mask=pa.array([False, True, False, False]))
    lance_format.write_dataset(pa.table({"a": outer}), tmp_path / "t")
    reference = lance.dataset(str(tmp_path / "t"))
    for table in (reference, lance_format.dataset(tmp_path / "t")):
        assert table.count_rows("a.b.n < 9") == 3
        assert table.count_rows("a.b.n is null") == 1
        assert table.count_rows("a.b is null") == 1
    stored = reference.to_table()["a"].chunk(0).field("b")
    assert (stored.null_count, stored.field("n").null_count, stored.field("l").null_count) == (1, 1, 1)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("num_rows", [2, 3])
def test_nulls_whose_parts_share_a_buffer(tmp_path: Path, version: str, num_rows: int) -> None:
    """Arrow allocates one buffer for an array of nulls, whose size is no multiple of the width of each part."""
    kinds = {
        "words": pa.list_(pa.large_list(pa.string())),
        "key": pa.binary(9),
        "number": pa.int64(),
        "price": pa.decimal128(20, 2),
        "text": pa.large_string(),
    }
    nulls = pa.nulls(num_rows, pa.struct(list(kinds.items())))
    parts = {name: nulls.field(position) for position, name in enumerate(kinds)}
    rows = pa.table({"id": range(num_rows), "all": nulls, **parts})
    table = lance_format.write_dataset(rows, tmp_path, data_storage_version=version)
    table.update({"words": "null", "all": "null"}, where="id >= 0")
    assert table.to_table() == rows == lance.dataset(tmp_path).to_table()
    for given in ("text IN ('a', 'b')", "price = 1.5", "all.price < 3", "all.text = 'a'", "number IN (1, 2)"):
        assert table.count_rows(given) == 0
    for kind, column in (("BLOOMFILTER", "text"), ("NGRAM", "text"), ("INVERTED", "text"), ("BTREE", "number")):
        table.create_scalar_index(column, kind, name=f"{kind} of {column}")
    table.merge_insert("text").when_not_matched_insert_all().execute(rows)
    assert table.count_rows() == 2 * num_rows


def test_nulls_in_lists_of_lists_are_replaced_in_place(tmp_path: Path) -> None:
    lists = [[[None] * 7, [None]], None, [], [[]]]
    rows = pa.table({"id": range(4), "a": pa.array(lists, pa.list_(pa.list_(pa.null())))})
    table = lance_format.write_dataset(rows, tmp_path)
    fragment, fields = table.get_fragments()[0].update_columns(rows.slice(0, 1).set_column(0, "id", [[3]]), "id")
    operation = LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    table = lance_format.LanceDataset.commit(tmp_path, operation, read_version=1)
    assert table.to_table()["a"].to_pylist() == [*lists[:3], lists[0]]
    assert lance.dataset(tmp_path).to_table() == table.to_table()
