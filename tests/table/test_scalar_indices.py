"""Making and updating ZONEMAP indices; for what pylance makes of them see `test_zone_map_index_pylance.py`."""

from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_format
from lance_format import IndexConfig
from lance_format.expressions import as_expression
from lance_format.table.fragment_pruning import prune_fragments
from lance_format.table.index_metadata import IndexMetadata
from lance_format.table.table_version import TableVersion
from lance_format.table.zone_map import Zones
from lance_format.table.zone_map_index import load_zones
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
    return {fragment_id: ranges.pairs() for fragment_id, ranges in prune_fragments(table._table, bound).items()}


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
