"""Arrow dictionary columns, in both directions between this library and pylance."""

from __future__ import annotations

from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter
from tests.arrays import make_array, same_values

_KEYS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
_VALUES = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.bool_(), pa.int8(), pa.uint64()]
_VALUES += [pa.float16(), pa.float32(), pa.float64()]


def _dictionary(keys: list[int | None], items: pa.Array, key_type: pa.DataType) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(keys, key_type), items)


@st.composite
def _dictionaries(draw: st.DrawFn, key_type: pa.DataType, value_type: pa.DataType, num_rows: int) -> pa.Array:
    """Return a slice of an array whose items repeat, are null, or are not used."""
    num_items = draw(st.integers(0, 12))
    nulls = draw(st.sampled_from(["no nulls", "some nulls", "all nulls"]))
    items = make_array(value_type, num_items, nulls, "small", draw(st.integers(0, 99))) if num_items else None
    items = pa.array([], value_type) if items is None else items
    keys = st.none() | st.integers(0, num_items - 1) if num_items else st.none()
    before = draw(st.integers(0, 3))
    array = _dictionary(draw(st.lists(keys, min_size=num_rows + before, max_size=num_rows + before)), items, key_type)
    return array.slice(before)


@st.composite
def _columns(draw: st.DrawFn) -> tuple[pa.ChunkedArray, str]:
    """Return chunks with separate dictionaries, possibly inside of lists and structs, and a file version."""
    version = draw(st.sampled_from(["2.0", "2.1", "2.2"]))
    key_type, value_type = draw(st.sampled_from(_KEYS)), draw(st.sampled_from(_VALUES))
    shape = draw(st.sampled_from(["plain", "struct", "list", "list of struct"]))
    chunks = []
    for _ in range(draw(st.integers(1, 3))):
        num_rows = draw(st.integers(1, 40))
        array = draw(_dictionaries(key_type, value_type, num_rows))
        if "struct" in shape:
            nulls = st.booleans() if version != "2.0" else st.just(False)
            mask = pa.array(draw(st.lists(nulls, min_size=num_rows, max_size=num_rows)))
            array = pa.StructArray.from_arrays([array], ["d"], mask=mask)
        if "list" in shape:
            cuts = sorted(draw(st.lists(st.integers(0, num_rows), max_size=5)))
            offsets = pa.array([0, *[cut if draw(st.booleans()) else None for cut in cuts], num_rows], pa.int32())
            array = pa.ListArray.from_arrays(offsets, array)
        chunks.append(array)
    return pa.chunked_array(chunks), version


