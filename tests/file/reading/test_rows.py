"""Reading rows that lie close together, far apart, or both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format.errors import InvalidInputError
from lance_format.file import LanceFileWriter
from lance_format.file.reading import single_rows
from lance_format.structural.mini_block import MiniBlockPage
from tests.file.counting import CountedFile

_ROWS = 20_000
_RNG = np.random.default_rng(3)


def _table() -> pa.Table:
    words = [None if row % 11 == 0 else f"text {row * 7919}" for row in range(_ROWS)]
    lists = pa.array([list(range(row % 4)) if row % 9 else None for row in range(_ROWS)], pa.list_(pa.int32()))
    return pa.table(
        {
            "id": _RNG.integers(0, 2**60, _ROWS),
            "word": words,
            "few": pa.array([f"item {row % 17}" for row in range(_ROWS)]).dictionary_encode(),
            "list": lists,
            "struct": [{"a": row, "b": f"b{row}"} if row % 7 else None for row in range(_ROWS)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(_RNG.random(_ROWS * 64, np.float32)), 64),
            "large": [f"{row}" * 50 for row in range(_ROWS)],
        }
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> tuple[CountedFile, pa.Table]:
    path = tmp_path_factory.mktemp("rows") / "a.lance"
    table = _table()
    with LanceFileWriter(path, table.schema, max_page_bytes=200_000) as writer:
        for batch in table.to_batches(max_chunksize=5000):
            writer.write_batch(batch)
    return CountedFile(path), table


def _read(file: CountedFile, rows: np.ndarray, batch_size: int = 1000) -> pa.Table:
    columns = file.columns()
    batches = list(file.reader.take_batches(columns, rows, batch_size=batch_size))
    assert all(0 < batch.num_rows <= batch_size for batch in batches)
    schema = pa.schema([column.field.to_arrow() for column in columns])
    return pa.Table.from_batches(batches, schema)


@st.composite
def _selections(draw: st.DrawFn) -> np.ndarray:
    """Rows of stretches of different densities."""
    chosen = np.zeros(_ROWS, np.bool_)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, _ROWS - 1))
        stop = start + draw(st.sampled_from([1, 2, 100, 4096, 10_000]))
        share = draw(st.sampled_from([0.001, 0.05, 0.3, 0.9, 1.0]))
        chosen[start:stop] |= rng.random(chosen[start:stop].size) < share
    return np.flatnonzero(chosen)


@settings(max_examples=40)
@given(rows=_selections())
def test_rows_of_any_density(file: tuple[CountedFile, pa.Table], rows: np.ndarray) -> None:
    counted, table = file
    found, expected = _read(counted, rows), table.take(rows)
    assert found.drop_columns("few").equals(expected.drop_columns("few"))
    assert found["few"].cast(pa.string()).equals(expected["few"].cast(pa.string()))


def test_neighbours_cost_what_a_range_costs(file: tuple[CountedFile, pa.Table]) -> None:
    counted, _ = file
    rows = np.arange(4000, 16_000)
    counted._cost()
    assert _read(counted, rows).num_rows == rows.size
    _, size = counted._cost()
    counted.read(4000, 16_000)
    counted.read(4000, 16_000)
    counted._cost()
    _, _, expected = counted.read(4000, 16_000)
    assert size < expected * 1.1 + 100_000


def test_few_of_many_large_rows(file: tuple[CountedFile, pa.Table], monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of rows decoded at once depends on their actual size, once it is known."""
    monkeypatch.setattr(single_rows, "_FIRST_TAKE_BYTES", 4096)
    monkeypatch.setattr(single_rows, "_TAKE_BYTES", 32_768)
    counted, table = file
    rows = np.arange(0, _ROWS, 3)
    columns = counted.columns(["large"])
    batches = list(counted.reader.take_batches(columns, rows, batch_size=_ROWS))
    assert max(batch.nbytes for batch in batches) < 3 * 32_768
    assert pa.Table.from_batches(batches)["large"].to_pylist() == table["large"].take(rows).to_pylist()


def test_rows_that_do_not_exist(file: tuple[CountedFile, pa.Table]) -> None:
    for rows in ([-1], [_ROWS], [5, 4]):
        with pytest.raises(InvalidInputError, match="rows to take must ascend"):
            _read(file[0], np.array(rows))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[CountedFile, pa.Table]:
    """Pages whose single rows are read together."""
    path = tmp_path_factory.mktemp("pages") / "a.lance"
    chance = np.random.default_rng(0)
    count = 400_000
    few = chance.integers(0, 20, count) + np.arange(count) // 100_000 * 1000
    table = pa.table(
        {
            "number": pa.array(chance.integers(0, 2**40, count), mask=chance.random(count) < 0.2),
            "few texts": pa.array([f"item {number}" for number in few]),
            "few numbers": pa.array(few * 10**15),
            "key": pa.array([f"item {number}" for number in few]).dictionary_encode(),
            "text": [f"value {number}" for number in chance.integers(0, 10**9, count)],
            "flag": chance.random(count) < 0.5,
            "pair": pa.FixedSizeListArray.from_arrays(
                pa.array([{"a": number} for number in range(2 * count)], pa.struct([("a", pa.int64())])), 2
            ),
        }
    )
    with LanceFileWriter(path, table.schema, version="2.2", max_page_bytes=1_000_000) as writer:
        writer.write_batch(table)
    return CountedFile(path), table


@pytest.mark.parametrize("rows", [[0, 399_999], [5, 5, 200_000], [*range(100_000, 100_500), 350_000]])
def test_rows_of_several_pages(pages: tuple[CountedFile, pa.Table], rows: list[int]) -> None:
    counted, table = pages
    for _ in range(2):  # Other rows make some chunk tables known before the third selection.
        found, _, _ = counted.take(np.array(rows))
        _assert_same(found, table.take(rows))
    every = np.arange(11, table.num_rows, 401)
    _assert_same(counted.take(every)[0], table.take(every))


def test_pages_of_one_form_are_decoded_together(
    pages: tuple[CountedFile, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, table = pages
    decoded = []
    decode = MiniBlockPage._decode
    monkeypatch.setattr(
        MiniBlockPage, "_decode", lambda *given, **named: decoded.append(given) or decode(*given, **named)
    )
    rows = np.arange(0, table.num_rows, 1000)
    for name in ("number", "few texts", "few numbers", "text", "flag"):
        decoded.clear()
        counted.take(rows, [name])
        assert len(decoded) == 1, name


def _assert_same(found: pa.Table, expected: pa.Table) -> None:
    assert found.drop_columns("key").equals(expected.drop_columns("key"))
    assert found["key"].cast(pa.string()).equals(expected["key"].cast(pa.string()))


def test_texts_of_few_stored_bytes_are_taken_in_small_batches(tmp_path: Path) -> None:
    texts = pa.array([letter * 60_000 for letter in "abc"])
    table = pa.table({"text": texts.take(pa.array(np.arange(6000) % 3))})
    with LanceFileWriter(tmp_path / "a.lance", table.schema, version="2.2") as writer:
        writer.write_batch(table)
    counted = CountedFile(tmp_path / "a.lance")
    rows = np.arange(0, 6000, 2)
    batches = list(counted.reader.take_batches(counted.columns(["text"]), rows, batch_size=8192))
    assert max(batch.nbytes for batch in batches) < 70 << 20
    assert pa.Table.from_batches(batches).equals(table.take(rows))
