"""Making and updating ZONEMAP indices; for what pylance makes of them see `test_zone_map_index_pylance.py`."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import IndexConfig, InvalidInputError, NotSupportedError, RetryableCommitConflictError
from lance_format.blob_fields import BLOB_KEY
from lance_format.expressions import as_expression
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.building import create_scalar_index, optimize_indices
from lance_format.table.indices.zones.zone_map import Zones
from lance_format.table.indices.zones.zone_map_index import load_zones
from lance_format.table.indices.zones.zone_map_training import train_zones
from lance_format.table.scan.pruning.index_pruning import prune_fragments
from lance_format.table.versions.table_version import TableVersion
from tests.table.builders import rows
from tests.table.counting import counted

TEN = IndexConfig("ZONEMAP", {"rows_per_zone": 10})


def make(path: Path, num_rows: int = 100, **options: Any) -> lance_format.LanceDataset:
    return lance_format.write_dataset(rows(0, num_rows), path, max_rows_per_file=20, **options)


def parts(path: Path) -> list[tuple[str, list[int]]]:
    indices = lance_format.dataset(path)._table.manifest.indices
    return [(index.name, list(index.fragment_ids or ())) for index in indices]


def zones_of(table: TableVersion, index: IndexMetadata) -> Zones:
    loaded = load_zones(table, index, pa.int64())
    assert loaded is not None
    return loaded.zones


def pruned(table: lance_format.LanceDataset, predicate: str) -> dict[int, list[tuple[int, int]]]:
    """Return the rows that may match, by fragment; fragments that may match as a whole are left out."""
    bound = as_expression(predicate, table._table.manifest.schema.to_storage())
    found = prune_fragments(table._table, bound)
    ranges = {fragment_id: ranges.pairs() for fragment_id, ranges in found.ranges.items()}
    assert all(ranges.values())
    return {fragment_id: [] for fragment_id in found.excluded} | ranges


def test_one_read_finds_the_fragments(tmp_path: Path) -> None:
    lance_format.write_dataset(rows(0, 2000), tmp_path, max_rows_per_file=20).create_scalar_index("a", TEN)
    table, store = counted(tmp_path)
    tasks = table.scanner(filter="a = 1234").plan_tasks()
    assert [task.ranges for task in tasks] == [((61, 10, 20),)]
    assert [Path(path).name for path in store.opened] == ["zonemap.lance"]
    assert len(store.requests) == 1
    store.drain()
    assert table.scanner(filter="a < 15").plan_tasks()[0].ranges == ((0, 0, 20),)
    assert table.scanner(filter="a = 5000").plan_tasks() == []
    assert not store.opened
    assert table.to_table(filter="a = 1234") == rows(1234, 1235)
    assert len(store.opened) == 1
    store.drain()
    (_, start, stop), *_ = table.scanner(filter="a = 1234", use_scalar_index=False).plan_tasks()[0].ranges
    assert (start, stop) == (0, 20)
    assert table.checkout_version(1).scanner(filter="a = 1234").plan_tasks()[0].ranges[0] == (0, 0, 20)


def test_a_filter_without_an_index_reads_none(tmp_path: Path) -> None:
    make(tmp_path).create_scalar_index("a", TEN)
    table, store = counted(tmp_path)
    for predicate in ("s = 'row 7'", "_rowaddr = 3"):
        assert pruned(table, "s = 'row 7'") == {}, predicate
    assert not store.opened


def test_several_columns(tmp_path: Path) -> None:
    """Terms over several indices narrow each other down, and one index may cover what another does not."""
    table = make(tmp_path)
    table.create_scalar_index("a", TEN)
    table.create_scalar_index("s", IndexConfig("zonemap", {"rows_per_zone": 4}))
    assert pruned(table, "a < 12 and s >= 'row 18'") == {0: [(0, 12), (16, 20)], 1: [], 2: [], 3: [], 4: []}
    assert pruned(table, "a < 5 or s = 'row 99'") == {0: [(0, 10)], 1: [], 2: [], 3: [], 4: [(16, 20)]}
    lance_format.write_dataset(rows(100, 110), tmp_path, mode="append")
    table.checkout_latest()
    assert 5 not in pruned(table, "a = 3")
    table.optimize.optimize_indices(index_names=["a_idx"])
    assert pruned(table, "a = 3")[5] == []


def test_plans_and_metrics_tell_of_indices(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.create_scalar_index("a", TEN)
    table.create_scalar_index("s", TEN)
    scanner = table.scanner(filter="a = 34 and a is not null")
    assert "\n  indices: a_idx" in scanner.explain_plan()
    assert "fragments: 1 of 5\n  rows: 10" in scanner.explain_plan(verbose=True)
    assert scanner.to_table() == rows(34, 35)
    metrics = scanner.metrics
    assert metrics is not None
    assert (metrics.indices_loaded, metrics.parts_loaded, metrics.index_comparisons) == (1, 1, 10)
    assert (metrics.fragments_scanned, metrics.fragments_skipped, metrics.rows_skipped) == (1, 4, 90)
    assert "indices=1," in scanner.analyze_plan()
    assert "indices: a_idx, s_idx" in table.scanner(filter="a = 34 or s = 'row 7'").explain_plan()
    for scanner in (table.scanner(filter="a = 34", use_scalar_index=False), table.scanner(), table.scanner(["a"])):
        assert "indices" not in scanner.explain_plan(verbose=True)


def test_updating_reads_new_fragments_only(tmp_path: Path) -> None:
    make(tmp_path).create_scalar_index("a", TEN)
    table, store = counted(tmp_path)
    table.optimize.optimize_indices()
    assert table.version == 2
    lance_format.write_dataset(rows(100, 130), tmp_path, mode="append", max_rows_per_file=20)
    table.checkout_latest()
    store.drain()
    table.optimize.optimize_indices()
    assert sum("/data/" in name for name in store.opened) == 2
    assert parts(tmp_path) == [("a_idx", [0, 1, 2, 3, 4, 5, 6])]
    table.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
    assert parts(tmp_path) == [("a_idx", [])]
    assert pruned(table, "a = 3") == {}
    table.optimize.optimize_indices()
    assert pruned(table, "a = 3") == {7: [(0, 10)]}


@pytest.mark.parametrize("kind", ["ZONEMAP", "BTREE", "BITMAP", "BLOOMFILTER"])
@pytest.mark.parametrize("stable", [False, True])
def test_indices_follow_rewritten_fragments(tmp_path: Path, kind: str, stable: bool) -> None:
    table = make(tmp_path, enable_stable_row_ids=stable)
    table.create_scalar_index("a", kind)
    table.create_scalar_index("s", "ZONEMAP", train=False)
    lance.dataset(str(tmp_path)).create_scalar_index("s", "INVERTED", "words", base_tokenizer="icu")
    table.checkout_latest()
    table.delete("a % 5 = 3")
    version = table.version
    metrics = table.optimize.compact_files(target_rows_per_fragment=50, materialize_deletions_threshold=0.1)
    assert metrics.fragments_removed == 5
    fragments = sorted(fragment.fragment_id for fragment in table.get_fragments())
    assert parts(tmp_path) == [("s_idx", []), ("words", []), ("a_idx", fragments)]
    assert table.version == version + 2
    table.optimize.sort_rows(["s"])
    assert table.version == version + 4
    assert parts(tmp_path)[2][1] == [fragment.fragment_id for fragment in table.get_fragments()]
    assert table.to_table(filter="a = 97")["a"].to_pylist() == [97]
    assert lance.dataset(str(tmp_path)).to_table(filter="a = 97")["a"].to_pylist() == [97]


def test_parts(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.create_scalar_index("a", TEN, "numbers", train=False)
    assert parts(tmp_path) == [("numbers", [])]
    assert pruned(table, "a = 3") == {}
    table.optimize.optimize_indices()
    for start in (100, 120, 140):
        table = lance_format.write_dataset(rows(start, start + 20), tmp_path, mode="append")
        table.optimize.optimize_indices(num_indices_to_merge=0)
    assert [ids for _, ids in parts(tmp_path)] == [[0, 1, 2, 3, 4], [5], [6], [7]]
    assert {index["name"] for index in table.list_indices()} == {"numbers"}
    expected: dict[int, list[tuple[int, int]]] = {fragment_id: [] for fragment_id in range(8)} | {6: [(0, 10)]}
    assert pruned(table, "a = 123") == expected
    table.optimize.optimize_indices(num_indices_to_merge=2)
    assert [ids for _, ids in parts(tmp_path)] == [[0, 1, 2, 3, 4], [5], [6, 7]]
    table.optimize.optimize_indices(num_indices_to_merge=9)
    assert [ids for _, ids in parts(tmp_path)] == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert pruned(table, "a = 123") == expected
    table.optimize.optimize_indices(retrain=True)
    assert pruned(table, "a = 123") == expected
    table.drop_index("numbers")
    assert not table.has_index


@pytest.mark.parametrize(
    ("column", "kind", "options", "error", "message"),
    [
        ("b", "ZONEMAP", {}, InvalidInputError, "'b'"),
        (["a", "n"], "ZONEMAP", {}, InvalidInputError, "of one"),
        ("a", "RTREE", {}, NotSupportedError, "RTREE cannot be made; ZONEMAP, .* and IVF_HNSW_SQ can"),
        ("a", None, {}, InvalidInputError, "IndexConfig"),
        ("a", IndexConfig("ZONEMAP", {"rows_per_zone": 0}), {}, InvalidInputError, "rows_per_zone is 0"),
        ("a", IndexConfig("ZONEMAP", {"rows_per_zone": True}), {}, InvalidInputError, "rows_per_zone is True"),
        ("a", IndexConfig("ZONEMAP", {"use_seeds": 1}), {}, InvalidInputError, "use_seeds is 1"),
        ("a", IndexConfig("ZONEMAP", {"size": 1}), {}, InvalidInputError, "'size'"),
        ("a", "ZONEMAP", {"name": "taken", "replace": False}, InvalidInputError, "'taken' already"),
        ("a", "ZONEMAP", {"name": "__lance_frag_reuse"}, InvalidInputError, "__lance_frag_reuse"),
        ("a", "ZONEMAP", {"name": ""}, InvalidInputError, "called ''"),
        ("n", "ZONEMAP", {}, NotSupportedError, "null"),
        ("blob", "ZONEMAP", {}, NotSupportedError, "blobs"),
        ("l.item", "ZONEMAP", {}, NotSupportedError, "lists"),
    ],
)
def test_what_cannot_be_indexed(
    tmp_path: Path, column: str | list[str], kind: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    fields = [("a", pa.int64()), ("n", pa.null()), ("l", pa.list_(pa.int64()))]
    blob = pa.field("blob", pa.large_binary(), metadata={BLOB_KEY: b"true"})
    table = lance_format.write_dataset(pa.schema([*(pa.field(*pair) for pair in fields), blob]).empty_table(), tmp_path)
    table.create_scalar_index("a", "ZONEMAP", "taken")
    before = sorted((tmp_path / "_indices").iterdir())
    with pytest.raises(error, match=message):
        table.create_scalar_index(column, kind, **options)
    assert sorted((tmp_path / "_indices").iterdir()) == before
    assert table.version == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"index_names": ["b_idx"]}, "the indices are a_idx"),
        ({"index_names": "a_idx"}, "a sequence of text is needed"),
        ({"num_indices_to_merge": -1}, "is -1"),
        ({"num_indices_to_merge": True}, "is True"),
    ],
)
def test_what_cannot_be_updated(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    table = make(tmp_path)
    table.create_scalar_index("a", "ZONEMAP")
    with pytest.raises(InvalidInputError, match=message):
        table.optimize.optimize_indices(**options)


def test_an_index_takes_the_place_of_one_of_its_name(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.create_scalar_index("a", "ZONEMAP", "i")
    table.create_scalar_index(["s"], TEN, "i")
    assert [index["fields"] for index in table.list_indices()] == [["s"]]
    assert pruned(table, "a = 3") == {}
    assert pruned(table, "s = 'row 99'")[0] == []


def test_changes_at_the_same_time(tmp_path: Path) -> None:
    """A plan on an older version lands if it is still valid, and starts again otherwise."""
    stale = make(tmp_path)._table
    lance_format.write_dataset(rows(100, 110), tmp_path, mode="append")
    lance_format.dataset(tmp_path).delete("a = 7")
    made = create_scalar_index(stale, "a", TEN)
    assert made.manifest.version == 4
    assert parts(tmp_path) == [("a_idx", [0, 1, 2, 3, 4])]
    stale = made
    other = lance_format.dataset(tmp_path)
    other.optimize.optimize_indices()
    with pytest.raises(RetryableCommitConflictError):
        optimize_indices(stale)
    before = sorted((tmp_path / "_indices").rglob("*.lance"))
    lance_format.dataset(tmp_path).optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=True)
    with pytest.raises(RetryableCommitConflictError):
        create_scalar_index(made, "s", "ZONEMAP")
    assert sorted((tmp_path / "_indices").rglob("*.lance")) == before, "nothing is left of what did not land"


def test_new_values_in_place_are_not_covered(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.create_scalar_index("a", TEN)
    fragment = table.get_fragments()[2]
    changed, fields = fragment.update_columns(pa.table({"s": ["row 45"], "a": [7000]}), left_on="s")
    lance_format.LanceDataset.commit(
        table.uri,
        lance_format.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields),
        read_version=table.version,
    )
    assert parts(tmp_path) == [("a_idx", [0, 1, 3, 4])]
    table = lance_format.dataset(tmp_path)
    assert table.to_table(filter="a = 7000")["s"].to_pylist() == ["row 45"]
    table.drop_index("a_idx")
    table.alter_columns({"path": "a", "data_type": pa.int32()})
    table.create_scalar_index("a", TEN)
    assert lance_format.dataset(tmp_path).to_table(filter="a = 7000")["s"].to_pylist() == ["row 45"]


@pytest.mark.parametrize(
    "values",
    [
        [None if row % 5 == 0 else row * 7919 % 100 for row in range(60)],
        [None if row % 7 == 0 else float("nan") if row % 4 == 0 else row * 0.5 for row in range(60)],
        [None if row < 9 else f"row {row}" for row in range(60)],
        [None] * 60,
    ],
    ids=["integers", "floats", "strings", "nulls"],
)
def test_zones_of_small_fragments_are_those_of_each(tmp_path: Path, values: list[Any]) -> None:
    table = pa.table({"v": pa.array(values)})
    sizes = [1, 5, 1, 2, 9, 1, 41]
    for size in sizes:
        start = 60 - table.num_rows
        lance_format.write_dataset(table.slice(0, size), tmp_path, mode="append" if start else "create")
        table = table.slice(size)
    dataset = lance_format.dataset(tmp_path)
    dataset.delete("_rowid = 1 or _rowid >= 17179869184 and _rowid < 17179869187")
    version = dataset._table
    path = (version.manifest.schema.field("v"),)
    fragments = list(version.manifest.fragments)
    together, null_rows = train_zones(version, path, fragments, 3)
    each = [train_zones(version, path, [fragment], 3) for fragment in fragments]
    expected = Zones.concatenate([zones for zones, _ in each])
    for name in ("fragment_ids", "starts", "lengths", "null_counts", "nan_counts"):
        assert getattr(together, name).tolist() == getattr(expected, name).tolist(), name
    for name in ("lower", "upper"):
        assert str(getattr(together, name)) == str(getattr(expected, name)), name
    assert null_rows == {key: value for _, found in each for key, value in (found or {}).items()}
    assert len(together) > len(fragments)
