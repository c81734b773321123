"""Random damage to tables of every type is repaired: all that is not listed as lost remains, and pylance reads it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.fuzz.flips import DAMAGES, VERSIONS, make_table

pytestmark = pytest.mark.system

ROWS = 3000


@pytest.mark.parametrize("cases", [12, pytest.param(300, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_not_lost_remains(tmp_path: Path, version: str, cases: int) -> None:
    whole, path = tmp_path / "whole", tmp_path / "t"
    make_table(whole, version, ROWS)
    rows = lance_format.dataset(whole).to_table()
    files = [file.relative_to(whole) for kind in ("data", "_indices") for file in (whole / kind).rglob("*.lance")]
    rng = random.Random(f"{cases} {version}")
    for number in range(cases):
        shutil.copytree(whole, path)
        for file in rng.sample(files, rng.choice((1, 1, 2))):
            content = (path / file).read_bytes()
            (path / file).write_bytes(DAMAGES[rng.choice(("flip", "flip", "zeros", "repetition"))](rng, content))
        kept = _repaired(path, rows)
        for found in (lance_format.dataset(path), lance.dataset(str(path))):
            assert _in_order(found.to_table()) == kept, f"case {number}"
        shutil.rmtree(path)


def _repaired(path: Path, rows: pa.Table) -> pa.Table:
    """Repair a table, give up the rows that are lost, and return those that must remain."""
    dataset = lance_format.dataset(path)
    addresses = dict(zip(rows["id"].to_pylist(), _addresses(dataset), strict=True))
    report = dataset.verify(repair=True)
    assert {finding.repair for finding in report.problems} <= {"", "rewrite the fragment", "rebuild the index"}
    gone: set[int] = set()
    for lost in report.lost:
        first = lost.fragment_id << 32
        gone |= {row for row, at in addresses.items() if first + lost.start <= at < first + lost.stop}
        assert dataset.delete(lost.condition)["num_deleted_rows"] == lost.num_rows
    assert len(gone) == sum(lost.num_rows for lost in report.lost)
    again = dataset.verify(repair=True)
    assert not again.lost
    assert not again.irreparable
    dataset.cleanup_old_versions(retain_versions=1)
    assert not lance_format.dataset(path).verify().problems
    lance.dataset(str(path)).validate()
    return _in_order(rows.filter(pa.array([number not in gone for number in rows["id"].to_pylist()])))


def _in_order(rows: pa.Table) -> pa.Table:
    """Return rows in the order of their ids, with plain values in place of a dictionary."""
    keys = rows["keys"].cast(pa.string())
    return rows.set_column(rows.column_names.index("keys"), "keys", keys).sort_by("id").combine_chunks()


def _addresses(dataset: lance_format.LanceDataset) -> list[int]:
    """Return the addresses of the live rows; reading them reads no column."""
    return dataset.to_table(columns=[], with_row_address=True)["_rowaddr"].to_pylist()
