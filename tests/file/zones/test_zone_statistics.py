"""Statistics of zones: written ones agree with the rows, and pruning never loses a row."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_format import expressions
from lance_format.datatypes import Schema
from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.pruning import classify
from lance_format.file import FileWriter, LanceFileReader, LanceFileWriter, SearchCache
from lance_format.file.container.zone_entries import SEED_PREFIX, STATISTICS_KEY, names_zones
from lance_format.object_store.local import LocalStore
from lance_format.version import STABLE, FileVersion
from tests.expressions.zone_reference import ORDERED_TYPES, random_tree, random_values, ranks_of, statistics_of
from tests.file.counting import CountedFile

_VERSIONS = [FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2]


def write(
    path: Path,
    table: pa.Table,
    rows_per_zone: int | None = 10,
    version: FileVersion = STABLE,
    batches: Sequence[pa.RecordBatch] | None = None,
    page_bytes: int | None = None,
) -> Path:
    writer = FileWriter(
        LocalStore().open_writer(str(path)),
        Schema.from_arrow(table.schema),
        version=version,
        data_cache_bytes=page_bytes,
        rows_per_zone=rows_per_zone,
    )
    for batch in batches if batches is not None else table.to_batches():
        writer.write_batch(batch)
    writer.finish()
    return path


def sizes_of(num_rows: int, rows_per_zone: int) -> list[int]:
    return [min(rows_per_zone, num_rows - start) for start in range(0, num_rows, rows_per_zone)]


def same(found: pa.Array, expected: pa.Array) -> bool:
    """Return whether values are the same: NaN equals itself, and zeros have signs."""
    if pa.types.is_floating(found.type):
        return found.type == expected.type and str(found.to_pylist()) == str(expected.to_pylist())
    return found.equals(expected)


def cut(rng: random.Random, table: pa.Table) -> list[pa.RecordBatch]:
    combined = table.combine_chunks()
    places = sorted({0, table.num_rows, *(rng.randint(0, table.num_rows) for _ in range(rng.randint(0, 6)))})
    parts = [combined.slice(start, stop - start).to_batches() for start, stop in pairwise(places)]
    return [batch for part in parts for batch in part]


def _with_nulls(rng: random.Random, values: pa.Array, share: float) -> pa.Array:
    return values.take(pa.array([None if rng.random() < share else row for row in range(len(values))], pa.int64()))


def _random_column(rng: random.Random, arrow_type: pa.DataType, count: int) -> pa.Array:
    values = random_values(rng, arrow_type, count)
    if rng.random() < 0.6:
        values = values.take(pa.array(np.argsort(ranks_of(values), kind="stable")))
    return _with_nulls(rng, values, rng.choice([0, 0, 0.2, 0.95]))


def random_table(rng: random.Random, *, null_structs: bool = True) -> pa.Table:
    count = rng.choice([11, 40, 200, 300])
    types = rng.sample(ORDERED_TYPES, 4)
    columns = {f"c{place}": _random_column(rng, arrow_type, count) for place, arrow_type in enumerate(types)}
    inner = pa.StructArray.from_arrays(
        [_random_column(rng, rng.choice(ORDERED_TYPES), count), _random_column(rng, pa.string(), count)], ["x", "y"]
    )
    mask = pa.array([null_structs and rng.random() < 0.2 for _ in range(count)])
    outer = pa.StructArray.from_arrays([inner, pa.array([[1]] * count)], ["in", "li"], mask=mask)
    return pa.table(columns | {"st": outer})


def leaf_of(batch: pa.RecordBatch, path: nodes.Path) -> pa.Array:
    values = batch[path[0]]
    return pc.struct_field(values, list(path[1:])) if len(path) > 1 else values


def unsigned_zeros(values: pa.Array) -> pa.Array:
    """Return values with zeros of one kind."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.to_numpy(zero_copy_only=False)
    mask = values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.where(numbers == 0, numbers.dtype.type(0), numbers), values.type, mask=mask)


