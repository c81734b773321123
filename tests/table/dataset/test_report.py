"""The numbers of reports are those of the API."""

from __future__ import annotations

import datetime
import decimal
import json
import re
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset, NotSupportedError, StorageError
from lance_format.table.dataset.reports.report_facts import MAX_FILES_FRAGMENTS
from tests.cli.conftest import add_fragments

_ROWS = 30_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    path = tmp_path_factory.mktemp("report") / "t"
    for begin in (0, _ROWS):
        ids = range(begin, begin + _ROWS)
        rows = pa.table(
            {
                "id": ids,
                "scattered": [number * 7919 % _ROWS / 3 for number in ids],
                "name": [f"bird {number:06}" for number in ids],
                "place": [{"x": number, "y": [number]} for number in ids],
            }
        )
        lance_format.write_dataset(rows, path, mode="append" if begin else "create")
    found = lance_format.dataset(path)
    found.delete("id % 100 = 3 AND id < 1000")
    found.update({"name": "'emu'"}, where="id = 5")
    return found


def test_the_totals(dataset: LanceDataset) -> None:
    facts = dataset.report().facts
    assert facts["table"]["rows"] == dataset.count_rows()
    assert facts["table"]["fragments"] == facts["sampled_fragments"] == 3
    sizes: dict[str, int] = {}
    for each in facts["storage"]:
        sizes[each["column"]] = sizes.get(each["column"], 0) + each["size_bytes"]
    known = {field.id: field.bytes_on_disk for field in dataset.stats.data_stats().fields}
    names = {0: "id", 1: "scattered", 2: "name", 4: "place.x", 6: "place.y.item"}
    assert sizes == {name: known[number] for number, name in names.items()}
    assert facts["reads"] is None


def test_fragments_and_versions(dataset: LanceDataset) -> None:
    facts = dataset.report().facts
    assert facts["fragments"] == {
        "ids": [0, 1, 2],
        "rows": [fragment.physical_rows for fragment in dataset.get_fragments()],
        "deleted_rows": [fragment.num_deletions for fragment in dataset.get_fragments()],
        "size_bytes": [
            sum(f.file_size_bytes or 0 for f in fragment.data_files()) for fragment in dataset.get_fragments()
        ],
        "added_by": [1, 2, 4],
    }
    assert [(each["version"], each["operation"]) for each in facts["versions"]] == [
        (1, "overwrite"),
        (2, "append"),
        (3, "delete"),
        (4, "update"),
    ]
    assert datetime.datetime.fromisoformat(facts["versions"][0]["timestamp"]).tzinfo is not None
    older = dataset.checkout_version(2).report().facts
    assert (older["fragments"]["added_by"], len(older["versions"])) == ([1, 2], 2)


def test_zones_say_how_many_a_value_lies_in(dataset: LanceDataset) -> None:
    zones = {each["column"]: each for each in dataset.report().facts["zones"]}
    assert {"id", "scattered", "name", "place.x"} <= set(zones)
    assert {each["zones"] for each in zones.values()} == {8}
    assert zones["id"]["zones_per_value"] <= 1.1
    assert zones["place.x"]["zones_per_value"] <= 1.1
    assert 7 <= zones["scattered"]["zones_per_value"] <= 8
    assert zones["name"]["zones_per_value"] < 2
    assert (zones["id"]["lowest"], zones["id"]["highest"]) == ("0", str(2 * _ROWS - 1))
    for each in zones.values():
        assert all(0 <= low <= high <= 1 for low, high in zip(each["lower"], each["upper"], strict=True))


def test_reads_are_the_planned_ones(dataset: LanceDataset) -> None:
    facts = dataset.report("id = 40000", columns=["name"]).facts["reads"]
    reads = dataset.scanner(["name"], filter="id = 40000").plan_reads()
    for name in ("rows", "rows_read", "zones", "zones_read", "pages", "pages_read", "size_bytes", "bytes_read"):
        assert facts[name] == reads.total(name)
    assert (facts["fragments_read"], facts["num_fragments"]) == (2, 3)  # The third has one row.
    assert facts["skipped_by"] == ["statistics", "", ""]


def test_bounds_of_all_types(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "float": [float("-inf"), float("nan"), 1.0] * 4000,
            "bool": [True, False, None] * 4000,
            "day": [datetime.date(2024, 1, 1)] * 12000,
            "time": pa.array(range(12000), pa.timestamp("us", "UTC")),
            "price": pa.array([decimal.Decimal("1.50")] * 12000),
            "bytes": [b"\xff\x00", b"", None] * 4000,
            "null": pa.nulls(12000, pa.int32()),
            "span": pa.array(range(12000), pa.duration("s")),
        }
    )
    lance_format.write_dataset(rows, tmp_path / "t")
    report = lance_format.dataset(tmp_path / "t").report("float > 0")
    assert {each["column"] for each in report.facts["zones"]} >= {"float", "day", "time", "price"}
    assert json.loads(json.dumps(report.facts, allow_nan=False)) == report.facts
    assert "Bytes by column" in report.to_html()


def test_tables_of_pylance_and_empty_ones(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": range(20_000)}), str(tmp_path / "theirs"))
    report = lance_format.dataset(tmp_path / "theirs").report("id = 1")
    assert report.facts["zones"] == []
    assert report.facts["reads"]["columns_without_statistics"] == ["id"]
    assert "No column has statistics" in report.to_html()
    empty = lance_format.write_dataset(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "empty")
    assert "0 fragments" in empty.report("id = 1").to_html()
    assert "<svg" not in empty._repr_html_()


@pytest.mark.slow
def test_files_of_some_of_many_fragments_are_opened(tmp_path: Path) -> None:
    dataset = lance_format.write_dataset({"a": [1, 2]}, tmp_path / "t")
    dataset = add_fragments(dataset, 10_000 - 1)
    facts = dataset.report().facts
    assert facts["sampled_fragments"] == MAX_FILES_FRAGMENTS
    assert len(facts["fragments"]["ids"]) == 10_000
    assert facts["fragments"]["added_by"] == [1] + [2] * 9_999
    page = dataset.report().to_html()
    assert "Pages of 200 of 10,000 fragments" in page
    assert len(page) < 1_000_000
    assert len(dataset._repr_html_()) < 200_000


def test_the_page_contains_its_numbers_and_loads_nothing(dataset: LanceDataset, tmp_path: Path) -> None:
    report = dataset.report("id = 5")
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page == report.to_html()
    (facts,) = re.findall(r'<script type="application/json" id="facts">(.*?)</script>', page, re.DOTALL)
    assert json.loads(facts) == report.facts
    assert not re.search(r"(src|href)=\"(?!data:)|@import|url\(", page)
    with pytest.raises(StorageError, match=r"cannot write the local file .*/none': Not a directory; check"):
        report.save(tmp_path / "report.html/none")


def test_a_notebook_gets_a_summary_without_reading_files(dataset: LanceDataset, tmp_path: Path) -> None:
    copy = dataset.deep_clone(tmp_path / "copy", dataset.version)
    for path in (tmp_path / "copy" / "data").iterdir():
        path.unlink()
    shown = copy._repr_html_()
    assert f"{dataset.count_rows():,}" in shown
    assert "<svg" in shown
    assert "<script" not in shown


def test_without_the_extra_the_error_names_it(dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(NotSupportedError, match=r"pip install 'pyspark-lance\[report\]'"):
        dataset.report().to_html()
    shown = dataset._repr_html_()
    assert f"{dataset.count_rows():,}" in shown
    assert "<svg" not in shown
