"""Zones of files: pylance harvests ours for its zone map index, and we read those that it writes."""

from __future__ import annotations

import io
import random
from decimal import Decimal
from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import lance_format
from lance_format.errors import InvalidInputError
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.file.container.zone_entries import STATISTICS_KEY
from tests.expressions.zone_reference import ORDERED_TYPES, random_values, statistics_of
from tests.file.counting import CountedFile
from tests.file.zones.test_zone_statistics import same, sizes_of, unsigned_zeros
from tests.interop.test_table_pylance import assert_same

_ZONE = 8192
_ROWS = 3 * _ZONE + 100
_SEEDED_TYPES = [arrow_type for arrow_type in ORDERED_TYPES if not pa.types.is_fixed_size_binary(arrow_type)]
_VERSIONS = ["2.0", "2.1", "2.2"]
_NAN = float("nan")


def _clustered(start: int, rows: int, nan: float = 0.0) -> pa.Table:
    """Return rows whose columns all ascend, with nulls and a share of NaN among them."""
    rng = np.random.default_rng(start)
    places = np.arange(start, start + rows)

    def column(values: object, arrow_type: pa.DataType | None = None) -> pa.Array:
        array = pa.array(values, mask=rng.random(rows) < 0.1)
        return array if arrow_type is None else array.cast(arrow_type)

    return pa.table(
        {
            "id": places,
            "i": column(places // 3),
            "f": column(np.where(rng.random(rows) < nan, _NAN, places * 1.5)),
            "s": column([f"value {place:08}" for place in places.tolist()]),
            "d": column((places // 100).astype(np.int32), pa.date32()),
            "ts": column(places * 1000, pa.timestamp("us")),
            "st": pa.array([{"x": place} for place in places.tolist()]),
        }
    )


_FILTERS = [
    *("i = 9000", "i > 15000", "i < 100", "i != 5", "i in (1, 9000)", "i not in (1, 2)", "i is null", "i is not null"),
    *("not (i > 100)", "f > 70000.0", "f < 10.0", "f is null", "not (f < 74000.0)", "isnan(f)", "f <> 45.0"),
    *("s = 'value 00045000'", "s like 'value 0004%'", "s is null", "not (s is null)", "s > 'value 00049'"),
    *("d = date '1971-03-01'", "d > date '1971-05-01'", "d is null", "ts < timestamp '1970-01-01 00:00:10'"),
    *("ts is not null", "i is null and s is null", "i is null or s > 'value 00049'", "not (i = 5) and f is not null"),
]


def data_file(path: Path) -> Path:
    """Return the only data file of the last fragment."""
    (data_file,) = lance.dataset(str(path)).get_fragments()[-1].data_files()
    return path / "data" / data_file.path


def without_pages(path: Path) -> bytes:
    """Return the bytes of a file with nonsense in the place of its pages."""
    data = bytearray(path.read_bytes())
    reader = LanceFileReader(path)
    for column in reader.metadata().columns:
        for page in column.pages:
            for buffer in page.buffers:
                data[buffer.position : buffer.position + buffer.size] = b"\xee" * buffer.size
    return bytes(data)


@pytest.mark.parametrize("version", _VERSIONS)
def test_an_index_takes_in_our_fragments_by_their_seeds_alone(tmp_path: Path, version: str) -> None:
    first, second = _clustered(0, 20_000, nan=0.01), _clustered(20_000, 30_000, nan=0.01)
    table = lance.write_dataset(first, tmp_path / "a", data_storage_version=version)
    for column in ("i", "f", "s", "d", "ts"):
        table.create_scalar_index(column, IndexConfig("zonemap", {"use_seeds": True}))
    lance_format.write_dataset(second, tmp_path / "a", mode="append")
    path = data_file(tmp_path / "a")
    whole = path.read_bytes()
    path.write_bytes(without_pages(path))
    lance.dataset(str(tmp_path / "a")).optimize.optimize_indices()
    path.write_bytes(whole)

    indexed = lance.dataset(str(tmp_path / "a"))
    for index in indexed.describe_indices():
        assert indexed.stats.index_stats(index.name)["num_unindexed_rows"] == 0
        assert indexed.stats.index_stats(index.name)["num_indexed_rows"] == 50_000
    plain = lance.write_dataset(pa.concat_tables([first, second]), tmp_path / "b")
    for text in _FILTERS:
        found = indexed.to_table(filter=text, columns=["id"])["id"].sort()
        assert found == plain.to_table(filter=text, columns=["id"])["id"].sort(), text
        assert indexed.count_rows(filter=text) == len(found), text
    plan = indexed.scanner(filter="i > 15000").analyze_plan()
    assert "ZoneMap" in plan
    assert "fragments_scanned=1" in plan


def _all_types(seed: int) -> pa.Table:
    rng = random.Random(seed)
    columns = {}
    for place, arrow_type in enumerate(_SEEDED_TYPES):
        values = random_values(rng, arrow_type, 300)
        picked = np.array([rng.randrange(300) for _ in range(_ROWS)])
        missing = np.array([rng.random() < 0.1 for _ in range(_ROWS)])
        missing[_ZONE : 2 * _ZONE] |= place % 3 == 0
        columns[f"c{place}"] = values.take(pa.array(picked, mask=missing))
    only_nan = np.where(np.arange(_ROWS) < _ZONE, _NAN, 1.0)
    return pa.table(columns | {"nan": only_nan, "zero": np.where(np.arange(_ROWS) % 2, 0.0, -0.0)})


def _seeds(path: Path) -> dict[str, pa.Table]:
    reader = lance.file.LanceFileReader(str(path))
    found = {}
    for key, value in reader.metadata().schema.metadata.items():
        if key.startswith(b"lance.seed."):
            number, _, rows_per_zone = value.partition(b":")
            assert rows_per_zone == b"8192"
            table = pa.ipc.open_file(io.BytesIO(reader.read_global_buffer(int(number)))).read_all()
            found[key.decode()[len("lance.seed.") :]] = table.replace_schema_metadata(None)
    return found


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, Path]:
    """A data file that pylance has written, with seeds of all columns."""
    table = _all_types(1)
    path = tmp_path_factory.mktemp("seeded")
    dataset = lance.write_dataset(table.slice(0, 10), path)
    for name in table.schema.names:
        dataset.create_scalar_index(name, IndexConfig("zonemap", {"use_seeds": True}))
    lance.write_dataset(table, path, mode="append")
    return table, data_file(path)


def test_our_seeds_are_those_of_pylance(tmp_path: Path, seeded: tuple[pa.Table, Path]) -> None:
    table, path = seeded
    with LanceFileWriter(tmp_path / "a.lance", table.schema) as writer:
        for batch in table.to_batches(max_chunksize=5000):
            writer.write_batch(batch)
    ours, theirs = _seeds(tmp_path / "a.lance"), _seeds(path)
    assert set(ours) == set(theirs) == set(table.schema.names)
    for name, seed in theirs.items():
        assert ours[name].schema == seed.schema, name
        for column in seed.schema.names:
            assert same(ours[name][column].combine_chunks(), seed[column].combine_chunks()), (name, column)


def test_the_seeds_of_pylance_are_read(seeded: tuple[pa.Table, Path]) -> None:
    table, path = seeded
    file = CountedFile(path)
    assert STATISTICS_KEY not in file.reader.metadata.zones
    found = file.reader.zone_statistics(file.columns())
    assert set(found) == {(name,) for name in table.schema.names}
    for (name,), statistics in found.items():
        expected = statistics_of(table[name].combine_chunks(), sizes_of(_ROWS, _ZONE))
        assert statistics.exact
        assert statistics.num_nulls.tolist() == expected.num_nulls.tolist()
        for bounds, wanted in ((statistics.lower, expected.lower), (statistics.upper, expected.upper)):
            assert same(unsigned_zeros(bounds), unsigned_zeros(wanted)), name


@pytest.mark.parametrize("version", _VERSIONS)
def test_files_with_statistics_are_read_by_pylance(tmp_path: Path, version: str) -> None:
    table = _clustered(0, 20_000)
    path = tmp_path / "a.lance"
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    assert LanceFileReader(path)._reader.metadata.zones
    assert lance.file.LanceFileReader(str(path)).read_all().to_table() == table
    assert lance.file.LanceFileReader(str(path)).take_rows([5, 19_999]).to_table() == table.take([5, 19_999])


def _zone_keys(path: Path) -> list[set[str]]:
    files = [
        path / "data" / part.path
        for fragment in lance.dataset(str(path)).get_fragments()
        for part in fragment.data_files()
    ]
    found = []
    for file in files:
        metadata = lance.file.LanceFileReader(str(file)).metadata().schema.metadata or {}
        found.append({key.decode() for key in metadata if key.startswith((b"lance.seed", STATISTICS_KEY))})
    return found


@pytest.mark.parametrize("library", [lance, lance_format], ids=["pylance", "ours"])
def test_statistics_stay_with_the_file_that_they_are_of(tmp_path: Path, library: object) -> None:
    for start in (0, 20_000):
        lance_format.write_dataset(_clustered(start, 20_000), tmp_path, mode="append" if start else "create")
    ours = {"lance.statistics", *(f"lance.seed.{name}" for name in ("id", "i", "f", "s", "d", "ts"))}
    assert _zone_keys(tmp_path) == [ours, ours]
    table = library.dataset(str(tmp_path))  # type: ignore[attr-defined]
    assert not table.schema.metadata
    table.optimize.compact_files(target_rows_per_fragment=100_000)
    assert _zone_keys(tmp_path) == [set() if library is lance else ours]
    library.write_dataset(_clustered(40_000, 10), tmp_path, mode="append")  # type: ignore[attr-defined]
    assert _zone_keys(tmp_path)[-1] == set()
    library.dataset(str(tmp_path)).add_columns({"double": "i * 2"})  # type: ignore[attr-defined]
    assert not lance.dataset(str(tmp_path)).schema.metadata
    assert not lance_format.dataset(tmp_path).schema.metadata
    assert_same(tmp_path)


def test_tables_do_not_take_over_where_the_statistics_of_a_file_are(tmp_path: Path) -> None:
    with LanceFileWriter(tmp_path / "a.lance", pa.schema({"x": pa.int64()})) as writer:
        writer.write_batch(pa.record_batch({"x": range(20_000)}))
    copied = lance.file.LanceFileReader(str(tmp_path / "a.lance")).read_all().to_table()
    stale = copied.replace_schema_metadata({"lance.seed.x": "1:8192", "lance.statistics": "2:8192", "mine": "1"})
    table = lance_format.write_dataset(stale.slice(5, 100), tmp_path / "t")
    assert table.schema.metadata == {b"mine": b"1"}
    assert _zone_keys(tmp_path / "t") == [set()]
    with pytest.raises(InvalidInputError, match=r"lance\.seed\.x"):
        table.update_schema_metadata({"lance.seed.x": "1:8192"})
    assert table.update_schema_metadata({"lance.seed.x": None, "more": "2"}) == {"mine": "1", "more": "2"}


@pytest.mark.parametrize("arrow_type", [pa.decimal128(10, -2), pa.decimal128(38, -2), pa.decimal256(76, -3)], ids=str)
@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_decimals_of_negative_scale_are_filtered(tmp_path: Path, arrow_type: pa.DataType, version: str) -> None:
    unit = 10**-arrow_type.scale
    values = pa.array(
        [None if i % 11 == 0 else Decimal((i * 7919 % 500 - 200) * unit) for i in range(1000)], arrow_type
    )
    table = pa.table({"a": values, "s": pa.StructArray.from_arrays([values], ["x"]), "k": range(1000)})
    ours = lance_format.write_dataset(table, tmp_path, data_storage_version=version)
    reference = lance.dataset(tmp_path)
    for text in (
        "a is null",
        "s.x is not null and k < 50",
        f"a > {10 * unit}",
        f"s.x = {50 * unit}",
        "a < 0",
        "a = s.x",
    ):
        assert ours.to_table(filter=text) == reference.to_table(filter=text), text