def is_mixed(values: pa.Array, sizes: list[int]) -> bool:
    """Return whether values are booleans, both in each zone, and none null."""
    if not pa.types.is_boolean(values.type) or values.null_count:
        return False
    statistics = statistics_of(values, sizes)
    return not pc.any(statistics.lower).as_py() and bool(pc.all(statistics.upper).as_py())


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_statistics_are_what_the_rows_are(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    version = rng.choice(_VERSIONS)
    table = random_table(rng, null_structs=version is not FileVersion.V2_0)
    rows_per_zone = rng.choice([3, 10])
    path = tmp_path_factory.mktemp("zones") / "a.lance"
    page_bytes = rng.choice([None, 1, 2000])
    write(path, table, rows_per_zone, version, cut(rng, table), page_bytes)
    file = CountedFile(path)
    found = file.reader.zone_statistics(file.columns())
    batch = table.combine_chunks().to_batches()[0]
    paths = {(name,) for name in table.schema.names if name != "st"} | {("st", "in", "x"), ("st", "in", "y")}
    sizes = sizes_of(table.num_rows, rows_per_zone)
    mixed = {path for path in paths if is_mixed(leaf_of(batch, path), sizes)}
    assert set(found) == paths - mixed
    for leaf_path, statistics in found.items():
        values = leaf_of(batch, leaf_path)
        expected = statistics_of(values, sizes_of(len(values), rows_per_zone))
        assert statistics.num_rows.tolist() == expected.num_rows.tolist()
        assert statistics.num_nulls.tolist() == expected.num_nulls.tolist()
        if statistics.exact:
            assert same(unsigned_zeros(statistics.lower), unsigned_zeros(expected.lower)), leaf_path
            assert same(unsigned_zeros(statistics.upper), unsigned_zeros(expected.upper)), leaf_path
        else:
            assert len(leaf_path) > 1 or pa.types.is_fixed_size_binary(values.type)
    for _ in range(10):
        check_pruning(rng, batch, found)


@pytest.mark.parametrize("version", _VERSIONS)
def test_booleans_whose_zones_exclude_nothing_have_none(tmp_path: Path, version: FileVersion) -> None:
    mixed = [True, False] * 50
    columns = {"mixed": mixed, "null": [*mixed[:-1], None], "apart": [*mixed[:90], *[True] * 10], "number": range(100)}
    file = CountedFile(write(tmp_path / "a.lance", pa.table(columns), version=version))
    found = file.reader.zone_statistics(file.columns())
    assert {path[0] for path in found} == {"null", "apart", "number"}
    assert found[("apart",)].lower.to_pylist() == [False] * 9 + [True]
    alone = CountedFile(write(tmp_path / "b.lance", pa.table({"mixed": mixed}), version=version))
    assert alone.reader.zone_statistics(alone.columns()) == {}
    assert not any(names_zones(key) for key in alone.reader.schema.metadata)


def check_pruning(rng: random.Random, batch: pa.RecordBatch, statistics: dict[nodes.Path, object]) -> None:
    terms = []
    for leaf_path in rng.sample(sorted(statistics), 2):
        values = leaf_of(batch, leaf_path)
        if pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        terms.append(random_tree(rng, nodes.Column(leaf_path), values, rng.randint(0, 2)))
    predicate = rng.choice([nodes.And, nodes.Or])(tuple(terms))
    bound = expressions.bind(predicate, batch.schema)
    verdicts = classify(bound, statistics, batch.num_rows)  # type: ignore[arg-type]
    mask = expressions.filter_mask(bound, batch).to_numpy(zero_copy_only=False)
    for zone, (start, stop) in enumerate(zip(verdicts.boundaries[:-1], verdicts.boundaries[1:], strict=True)):
        assert verdicts.may_match[zone] or not mask[start:stop].any()
        assert not verdicts.must_match[zone] or mask[start:stop].all()


def _stored(path: Path) -> pa.Table:
    """Return the rows of the embedded file, as any reader of Lance files finds them."""
    reader = LanceFileReader(path)
    number, _, _ = reader._reader.metadata.zones[STATISTICS_KEY].partition(b":")
    embedded = path.with_suffix(".statistics")
    embedded.write_bytes(reader.read_global_buffer(int(number)))
    table = LanceFileReader(embedded).read_all().to_table()
    assert not LanceFileReader(embedded)._reader.metadata.zones
    return table


def test_the_embedded_file_follows_the_document(tmp_path: Path) -> None:
    nan = float("nan")
    text = "x" * 63
    table = pa.table(
        {
            "i": pa.array([3, 1, None, None], pa.int16()),
            "d": pa.array([None, None, 5, 4], pa.int32()).cast(pa.date32()),
            "f": pa.array([nan, None, -0.0, nan]),
            "zero": pa.array([-0.0, -0.0, 0.0, 0.0], pa.float32()),
            "s": [text + "é", text + "\U0010ffff", "\U0010ffff" * 20, None],
            "b": pa.array([b"\xff" * 70, b"\xff" * 64 + b"a", b"a\xff" * 40, None]),
            "flag": pa.array([True, None, None, None]),
            "st": pa.array([{"a": 7}, {"a": 9}, None, {"a": None}]),
            "li": [[1], [2], [], None],
        }
    )
    nested = pa.table({"w": table.to_struct_array().combine_chunks()})  # Fields of structs have no seeds.
    stored = _stored(write(tmp_path / "a.lance", nested, 2))
    names = {str(field.id): field.name for field in Schema.from_arrow(nested.schema).walk()}
    columns = {names[field_id]: stored[field_id].combine_chunks() for field_id in stored.schema.names}
    assert {tuple(field.name for field in column.type) for column in columns.values()} == {
        ("null_count", "min_value", "max_value")
    }
    days = columns.pop("d").flatten()
    assert days[1].view(pa.int32()).to_pylist() == [-(2**31), 4]
    assert days[2].view(pa.int32()).to_pylist() == [2**31 - 1, 5]
    rows = {name: [tuple(row.values()) for row in column.to_pylist()] for name, column in columns.items()}
    assert rows.pop("i") == [(0, 1, 3), (2, -(2**15), 2**15 - 1)]
    inf = float("inf")
    assert str(rows.pop("f")) == str([(1, -inf, inf), (0, -0.0, 0.0)])
    assert str(rows.pop("zero")) == str([(0, -0.0, 0.0)] * 2)
    assert rows.pop("s") == [(0, text, "x" * 62 + "y"), (1, "\U0010ffff" * 16, None)]
    assert rows.pop("b") == [(0, b"\xff" * 64, None), (1, b"a\xff" * 32, b"a\xff" * 31 + b"b")]
    assert rows.pop("flag") == [(1, True, True), (2, False, True)]
    assert rows.pop("a") == [(0, 7, 9), (2, -(2**63), 2**63 - 1)]
    assert not rows


def test_what_has_no_statistics(tmp_path: Path) -> None:
    rows = range(100)
    columns: dict[str, object] = {
        "li": [[row] for row in rows],
        "map": pa.array([[("k", row)] for row in rows], pa.map_(pa.string(), pa.int64())),
        "vector": pa.array([[row, row] for row in rows], pa.list_(pa.float32(), 2)),
        "dict": pa.array([f"k{row % 3}" for row in rows]).dictionary_encode(),
        "none": pa.nulls(100),
        "wide": pa.array([b"x" * 100] * 100, pa.binary(100)),
        "packed": pa.array([{"a": row} for row in rows]),
    }
    table = pa.table(columns)
    packed = table.schema.field("packed").with_metadata({b"lance-encoding:packed": b"true"})
    table = table.cast(table.schema.set(table.schema.get_field_index("packed"), packed))
    file = CountedFile(write(tmp_path / "a.lance", table))
    assert file.reader.metadata.zones == {}
    assert file.reader.zone_statistics(file.columns()) == {}
    assert len(file.reader.metadata.global_buffers) == 2  # the second has checksums


def test_blobs_have_no_statistics(tmp_path: Path) -> None:
    field = pa.field("blob", pa.large_binary(), metadata={b"lance-encoding:blob": b"true"})
    table = pa.table([pa.array([b"x"] * 100, pa.large_binary())], schema=pa.schema([field]))
    file = CountedFile(write(tmp_path / "a.lance", table, version=FileVersion.V2_1))
    assert file.reader.metadata.zones == {}
    assert file.reader.zone_statistics(file.columns()) == {}


def test_files_of_one_zone_have_statistics_only_if_they_are_large(tmp_path: Path) -> None:
    small = pa.table({"x": range(8192), "y": ["a"] * 8192})
    assert not CountedFile(write(tmp_path / "a.lance", small, 8192)).reader.metadata.zones
    assert CountedFile(write(tmp_path / "b.lance", small, 8191)).reader.metadata.zones
    large = pa.table({"x": range(100), "y": pa.array([random.Random(row).randbytes(5000) for row in range(100)])})
    found = CountedFile(write(tmp_path / "c.lance", large, 8192)).reader.metadata.zones
    assert set(found) == {STATISTICS_KEY, SEED_PREFIX + b"x"}, "5000 bytes are no bound for a seed"
    assert not CountedFile(write(tmp_path / "d.lance", small.slice(0, 0), 10)).reader.metadata.zones
    assert not CountedFile(write(tmp_path / "e.lance", small, None)).reader.metadata.zones


def test_only_what_is_asked_for_is_read_and_once(tmp_path: Path) -> None:
    columns = {f"c{place}": pa.array(np.random.default_rng(place).random(50_000)) for place in range(40)}
    table = pa.table(columns | {"st": pa.array([{"a": row} for row in range(50_000)])})
    cache = SearchCache()
    path = write(tmp_path / "a.lance", table, 100)
    file = CountedFile(path, cache)
    all_bytes = sum(buffer.size for buffer in file.reader.metadata.global_buffers[1:])
    assert file.reader.zone_statistics([]) == {}
    assert not file.source.requests
    (found,) = file.reader.zone_statistics(file.columns(["c7"])).values()
    assert found.num_zones == 500
    (request,) = file.source.requests
    assert request.size < all_bytes / 40
    file.source.requests.clear()
    nested = file.reader.zone_statistics(file.columns(["st"]))
    assert set(nested) == {("st", "a")}
    assert len(file.source.requests) <= 3
    assert sum(request.size for request in file.source.requests) < all_bytes / 8
    for again in (file, CountedFile(path, cache)):
        again.source.requests.clear()
        assert set(again.reader.zone_statistics(again.columns(["c7", "st"]))) == {("c7",), ("st", "a")}
        assert not again.source.requests


def test_columns_are_found_by_their_place_whatever_they_are_called(tmp_path: Path) -> None:
    file = CountedFile(
        write(tmp_path / "a.lance", pa.table({"x": range(100), "y": [f"{row:03}" for row in range(100)]}))
    )
    (column,) = file.columns(["y"])
    renamed = Schema.from_arrow(pa.schema({"other": pa.string()}), first_id=77).fields[0]
    found = file.reader.zone_statistics([type(column)(renamed, {77: 1})])
    assert found["other",].lower.to_pylist()[:2] == ["000", "010"]
    retyped = Schema.from_arrow(pa.schema({"x": pa.int32()}), first_id=77).fields[0]
    found = file.reader.zone_statistics([type(column)(retyped, {77: 0})])
    assert found == {}, "nothing is known of values in another type"
    assert file.reader.zone_statistics([type(column)(renamed, {77: -1})]) == {}


def test_zeros_and_nan_are_told_apart(tmp_path: Path) -> None:
    nan = float("nan")
    table = pa.table({"f": [0.0, -0.0, nan, 1.0, nan, None, None, None, -nan, -nan]})
    file = CountedFile(write(tmp_path / "a.lance", table, 2))
    found = file.reader.zone_statistics(file.columns())["f",]
    assert found.exact
    assert str(found.lower.to_pylist()) == "[-0.0, 1.0, nan, None, nan]"
    assert str(found.upper.to_pylist()) == "[0.0, nan, nan, None, nan]"
    assert found.num_nulls.tolist() == [0, 0, 1, 2, 0]


@pytest.mark.parametrize("kind", [kind for kind in ORDERED_TYPES if not pa.types.is_fixed_size_binary(kind)])
def test_seeds_are_what_arrow_writes(tmp_path: Path, kind: pa.DataType) -> None:
    rng = random.Random(0)
    for count in (95, 95, 23):  # Seeds of as many zones have parts in common.
        values = random_values(rng, kind, count)
        path = write(tmp_path / "a.lance", pa.table({"x": values}), 5)
        zones = LanceFileReader(path)._reader.metadata.zones
        if b"lance.seed.x" not in zones:  # of booleans, both in all zones
            continue
        data = LanceFileReader(path).read_global_buffer(int(zones[b"lance.seed.x"].partition(b":")[0]))
        with pa.ipc.open_file(pa.py_buffer(data)) as file:
            batch = file.get_batch(0)
        batch.validate(full=True)
        columns = [pa.concat_arrays([column.slice(0, 1), column.slice(1)]) for column in batch.columns]
        again = io.BytesIO()
        with pa.ipc.new_file(again, batch.schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
        assert again.getvalue() == data


def test_where_statistics_are_holds_for_one_file_only(tmp_path: Path) -> None:
    table = pa.table({"x": range(100)}).replace_schema_metadata({b"lance.seed.x": b"5:10", b"mine": b"1"})
    path = write(tmp_path / "a.lance", table)
    reader = LanceFileReader(path)
    for schema in (reader.metadata().schema, reader.read_all().to_table().schema):
        assert schema.metadata == {b"mine": b"1"}
    assert reader._reader.metadata.zones == {b"lance.seed.x": b"1:10"}
    plain = write(tmp_path / "b.lance", table, None)
    assert not LanceFileReader(plain)._reader.metadata.zones
    with LanceFileWriter(tmp_path / "c.lance", table.schema) as writer:
        for key in ("lance.seed.x", "lance.statistics", "lance.checksums"):
            with pytest.raises(InvalidInputError, match="cannot be set"):
                writer.add_schema_metadata(key, "1:8192")
        assert writer.add_global_buffer(b"mine") == 1
        for _ in range(100):
            writer.write_batch(table.to_batches()[0])
    reader = LanceFileReader(tmp_path / "c.lance")
    assert reader.read_global_buffer(1) == b"mine"
    assert reader._reader.metadata.zones[b"lance.seed.x"] == b"2:8192"


@pytest.mark.parametrize(
    "value", [b"", b"1", b"1:0", b"0:10", b"9:10", b"-1:10", b"1:10:10", b"1:x", b"1" * 99 + b":9"]
)
@pytest.mark.parametrize("key", [STATISTICS_KEY, SEED_PREFIX + b"x"])
def test_a_wrong_place_is_an_error_that_names_the_file(tmp_path: Path, key: bytes, value: bytes) -> None:
    file = CountedFile(write(tmp_path / "a.lance", pa.table({"x": range(100)})))
    object.__setattr__(file.reader.metadata, "zones", {key: value})
    with pytest.raises(CorruptFileError, match=r"a\.lance") as caught:
        file.reader.zone_statistics(file.columns())
    assert "global buffer" in str(caught.value)


def _seed(**changes: object) -> bytes:
    columns: dict[str, object] = {
        "min": pa.array([0, 50]),
        "max": pa.array([49, 99]),
        "null_count": pa.array([0, 0], pa.uint32()),
        "nan_count": pa.array([0, 0], pa.uint32()),
        "zone_length": pa.array([50, 50], pa.uint64()),
    }
    table = pa.table({name: values for name, values in (columns | changes).items() if values is not None})
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "magic bytes"),
        (b"x" * 100, "magic bytes"),
        (_seed()[:-20], "magic bytes"),
        (_seed().replace(b"min", b"m\xf8n"), "malformed Arrow file"),
        (_seed(min=None), "no column 'min'"),
        (_seed(null_count=pa.array([0, 0])), "no column 'null_count'"),
        (_seed(null_count=pa.array([0, None], pa.uint32())), "'null_count' is null"),
        (_seed(null_count=pa.array([0, 51], pa.uint32())), "more nulls"),
        (_seed(nan_count=pa.array([0, 51], pa.uint32())), "more NaN"),
        (_seed(zone_length=pa.array([50, 51], pa.uint64())), "zones have 101 rows; the file has 100"),
        (_seed(zone_length=pa.array([50, 2**64 - 1], pa.uint64())), "more than files can have rows"),
        (_seed(min=pa.array([50, 50])), "exceeds the upper one"),
    ],
)
def test_a_damaged_seed_is_an_error_that_names_it(tmp_path: Path, data: bytes, message: str) -> None:
    writer = FileWriter(
        LocalStore().open_writer(str(tmp_path / "a.lance")),
        Schema.from_arrow(pa.schema({"x": pa.int64()})),
        rows_per_zone=None,
    )
    writer.write_batch(pa.record_batch({"x": range(100)}))
    writer.add_global_buffer(data)
    writer._metadata[SEED_PREFIX + b"x"] = b"1:50"
    writer.finish()
    file = CountedFile(tmp_path / "a.lance")
    with pytest.raises(CorruptFileError, match="the seed of column 'x' cannot be read") as caught:
        file.reader.zone_statistics(file.columns())
    assert message in str(caught.value)


