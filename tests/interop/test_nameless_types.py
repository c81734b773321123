"""Types that the format has no name for, though it has one for their values: these are stored."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import lance
import lance.file
import pyarrow as pa
import pytest

import lance_format
from lance_format.file import LanceFileReader, LanceFileWriter

_VALUES = {
    "date32": pa.array([datetime.date(2020, 1, 1), None, datetime.date(1, 1, 1)]),
    "date64": pa.array([0, None, 86_400_000], pa.date64()),
    "time": pa.array([datetime.time(1, 2, 3), None, datetime.time(0)]),
    "timestamp": pa.array([0, None, -1], pa.timestamp("us")),
    "zoned": pa.array([0, None, 2**40], pa.timestamp("ns", "Europe/Berlin")),
    "duration": pa.array([1, None, -1], pa.duration("s")),
    "decimal": pa.array([Decimal("1.25"), None, Decimal("-7.00")]),
    "wide decimal": pa.array([Decimal("1.25"), None, Decimal("-7.00")], pa.decimal256(60, 2)),
    "bytes": pa.array([b"abc", None, b"xyz"], pa.binary(3)),
}


def _dictionary(values: pa.Array) -> pa.DictionaryArray:
    keys = pa.array([0, 1, None, 2, 2], pa.int8())  # Both a key and an item are null.
    return pa.DictionaryArray.from_arrays(keys, values)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("name", _VALUES)
def test_dictionaries_are_stored_as_their_values(tmp_path: Path, name: str, version: str) -> None:
    keyed = _dictionary(_VALUES[name])
    plain = keyed.cast(keyed.type.value_type)
    offsets = pa.array([0, 2, 5])
    given = {
        "x": keyed.slice(3),
        "inside": pa.StructArray.from_arrays([keyed.slice(3)], ["y"]),
        "items": pa.ListArray.from_arrays(offsets, keyed),
    }
    expected = pa.table(
        {
            "x": plain.slice(3),
            "inside": pa.StructArray.from_arrays([plain.slice(3)], ["y"]),
            "items": pa.ListArray.from_arrays(offsets, plain),
        }
    )
    table = pa.table(given)
    with LanceFileWriter(tmp_path / "a.lance", table.schema, version=version) as writer:
        writer.write_batch(table)
    for reader in (LanceFileReader(tmp_path / "a.lance"), lance.file.LanceFileReader(str(tmp_path / "a.lance"))):
        assert reader.read_all().to_table() == expected
    ours = lance_format.write_dataset(table, tmp_path / "t", data_storage_version=version)
    assert ours.schema == expected.schema
    ours.insert(table)
    ours.insert(expected)
    assert ours.to_table() == lance.dataset(tmp_path / "t").to_table() == pa.concat_tables([expected] * 3)


def test_maps_with_sorted_keys_are_stored_as_maps(tmp_path: Path) -> None:
    date = datetime.date(2020, 1, 1)
    rows = [[("a", 1), ("b", None)], None, [], [("c", 3)]]
    sorted_maps = pa.array(rows, pa.map_(pa.string(), pa.int64(), keys_sorted=True))
    dates = pa.MapArray.from_arrays(
        pa.array([0, 1, 1, 1, 2]), pa.array(["k", "l"]), pa.array([date, None]).dictionary_encode()
    )
    table = pa.table({"m": sorted_maps, "inside": pa.StructArray.from_arrays([sorted_maps], ["x"]), "d": dates})
    ours = lance_format.write_dataset(table, tmp_path / "t")
    for found in (ours.to_table(), lance.dataset(tmp_path / "t").to_table()):
        assert found.schema.field("m").type == pa.map_(pa.string(), pa.int64())
        assert found.schema.field("d").type == pa.map_(pa.string(), pa.date32())
        assert found["m"].to_pylist() == rows
        assert found["inside"].to_pylist() == [{"x": row} for row in rows]
        assert found["d"].to_pylist() == [[("k", date)], [], [], [("l", None)]]
    ours.insert(table)
    assert ours.to_table()["m"].to_pylist() == rows * 2


def test_changes_take_them_too(tmp_path: Path) -> None:
    dates = pa.array([datetime.date(2020, 1, day) for day in (1, 2, 3)])
    table = lance_format.write_dataset(pa.table({"k": [1, 2, 3], "d": dates.dictionary_encode()}), tmp_path / "t")
    source = pa.table({"k": [3, 4], "d": dates.slice(0, 2).dictionary_encode()})
    table.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(source)
    table.add_columns(pa.table({"e": _dictionary(dates).slice(0, 4)}).to_reader())
    found = lance.dataset(tmp_path / "t").to_table().sort_by("k")
    assert found["d"].to_pylist() == [dates[0].as_py(), dates[1].as_py(), dates[0].as_py(), dates[1].as_py()]
    assert found.schema.field("e").type == pa.date32()
    by_date = pa.table({"k": [9], "d": dates.slice(1, 1).dictionary_encode()})
    table.merge_insert("d").when_matched_update_all().execute(by_date)
    assert sorted(table.to_table(filter="d = date '2020-01-02'")["k"].to_pylist()) == [9, 9]