def _check(table: pa.Table, path: Path, version: str, **limits: int) -> None:
    with LanceFileWriter(path, table.schema, version=version, **limits) as writer:
        writer.write_batch(table)
    ours = LanceFileReader(path).read_all().to_table()
    ours.validate(full=True)
    assert ours.schema == table.schema
    assert same_values(ours, table)
    theirs = lance.file.LanceFileReader(str(path))
    assert same_values(theirs.read_all().to_table(), table)
    assert theirs.read_all().to_table().schema == table.schema
    rows = list(range(0, table.num_rows, max(3, table.num_rows // 300)))
    expected = [found for row in rows for found in table.slice(row, 1).to_pylist()]
    taken = LanceFileReader(path).take_rows(rows).to_table()
    taken.validate(full=True)
    assert taken.to_pylist() == theirs.take_rows(rows).to_table().to_pylist() == expected


@pytest.mark.slow
@settings(max_examples=120)
@given(_columns())
def test_columns_that_we_write(tmp_path_factory: pytest.TempPathFactory, drawn: tuple[pa.ChunkedArray, str]) -> None:
    column, version = drawn
    _check(pa.table({"c": column}), tmp_path_factory.getbasetemp() / "ours.lance", version)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("value_type", [pa.float16(), pa.float64(), pa.string()], ids=str)
def test_no_value_at_all(value_type: pa.DataType, version: str, tmp_path: Path) -> None:
    kind = pa.dictionary(pa.int8(), value_type)
    column = pa.chunked_array([pa.nulls(0, kind), pa.nulls(3, kind)])
    _check(pa.table({"c": column}), tmp_path / "nulls.lance", version)
    lists = pa.ListArray.from_arrays(pa.array([0, 0, None, 0], pa.int32()), pa.nulls(0, kind))
    _check(pa.table({"c": lists}), tmp_path / "lists.lance", version)


@pytest.mark.slow
@settings(max_examples=60)
@given(_columns())
def test_columns_that_pylance_writes(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[pa.ChunkedArray, str]
) -> None:
    column, version = drawn
    path = tmp_path_factory.getbasetemp() / "theirs.lance"
    table = pa.table({"c": column.chunk(0)})
    with lance.file.LanceFileWriter(str(path), table.schema, version=version) as writer:
        writer.write_batch(table.to_batches()[0])
    ours = LanceFileReader(path).read_all(batch_size=7).to_table()
    ours.validate(full=True)
    assert ours.schema == table.schema
    assert ours.to_pylist() == lance.file.LanceFileReader(str(path)).read_all().to_table().to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("key_type", _KEYS, ids=str)
def test_many_rows_and_pages(key_type: pa.DataType, version: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    # pylance cannot read a batch across pages that have more items together than the keys can number
    items = pa.array([f"value {number}" for number in range(60)])
    chunks = [
        _dictionary(rng.integers(0, 60, 30_000).tolist(), items, key_type),
        _dictionary(np.repeat(rng.integers(0, 60, 100), 300).tolist(), items, key_type),
        _dictionary([None if row % 7 == 0 else 3 for row in range(30_000)], items, key_type),
    ]
    table = pa.table({"c": pa.chunked_array(chunks)})
    _check(table, tmp_path / "m.lance", version, data_cache_bytes=20_000, max_page_bytes=20_000)
    assert len(LanceFileReader(tmp_path / "m.lance").metadata().columns[0].pages) > 2


@pytest.mark.parametrize("value_type", [pa.string(), pa.float16()], ids=str)
def test_more_values_than_the_keys_can_number_become_pages(value_type: pa.DataType, tmp_path: Path) -> None:
    items = [pa.array(np.arange(first, first + 100)).cast(pa.float32()).cast(value_type) for first in (0, 100)]
    chunks = [_dictionary([*range(100), None], part, pa.int8()) for part in items]
    table = pa.table({"c": pa.chunked_array(chunks)})
    with LanceFileWriter(tmp_path / "k.lance", table.schema) as writer:
        writer.write_batch(table)
    reader = LanceFileReader(tmp_path / "k.lance")
    assert [page.num_rows for page in reader.metadata().columns[0].pages] == [101, 101]
    found = reader.read_all(batch_size=1000).to_table()
    found.validate(full=True)
    assert found.to_pylist() == table.to_pylist()
    assert reader.take_rows([1, 100, 150]).to_table().to_pylist() == [table.to_pylist()[row] for row in (1, 100, 150)]
    with pytest.raises(NotSupportedError, match=r"k\.lance: column 'c': .*too many for one array"):
        reader.take_rows(list(range(202)))
    theirs = lance.file.LanceFileReader(str(tmp_path / "k.lance"))
    assert theirs.read_range(101, 101).to_table().to_pylist() == table.slice(101).to_pylist()


def test_items_that_no_row_uses_are_not_stored(tmp_path: Path) -> None:
    items = pa.array(["here", "SECRET", "there", "SECRET"])
    table = pa.table({"c": _dictionary([0, 2, None], items, pa.int32())})
    _check(table, tmp_path / "u.lance", "2.1")
    assert b"SECRET" not in (tmp_path / "u.lance").read_bytes()


@pytest.mark.slow
def test_more_empty_lists_than_a_page_can_count(tmp_path: Path) -> None:
    items = _dictionary([0, 1], pa.array(["a", "b"]), pa.int8())
    lists = pa.ListArray.from_arrays(pa.array([0, 1] + [1] * 200_000 + [2], pa.int32()), items)
    _check(pa.table({"c": lists}), tmp_path / "e.lance", "2.2")


def test_that_a_dictionary_is_ordered_is_lost(tmp_path: Path) -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "b"]), ordered=True)
    table = pa.table({"c": array})
    with LanceFileWriter(tmp_path / "o.lance", table.schema) as writer:
        writer.write_batch(table)
    found = LanceFileReader(tmp_path / "o.lance").read_all().to_table()
    assert found.schema == lance.file.LanceFileReader(str(tmp_path / "o.lance")).read_all().to_table().schema
    assert found.schema.field("c").type == pa.dictionary(pa.int64(), pa.string())


def test_keys_without_an_item_are_refused(tmp_path: Path) -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 5]), pa.array(["a"]), safe=False)
    writer = LanceFileWriter(tmp_path / "w.lance", pa.schema([("c", array.type)]))
    writer.write_batch(pa.record_batch([array], ["c"]))
    with pytest.raises(InvalidInputError, match="key 5, but 1 items"):
        writer.close()
    assert not list(tmp_path.iterdir())