def _with_embedded(path: Path, embedded: pa.Table, rows_per_zone: int = 50) -> CountedFile:
    inner = write(path.with_suffix(".embedded"), embedded, None)
    writer = FileWriter(
        LocalStore().open_writer(str(path)), Schema.from_arrow(pa.schema({"x": pa.float64()})), rows_per_zone=None
    )
    writer.write_batch(pa.record_batch({"x": pa.array(range(100), pa.float64())}))
    writer.add_global_buffer(inner.read_bytes())
    writer._metadata[STATISTICS_KEY] = b"1:%d" % rows_per_zone
    writer.finish()
    return CountedFile(path)


def test_what_others_left_out_is_unknown_and_what_they_added_is_ignored(tmp_path: Path) -> None:
    stored = {"min_value": pa.array([1.0, None]), "more": pa.array(["a", "b"])}
    structs = pa.StructArray.from_arrays(list(stored.values()), list(stored))
    file = _with_embedded(tmp_path / "a.lance", pa.table({"0": structs, "note": ["a", "b"]}))
    found = file.reader.zone_statistics(file.columns())["x",]
    assert found.lower.to_pylist() == [1.0, None]
    assert str(found.upper.to_pylist()) == "[nan, nan]"
    assert found.num_nulls.tolist() == [-1, -1]
    file = _with_embedded(tmp_path / "b.lance", pa.table({"1": structs}))
    assert file.reader.zone_statistics(file.columns()) == {}
    file = _with_embedded(tmp_path / "c.lance", pa.table({"0": ["a", "b"]}))
    assert file.reader.zone_statistics(file.columns()) == {}
    other = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array(["a", "b"])], ["min_value", "max_value"])
    file = _with_embedded(tmp_path / "d.lance", pa.table({"0": other}))
    found = file.reader.zone_statistics(file.columns())["x",]
    assert found.lower.null_count == 2


