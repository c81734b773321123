"""Appends with columns that a table of pylance lacks, and pylance on what comes of them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.interop.test_scans_pylance import people
from tests.interop.test_table_pylance import assert_same

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_pylance_goes_on(tmp_path: Path, version: str, stable: bool) -> None:
    path = tmp_path / "t"
    stale = lance.write_dataset(
        people(100), str(path), max_rows_per_file=30, enable_stable_row_ids=stable, data_storage_version=version
    )
    stale.delete("id % 10 = 3")
    new = pa.table({"id": [1000, 1001], "tags": [["a"], None], "pair": [None, {"l": 1, "r": "x"}]})
    first = lance_format.plan_write(str(path), new.schema, mode="append", merge_schema=True)
    second = lance_format.plan_write(str(path), new.schema, mode="append", merge_schema=True)
    written = [planned.write_fragments(new.to_batches()) for planned in (first, second)]
    lance.dataset(str(path)).add_columns({"y": "x * 2"})
    assert [first.commit(written[0]), second.commit(written[1])] == [4, 5]
    table = assert_same(path)
    assert table.schema.names == ["id", "name", "home", "x", "y", "tags", "pair"]
    assert table.to_table(["id", "tags", "pair"]).slice(90) == pa.concat_tables([new, new])
    assert table.to_table(LINEAGE) == lance.dataset(str(path)).to_table(columns=LINEAGE)
    # A handle that is older than the new columns writes on, and so does a new one.
    stale.insert(people(3))
    reference = lance.dataset(str(path))
    reference.update({"tags": "NULL"}, "id = 1000")
    reference.delete("id = 1001")
    reference.optimize.compact_files()
    reference.drop_columns(["pair"])
    assert assert_same(path).count_rows() == 90 + 2 + 3
    assert lance_format.dataset(path).to_table(["_rowid"]) == lance.dataset(str(path)).to_table(columns=["_rowid"])
