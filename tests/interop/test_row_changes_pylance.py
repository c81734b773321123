"""Changes of rows, version by version: applied to the rows before, they give the rows after."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import ChangeLog, LanceDataset, RowChange

COLUMNS = ("id", "v", "more")
COMMITS = 12


class Writer:
    """Random changes of a table, each by this library or by pylance."""

    def __init__(self, path: Path, seed: int, *, stable: bool) -> None:
        self.random = random.Random(seed)
        self.path = str(path)
        self.next_id = 0
        data = self.rows(12)
        write = lance.write_dataset if seed % 2 else lance_format.write_dataset
        write(data, self.path, max_rows_per_file=5, enable_stable_row_ids=stable, data_storage_version="2.1")

    def rows(self, num_rows: int) -> pa.Table:
        start, self.next_id = self.next_id, self.next_id + num_rows
        return pa.table({"id": range(start, self.next_id), "v": [str(start)] * num_rows})

    def change(self) -> str:
        """Change the table once, and return how."""
        name, library = self.random.choice(CHANGES), self.random.choice((lance, lance_format))
        table = library.dataset(self.path)
        getattr(self, name)(table)
        return f"{library.__name__}: {name}"

    def some(self) -> str:
        start = self.random.randrange(self.next_id)
        return f"id >= {start} AND id < {start + self.random.randrange(1, 9)}"

    def append(self, table: Any) -> None:
        table.insert(self.rows(self.random.randrange(1, 9)).select([n for n in ("id", "v") if n in table.schema.names]))

    def delete(self, table: Any) -> None:
        table.delete(self.some())

    def update(self, table: Any) -> None:
        table.update({"v": f"'{self.random.random()}'"}, self.some())

    def merge(self, table: Any) -> None:
        start = self.random.randrange(self.next_id)
        source = pa.table({"id": range(start, start + 6), "v": [str(self.random.random())] * 6})
        self.next_id = max(self.next_id, start + 6)
        if "more" in table.schema.names:
            source = source.append_column("more", pa.array([start] * 6, table.schema.field("more").type))
        table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)

    def compact(self, table: Any) -> None:
        table.optimize.compact_files(target_rows_per_fragment=self.random.choice((8, 100)))

    def overwrite(self, table: Any) -> None:
        write = lance.write_dataset if isinstance(table, lance.LanceDataset) else lance_format.write_dataset
        write(self.rows(7), self.path, mode="overwrite", max_rows_per_file=4)

    def restore(self, table: Any) -> None:
        table.checkout_version(self.random.randrange(1, table.version + 1)).restore()

    def columns(self, table: Any) -> None:
        if "more" in table.schema.names:
            table.drop_columns(["more"])
        else:
            table.add_columns({"more": "id + 1"})

    def index(self, table: Any) -> None:
        if isinstance(table, lance.LanceDataset):
            table.create_scalar_index("id", "ZONEMAP", replace=True)
        else:
            table.update_config({"note": str(self.random.random())})


CHANGES = ("append", "append", "delete", "delete", "update", "update", "merge", "merge", "compact", "overwrite",
           "restore", "columns", "index")  # fmt: skip


def content(table: LanceDataset) -> Counter[tuple[Any, ...]]:
    return Counter(map(spell, table.to_table().to_pylist()))


def spell(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in COLUMNS)


def read(log: ChangeLog, change: RowChange) -> list[dict[str, Any]]:
    found = log.open(change.version).scanner().read_rows(change.fragment_id, change.rows())
    rows = [row for batch in found for row in batch.to_pylist()]
    assert len(rows) == change.num_rows
    return rows


def apply(before: Counter[tuple[Any, ...]], log: ChangeLog, version: int) -> Counter[tuple[Any, ...]]:
    """Return the rows before a version, changed as it says."""
    names = log.open(version).schema.names
    known = [name in names for name in COLUMNS]
    rows = Counter()
    for row, count in before.items():  # of dropped columns nothing is left
        rows[tuple(value if kept else None for value, kept in zip(row, known, strict=True))] += count
    for change in log.find_changes(version):
        for row in read(log, change):
            values = spell({name: row.get(name) for name in names})
            rows[values] += 1 if change.kind in ("insert", "update_postimage") else -1
            assert rows[values] >= 0, change
    return +rows


def check_history(tmp_path: Path, seed: int, *, stable: bool) -> None:
    writer = Writer(tmp_path / "t", seed, stable=stable)
    done = [writer.change() for _ in range(COMMITS)]
    table = lance_format.dataset(writer.path)
    log, rows = ChangeLog(table), Counter[tuple[Any, ...]]()
    assert log.latest_version() == table.version
    for version in range(1, table.version + 1):
        shown = log.open(version)
        rows = apply(rows, log, version)
        assert rows == content(shown), (seed, version, log.operation(version), done)
        added = log.added_fragments(version)
        if added is not None:
            changes = log.find_changes(version, with_new_columns=False)
            assert [(x.kind, x.fragment_id, x.offsets) for x in changes] == [("insert", x, None) for x in added]


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_changes_lead_from_version_to_version(tmp_path: Path, seed: int, stable: bool) -> None:
    check_history(tmp_path, seed, stable=stable)


@pytest.mark.nightly
@pytest.mark.parametrize("stable", [False, True])
def test_changes_of_many_histories(tmp_path: Path, stable: bool) -> None:
    for seed in range(100, 400):
        check_history(tmp_path / str(seed), seed, stable=stable)