@pytest.mark.parametrize(
    ("columns", "rows_per_zone", "message"),
    [
        ({"null_count": [0, 51]}, 50, "more nulls than rows"),
        ({"null_count": [0, -2]}, 50, "fewer than none"),
        ({"null_count": [0, 0]}, 49, "2 zones of 3"),
        ({"null_count": [0, 0]}, 100, "2 zones of 1"),
    ],
)
def test_damaged_statistics_are_an_error_that_names_them(
    tmp_path: Path, columns: dict[str, list[int]], rows_per_zone: int, message: str
) -> None:
    structs = pa.StructArray.from_arrays([pa.array(values) for values in columns.values()], list(columns))
    file = _with_embedded(tmp_path / "a.lance", pa.table({"0": structs}), rows_per_zone)
    with pytest.raises(CorruptFileError, match="the statistics cannot be read") as caught:
        file.reader.zone_statistics(file.columns())
    assert message in str(caught.value)
    assert "a.lance" in str(caught.value)


def test_keys_that_name_statistics() -> None:
    assert [names_zones(key) for key in (b"lance.seed.x", b"lance.statistics", b"lance.seed", b"mine")] == [
        *(True, True, False, False)
    ]


@pytest.mark.parametrize("version", _VERSIONS, ids=str)
def test_statistics_of_columns_behind_lists_and_structs(version: FileVersion, tmp_path: Path) -> None:
    """In file format 2.0 these have columns themselves, so that the others have higher numbers."""
    table = pa.table(
        {
            "l": pa.array([[row, row] for row in range(30)]),
            "s": pa.array([{"x": 100 + row, "y": f"{row:03}"} for row in range(30)]),
            "n": pa.array(range(200, 230)),
            "m": pa.array(range(300, 330)),
        }
    )
    file = CountedFile(write(tmp_path / "a.lance", table, 10, version))
    found = file.reader.zone_statistics(file.columns())
    assert set(found) == {("s", "x"), ("s", "y"), ("n",), ("m",)}
    assert found["n",].lower.to_pylist() == [200, 210, 220]
    assert found["m",].upper.to_pylist() == [309, 319, 329]
    assert found["s", "x"].lower.to_pylist() == [100, 110, 120]
    assert found["s", "y"].lower.to_pylist() == ["000", "010", "020"]
