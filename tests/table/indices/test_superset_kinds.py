"""Making LABEL_LIST, BLOOMFILTER and NGRAM indices; see `tests/interop/test_superset_indices_pylance.py` too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pyroaring
import pytest

import lance_format
from lance_format import CorruptFileError, IndexConfig, InvalidInputError, NotSupportedError
from lance_format.table.indices import part_rows
from lance_format.table.indices.kinds import (
    bitmap_file,
    bitmap_index,
    bloom_filter_file,
    bloom_filter_index,
    ngram_file,
)

COLUMNS = [
    ("i", "BLOOMFILTER"),
    ("f", "BLOOMFILTER"),
    ("s", "BLOOMFILTER"),
    ("t", "BLOOMFILTER"),
    ("u", "BLOOMFILTER"),
    ("g.y", "BLOOMFILTER"),
    ("l", "LABEL_LIST"),
    ("lf", "LABEL_LIST"),
    ("g.l", "LABEL_LIST"),
    ("s", "NGRAM"),
    ("large", "NGRAM"),
    ("g.s", "NGRAM"),
]
WORDS = ["Owl", "ÀÉ straße", "", "a-b", "K2 \u212a2x", "日本語 text", "\u1d2cBC \u1d37LM \u2168", "e\u0301te", "x_1%y"]
ASKED = {"BLOOMFILTER": "i = 77", "LABEL_LIST": "array_has(l, 'label 77')", "NGRAM": "contains(s, 'key77 ')"}


def rows(start: int, stop: int) -> pa.Table:
    """Return rows, some of whose values are null."""
    rng = np.random.default_rng(start)
    count = stop - start
    numbers = np.arange(start, stop)

    def mask(share: float = 0.1) -> Any:
        return rng.random(count) < share

    def lists(values: list[Any], item_type: pa.DataType) -> pa.Array:
        found = [
            [values[number] for number in rng.integers(0, len(values), size)] for size in rng.integers(0, 4, count)
        ]
        return pa.array(found, pa.list_(item_type), mask=mask())

    labels = pa.array(
        [[f"label {number}", "all", None, "all"][: number % 5] for number in numbers], pa.list_(pa.string())
    )
    words = [
        f"{WORDS[word]} key{number} {WORDS[word - 1]}"
        for word, number in zip(rng.integers(0, 9, count), numbers, strict=True)
    ]
    texts = pa.array(words, pa.string(), mask=mask())
    floats = rng.choice([0.0, -0.0, np.nan, np.inf, 2.25], count)
    inner = [pa.array(numbers), texts, labels]
    return pa.table(
        {
            "i": pa.array(numbers),
            "f": pa.array(floats, mask=mask()),
            "s": texts,
            "t": pa.array(numbers * 10**6, pa.timestamp("us"), mask=mask()),
            "u": pa.array((numbers % 250).astype(np.uint8), mask=mask()),
            "g": pa.StructArray.from_arrays(inner, ["y", "s", "l"], mask=pa.array(mask())),
            "l": labels,
            "lf": lists([0.0, -0.0, np.nan, 2.25, None], pa.float64()),
            "large": texts.cast(pa.large_string()),
        }
    )


def make(path: Path, num_rows: int = 100, **options: Any) -> lance_format.LanceDataset:
    return lance_format.write_dataset(rows(0, num_rows), path, max_rows_per_file=20, **options)


def covered(table: lance_format.LanceDataset) -> list[list[int]]:
    return [sorted(index["fragment_ids"]) for index in table.list_indices()]


def found(table: lance_format.LanceDataset, given: str) -> list[int]:
    scanner = table.scanner(["i"], given)
    result = scanner.to_table()
    assert result == table.scanner(["i"], given, use_scalar_index=False).to_table()
    theirs = lance.dataset(table.uri).to_table(["i"], filter=given)
    assert sorted(theirs["i"].to_pylist()) == sorted(result["i"].to_pylist())
    return sorted(result["i"].to_pylist())


def index_files(path: Path) -> list[Path]:
    return sorted(file for file in (path / "_indices").rglob("*") if file.is_file())


def _content(path: Path, uuid: str) -> tuple[pa.Schema, dict[bytes, bytes], list[Any], list[Any]]:
    """Return schema, metadata, rows and the content of global buffers, in a comparable form."""
    (file,) = (path / "_indices" / uuid).iterdir()
    reader = lance.file.LanceFileReader(str(file))
    table = reader.read_all().to_table()
    metadata = dict(table.schema.metadata or {})
    metadata.pop(b"lance.checksums", None)
    columns = table.to_pydict()
    if "posting_list" in columns:
        columns["posting_list"] = [list(pyroaring.BitMap64.deserialize(data)) for data in columns["posting_list"]]
    if "bitmaps" in columns:
        columns["bitmaps"] = [bitmap_index._parse(data, 10**9).tolist() for data in columns["bitmaps"]]
    numbers = [int(metadata[key]) for key in (b"null_bitmap", b"lance:label_list_nulls") if key in metadata]
    contents = [bytes(reader.read_global_buffer(number)) for number in numbers]
    buffers = [bitmap_index._parse(content, 10**9).tolist() for content in contents]
    return table.schema.remove_metadata(), metadata, sorted(map(repr, zip(*columns.values(), strict=True))), buffers


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("column", "kind"), COLUMNS)
def test_the_files_hold_what_those_of_pylance_hold(tmp_path: Path, column: str, kind: str, stable: bool) -> None:
    dataset = lance_format.write_dataset(rows(0, 5000), tmp_path, max_rows_per_file=1800, enable_stable_row_ids=stable)
    dataset.delete("i % 11 = 3 OR i < 40 OR i > 4990")
    config: Any = kind
    if kind == "BLOOMFILTER":
        config = IndexConfig(kind, {"number_of_items": 300, "probability": 0.01})
    dataset.create_scalar_index(column, config, "ours")
    theirs = lance.dataset(str(tmp_path))
    if kind == "BLOOMFILTER":
        config = lance.indices.IndexConfig(index_type="bloomfilter", parameters=config.parameters)
    theirs.create_scalar_index(column, config, "theirs")
    dataset.checkout_latest()
    ours, other = sorted(dataset._table.manifest.indices, key=lambda index: index.name)
    assert _content(tmp_path, ours.uuid) == _content(tmp_path, other.uuid)
    assert ours.type_url == other.type_url
    assert ours.message.index_version == other.message.index_version
    assert ours.fragment_ids == other.fragment_ids


@pytest.mark.parametrize(("column", "kind"), [("i", "BLOOMFILTER"), ("l", "LABEL_LIST"), ("s", "NGRAM")])
def test_parts(tmp_path: Path, column: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_rows, "_PART_BYTES", 40 * 16)
    monkeypatch.setattr(part_rows, "_BATCH_ROWS", 20)
    table = make(tmp_path)
    table.create_scalar_index(column, kind)
    assert len(covered(table)) > 1
    assert sorted(number for ids in covered(table) for number in ids) == [0, 1, 2, 3, 4]
    found(table, ASKED[kind])
    scanner = table.scanner(filter=ASKED[kind])
    assert [{task_range[0] for task_range in task.ranges} for task in scanner.plan_tasks()] == [{3}]
    table.drop_index(f"{column}_idx")
    assert table.list_indices() == []
    with pytest.raises(InvalidInputError, match="unknown"):
        table.create_scalar_index(column, IndexConfig(kind, {"size": 1}))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("column", "kind"), [("i", "BLOOMFILTER"), ("l", "LABEL_LIST"), ("s", "NGRAM")])
def test_changed_rows(tmp_path: Path, column: str, kind: str, stable: bool) -> None:
    table = make(tmp_path, enable_stable_row_ids=stable)
    table.create_scalar_index(column, kind)
    table.delete("i < 10")
    for change in (
        lambda: table.update({"i": "i + 1000", "s": "'key77 '", "l": "['label 77']"}, where="i % 10 = 3"),
        lambda: table.insert(rows(200, 230)),
        lambda: table.optimize.optimize_indices(),
        lambda: table.optimize.compact_files(target_rows_per_fragment=1000),
        lambda: table.optimize.optimize_indices(),
        lambda: table.update({"i": "i - 1000", "s": "'none'", "l": "['b']"}, where="i % 10 = 3"),
        lambda: table.optimize.optimize_indices(num_indices_to_merge=0),
        lambda: table.optimize.optimize_indices(retrain=True),
    ):
        change()
        for given in (ASKED[kind], ASKED[kind].replace("77", "7"), ASKED[kind].replace("77", "210")):
            found(table, given)
    assert covered(table) == [sorted(fragment.fragment_id for fragment in table.get_fragments())]


@pytest.mark.parametrize(("column", "kind"), [("i", "BLOOMFILTER"), ("l", "LABEL_LIST"), ("s", "NGRAM")])
def test_without_rows(tmp_path: Path, column: str, kind: str) -> None:
    table = make(tmp_path / "t")
    table.create_scalar_index(column, kind, train=False)
    assert covered(table) == [[]]
    found(table, ASKED[kind])
    table.optimize.optimize_indices()
    assert covered(table) == [[0, 1, 2, 3, 4]]
    found(table, ASKED[kind])
    empty = lance_format.write_dataset(rows(0, 0), tmp_path / "e")
    empty.create_scalar_index(column, kind)
    assert covered(empty) == [[]]
    lance.dataset(empty.uri).insert(rows(70, 80))
    lance.dataset(empty.uri).optimize.optimize_indices()
    empty.checkout_latest()
    assert covered(empty) == [[0]]
    found(empty, ASKED[kind])


def test_parameters_are_kept(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.create_scalar_index("i", IndexConfig("bloomfilter", {"number_of_items": 7, "probability": 0.00001}))
    for options in ({}, {"retrain": True}):
        table.insert(rows(100, 120))
        table.optimize.optimize_indices(**options)
        for index in table.list_indices():
            _, metadata, zones, _ = _content(tmp_path, index["uuid"])
            assert metadata[b"bloomfilter_item"] == b"7"
            assert metadata[b"bloomfilter_probability"] == b"0.00001"
            assert len(zones) == 3 * len(index["fragment_ids"])
    found(table, "i = 77")


@pytest.mark.parametrize(
    ("num_items", "probability", "expected"),
    [
        (10, 0.1, 5),
        (100, 0.1, 7),
        (100, 0.001, 8),
        (1000, 0.01, 11),
        (1000, 0.001, 12),
        (8192, 0.00057, 15),
        (10**9, 0.01, 27),
    ],
)
def test_sizes_of_filters(num_items: int, probability: float, expected: int) -> None:
    assert bloom_filter_file._log_size(num_items, probability) == expected


def test_trigrams_are_gathered_by_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path, 1000)
    table.create_scalar_index("s", "NGRAM", "one")
    monkeypatch.setattr(ngram_file, "_BYTES_AT_ONCE", 500)
    table.create_scalar_index("s", "NGRAM", "many")
    one, many = table.list_indices()
    assert _content(tmp_path, one["uuid"]) == _content(tmp_path, many["uuid"])


@pytest.mark.parametrize("column", ["l", "g.l"])
def test_items_below_null_lists_are_not_labels(tmp_path: Path, column: str) -> None:
    offsets, values, mask = [0, 2, 4, 5], ["a", "b", "c", "d", "e"], pa.array([False, True, False])
    inner = pa.ListArray.from_arrays(offsets, values)
    group = pa.StructArray.from_arrays([inner], ["l"], mask=mask)
    lists = pa.ListArray.from_arrays(offsets, values, mask=mask)
    table = lance_format.write_dataset(pa.table({"i": range(3), "l": lists, "g": group}), tmp_path)
    table.create_scalar_index(column, "LABEL_LIST")
    assert [found(table, f"array_has({column}, '{label}')") for label in "abcde"] == [[0], [0], [], [], [2]]
    assert found(table, f"{column} IS NULL") == [1]


def test_too_many_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitmap_file, "MOST_KEYS", 50)
    table = make(tmp_path)
    with pytest.raises(NotSupportedError, match=r"distinct values and more; a LABEL_LIST index may have 50$"):
        table.create_scalar_index("l", "LABEL_LIST")
    assert index_files(tmp_path) == []


@pytest.mark.parametrize(
    ("column", "kind", "error", "message"),
    [
        ("i", "LABEL_LIST", NotSupportedError, "they are of lists of numbers"),
        ("l", "BLOOMFILTER", NotSupportedError, "'l' is of type list"),
        ("i", "NGRAM", NotSupportedError, "they are of strings"),
        ("i", IndexConfig("BLOOMFILTER", {"number_of_items": 0}), InvalidInputError, "number_of_items is 0"),
        ("i", IndexConfig("BLOOMFILTER", {"probability": 1}), InvalidInputError, "probability is 1; a number between"),
        ("i", IndexConfig("BLOOMFILTER", {"p": 1}), InvalidInputError, "there are number_of_items and probability"),
        ("s", IndexConfig("NGRAM", {"p": 1}), InvalidInputError, "it has none"),
    ],
)
def test_what_cannot_be_indexed(tmp_path: Path, column: str, kind: Any, error: type[Exception], message: str) -> None:
    table = make(tmp_path)
    with pytest.raises(error, match=message):
        table.create_scalar_index(column, kind)


@pytest.mark.parametrize(("column", "kind"), [("i", "BLOOMFILTER"), ("l", "LABEL_LIST"), ("s", "NGRAM")])
def test_damaged_indices_are_repaired(tmp_path: Path, column: str, kind: str) -> None:
    table = make(tmp_path)
    table.create_scalar_index(column, kind)
    (file,) = index_files(tmp_path)
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 4
    file.write_bytes(content)
    table = lance_format.dataset(tmp_path)
    assert table.verify().problems
    table.verify(repair=True)
    table.checkout_latest()
    assert not table.verify().problems
    assert covered(table) == [[0, 1, 2, 3, 4]]
    found(table, ASKED[kind])


@pytest.mark.parametrize(
    ("column", "kind", "answered", "others"),
    [
        ("i", "BLOOMFILTER", "i = 7 AND i < 9", ["i > 7", "NOT (i = 7)", "i = 7 OR f = 1.0"]),
        (
            "l",
            "LABEL_LIST",
            "array_has_all(l, ['all'])",
            ["array_has_all(l, [])", "NOT array_has(l, 'all')", "l IS NULL"],
        ),
        ("s", "NGRAM", "s LIKE '%-key_'", ["contains(s, 'ke')", "s LIKE '%-ke_'", "contains(s, 'ÀÉ')", "s > 'key'"]),
    ],
)
def test_plans_name_indices_that_answer(
    tmp_path: Path, column: str, kind: str, answered: str, others: list[str]
) -> None:
    table = make(tmp_path)
    table.create_scalar_index(column, kind)
    assert f"indices: {column}_idx" in table.scanner(filter=answered).explain_plan()
    for given in others:
        assert "indices: " not in table.scanner(filter=given).explain_plan()
        found(table, given)


def _every_type() -> dict[str, pa.Array]:
    numbers = np.arange(1000)
    texts = pa.array([f"k{number}" for number in numbers])
    return {
        "s": texts,
        "ls": texts.cast(pa.large_string()),
        "b": texts.cast(pa.binary()),
        "lb": texts.cast(pa.large_binary()),
        "f4": pa.array(numbers / 10, pa.float32()),
        "f8": pa.array(numbers / 10),
        **{f"i{size}": pa.array(numbers % 120, f"int{size}") for size in (8, 16, 32, 64)},
        **{f"u{size}": pa.array(numbers % 120, f"uint{size}") for size in (8, 16, 32, 64)},
        "d": pa.array(numbers, pa.int32()).cast(pa.date32()),
        "tz": pa.array(numbers, pa.timestamp("us", "UTC")),
        "ns": pa.array(numbers, pa.timestamp("ns")),
    }


@pytest.mark.parametrize(
    "given",
    [
        *("s = 'k7'", "ls = 'k7'", "s IN ('k7', 'x')", "b = X'6b37'", "lb = X'6b37'", "s <=> 'k7'"),
        *("f4 = 0.7", "f8 = 0.7", "f4 IN (0.5)", "f4 = 3", "f4 <=> 0.5"),
        *(f"{sign}{size} = 7" for sign in "iu" for size in (8, 16, 32, 64)),
        *("i32 IN (7, 8)", "i32 = 7.0", "u64 IN (7, 1000000)", "i32 = CAST(7 AS BIGINT)"),
        *("d = date '1970-01-08'", "tz = timestamp '1970-01-01 00:00:00.000007'"),
        "ns = timestamp '1970-01-01 00:00:00.000000007'",
    ],
)
def test_filters_of_every_type(tmp_path: Path, given: str) -> None:
    table = lance_format.write_dataset(pa.table(_every_type()), tmp_path, max_rows_per_file=100)
    table.create_scalar_index(given.split()[0], "BLOOMFILTER")
    scanner = table.scanner(filter=given)
    assert scanner.to_table() == table.scanner(filter=given, use_scalar_index=False).to_table()
    assert 0 < sum(task.num_rows for task in scanner.plan_tasks()) < 1000


def _row(**changes: Any) -> dict[str, Any]:
    good = {"fragment_id": 0, "zone_start": 0, "zone_length": 20, "has_null": False, "bloom_filter_data": b"\xff" * 32}
    return {**good, **changes}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (_row(bloom_filter_data=b""), "no multiple of 32 bytes"),
        (_row(bloom_filter_data=b"\xff" * 40), "no multiple of 32 bytes"),
        (_row(zone_length=0), "a zone has no rows"),
        (_row(zone_start=2**32), "beyond all rows"),
        (_row(fragment_id=2**40), "beyond all rows"),
    ],
)
def test_malformed_filters(
    tmp_path: Path, columns: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path, 20)
    monkeypatch.setattr(
        bloom_filter_file,
        "_columns",
        lambda _: [pa.array([columns[field.name]], field.type) for field in bloom_filter_index.BLOOM_COLUMNS],
    )
    table.create_scalar_index("i", "BLOOMFILTER")
    with pytest.raises(CorruptFileError, match=f"index 'i_idx': .*{message}"):
        table.to_table(filter="i = 7")


@pytest.mark.parametrize(
    ("changes", "num_rows"), [({"zone_length": 21}, 20), ({"zone_start": 1}, 20), ({"fragment_id": 7}, 20)]
)
def test_zones_of_other_rows_are_ignored(
    tmp_path: Path, changes: dict[str, Any], num_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path, num_rows)
    columns = _row(bloom_filter_data=bytes(32), **changes)
    monkeypatch.setattr(
        bloom_filter_file,
        "_columns",
        lambda _: [pa.array([columns[field.name]], field.type) for field in bloom_filter_index.BLOOM_COLUMNS],
    )
    table.create_scalar_index("i", "BLOOMFILTER")
    assert table.to_table(filter="i = 7").num_rows == 1


@pytest.mark.parametrize(
    ("tokens", "posting", "message"),
    [
        ([30957, 30957], None, "there twice"),
        ([2**32 - 1], None, "no trigram"),
        ([None], None, "a token is null"),
        (None, b"", "malformed bitmap"),
        (None, b"\x01\x00\x00\x00\x00\x00\x00\x00abc", "malformed bitmap"),
    ],
)
def test_malformed_tokens(
    tmp_path: Path, tokens: Any, posting: bytes | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path)
    if posting is not None:
        monkeypatch.setattr(ngram_file, "_serialize", lambda _: posting)
    else:
        batch = [pa.array(tokens, pa.uint32()), pa.array([b""] * len(tokens), pa.binary())]
        monkeypatch.setattr(ngram_file, "_batches", lambda *_: [batch])
    table.create_scalar_index("s", "NGRAM")
    with pytest.raises(CorruptFileError, match=f"index 's_idx': .*{message}"):
        table.to_table(filter="contains(s, 'key')")


@pytest.mark.parametrize("posting", [b"", b"\x01\x00\x00\x00\x07\x00\x00\x00\x09\x00\x00\x00abc"])
def test_malformed_bitmaps_of_labels(tmp_path: Path, posting: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path)
    monkeypatch.setattr(bitmap_file, "serialize_groups", lambda _, starts: pa.array([posting] * (len(starts) - 1)))
    table.create_scalar_index("l", "LABEL_LIST")
    with pytest.raises(CorruptFileError, match="index 'l_idx': malformed bitmap"):
        table.to_table(filter="array_has(l, 'all')")


def test_bitmaps_of_whole_fragments_tell_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path)
    whole = b"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    monkeypatch.setattr(bitmap_file, "serialize_groups", lambda _, starts: pa.array([whole] * (len(starts) - 1)))
    table.create_scalar_index("l", "LABEL_LIST")
    scanner = table.scanner(["i"], "array_has(l, 'label 77')")
    assert sum(task.num_rows for task in scanner.plan_tasks()) == 100
    assert scanner.to_table()["i"].to_pylist() == [77]
