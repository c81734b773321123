"""What the commands print equals what the Python API returns."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format.file import LanceFileReader
from tests.cli.command_line import execute, json_of, text_of
from tests.cli.conftest import ROWS, add_fragments, birds

_LIVE = 2 * ROWS - 40


def test_info(table: Path) -> None:
    dataset = lance_format.dataset(table)
    found = json_of("info", table)
    assert (found["version"], found["rows"], found["deleted_rows"]) == (6, _LIVE, 41)
    assert (found["fragments"], found["data_files"], found["deletion_files"]) == (3, 3, 2)
    files = [file for fragment in dataset.get_fragments() for file in fragment.data_files()]
    assert found["size_bytes"] == sum((table / "data" / file.path).stat().st_size for file in files)
    assert found["files_by_format_version"] == {dataset.data_storage_version: 3}
    assert [column["name"] for column in found["columns"]] == ["id", "name", "place", "score"]
    assert found["indices"] == [
        {"name": "id_idx", "type": "ZoneMap", "columns": ["id"], "version": 4, "fragments": 3, "fragments_missing": 0}
    ]
    assert (found["tags"], found["branches"]) == ({"loaded": 2}, ["side"])
    assert datetime.datetime.fromisoformat(found["timestamp"]).tzinfo is not None
    shown = text_of("info", table)
    assert f"{_LIVE:,}" in shown
    assert "int64" in shown


def test_values_of_properties_that_are_named_like_secrets_are_hidden(table: Path) -> None:
    assert json_of("info", table)["config"] == {"owner": "zoo", "api.token": "(hidden)"}
    assert "s3cr3t" not in text_of("info", table)


def test_another_version_a_tag_and_a_branch(table: Path) -> None:
    assert [json_of("info", table, "-v", version)["rows"] for version in ("1", "loaded", "side:", "side:2")] == [
        ROWS,
        *[2 * ROWS] * 3,
    ]
    ended = execute("info", table, "--version", "99")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("pyspark-lance: ")
    assert ended.err.count("\n") == 1


def test_history(table: Path) -> None:
    found = json_of("history", table)
    assert found["more"] == 0
    log = [(version["version"], transaction) for version, transaction in lance_format.dataset(table).version_log()]
    assert [(each["version"], each["operation"]) for each in found["versions"]] == [
        (version, transaction.operation.name) for version, transaction in log if transaction is not None
    ]
    assert [each["rows_added"] for each in found["versions"]] == [0, 0, 0, -40, ROWS, ROWS]
    assert [each["message"] for each in found["versions"]] == [None, None, None, None, "daily load", None]
    assert [each["rows"] for each in json_of("history", table, "-n", 2, "-v", 3)["versions"]] == [_LIVE, 2 * ROWS]
    shown = text_of("history", table, "--limit", 1)
    assert "5 earlier versions are not shown: --limit 6 shows them" in shown
    assert f"{datetime.datetime.now().astimezone():%z}"[:3] in shown  # the zone of the time


def test_diff(table: Path) -> None:
    found = json_of("diff", table, 1, 4, "--rows", 2)
    assert (found["rows_before"], found["rows_after"]) == (ROWS, _LIVE)
    assert (found["fragments_added"], found["fragments_removed"], found["fragments_changed"]) == (2, 0, 1)
    assert [
        (each["version"], each["rows_inserted"], each["rows_updated"], each["rows_deleted"])
        for each in found["versions"]
    ] == [(4, 1, 0, 1), (3, 0, 0, 40), (2, ROWS, 0, 0)]
    assert [each["row"]["id"] for each in found["changed_rows"]] == [ROWS, ROWS + 1]
    deleted = json_of("diff", table, 2, 3, "--rows", 3)["changed_rows"]
    assert [(each["change"], each["row"]["id"]) for each in deleted] == [
        ("delete", 7),
        ("delete", 1007),
        ("delete", 2007),
    ]
    assert "daily load" in text_of("diff", table, 0, 2)


def test_diff_of_schemas_and_properties(tmp_path: Path) -> None:
    dataset = lance_format.write_dataset({"a": [1], "b": [2]}, tmp_path / "t")
    dataset.add_columns({"c": "a + 1"})
    dataset.alter_columns({"path": "b", "data_type": pa.string()})
    dataset.drop_columns(["a"])
    dataset.update_config({"owner": "zoo"})
    found = json_of("diff", tmp_path / "t", 1, 5)
    assert "c: int64" in found["columns_added"][0]
    assert [len(found[key]) for key in ("columns_dropped", "columns_changed", "config_changed")] == [1, 1, 1]
    assert execute("diff", tmp_path / "t", 3, 2).code == 2


def test_files_name_the_files_that_pages_reads(table: Path) -> None:
    found = json_of("files", table)
    assert [(each["fragment_id"], each["content"]) for each in found["files"]] == [
        (0, "data"),
        (0, "deletion"),
        (1, "data"),
        (1, "deletion"),
        (2, "data"),
    ]
    assert all((table / each["path"]).is_file() for each in found["files"])
    assert found["files"][0]["columns"] == ["id", "name", "place.x", "place.y.item", "score"]
    limited = json_of("files", table, "--limit", 2)
    assert (len(limited["files"]), limited["more"]) == (2, 3)
    first = table / found["files"][0]["path"]
    assert str(found["files"][0]["path"]) in text_of("files", table)

    pages = json_of("pages", first)
    assert pages["rows"] == ROWS
    statistics = LanceFileReader(first).file_statistics()
    assert sum(page["size_bytes"] for page in pages["pages"]) == sum(c.size_bytes for c in statistics.columns)
    by_column = {page["column"]: page for page in pages["pages"]}
    assert by_column["id"]["plain_bytes"] == ROWS * 8
    assert by_column["id"]["ratio"] == pytest.approx(ROWS * 8 / by_column["id"]["size_bytes"])
    assert (by_column["id"]["num_zones"], by_column["place.y.item"]["num_zones"]) == (3, None)
    assert by_column["name"]["compression"].startswith("dictionary of 700")
    only = json_of("pages", first, "--column", "place", "--no-ratio")["pages"]
    assert {page["column"] for page in only} == {"place.x", "place.y.item"}
    assert {page["plain_bytes"] for page in only} == {None}
    assert "its columns are id, name" in execute("pages", first, "-c", "nonsense").err


def test_head_sample_and_query(table: Path) -> None:
    assert json_of("head", table, "-n", 2, "-c", "id,place")["rows"] == [
        {"id": 0, "place": {"x": 0, "y": []}},
        {"id": 1, "place": {"x": 1, "y": [1]}},
    ]
    assert len(json_of("sample", table, "-n", 5)["rows"]) == 5
    found = json_of("query", table, "id BETWEEN 3 AND 8", "--columns", "id, name", "--order-by", "id")
    assert [row["id"] for row in found["rows"]] == [3, 4, 5, 6, 8]
    assert found["rows"][2]["name"] == "emu"
    assert json_of("query", table, "id < 100", "--count")["count"] == 99
    assert text_of("query", table, "id < 100", "--count") == "99\n"
    few = json_of("query", table, "id = 30000")
    assert (few["cost"]["fragments"], few["cost"]["fragments_read"]) == (3, 1)
    assert "there is no column" in execute("query", table, "nonsense = 1").err


def test_explain_equals_the_planned_reads(table: Path) -> None:
    reads = lance_format.dataset(table).scanner(filter="score > 0.99").plan_reads()
    found = json_of("explain", table, "score > 0.99")
    assert (found["zones"], found["zones_read"]) == (reads.total("zones"), reads.total("zones_read"))
    assert found["bytes_read"] == reads.total("bytes_read")
    assert found["zones_read"] == found["zones"] == 6
    assert "--order-by score" in found["advice"]
    few = json_of("explain", table, "id = 30000")
    assert (few["num_fragments"], few["fragments_read"], few["zones_read"]) == (3, 1, 1)
    assert [each["skipped_by"] for each in few["fragments"]] == ["index", "", "index"]
    assert "nothing but statistics" in text_of("explain", table, "id = -1")


def test_explain_of_small_fragments_names_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "t"
    wide = pa.array([[float(row)] * 8 for row in range(4_000)], pa.list_(pa.float32(), 8))
    lance_format.write_dataset({"id": range(4_000), "vector": wide}, path, max_rows_per_file=2_000)
    assert "pyspark-lance optimize PATH" in json_of("explain", path, "id < 10")["advice"]
    lance_format.write_dataset({"id": range(4_000), "vector": wide}, path, mode="overwrite")
    assert "so small that there is nothing to skip" in json_of("explain", path, "id < 10")["advice"]


def test_stats(table: Path) -> None:
    found = json_of("stats", table)
    sizes = [field.bytes_on_disk for field in lance_format.dataset(table).stats.data_stats().fields]
    assert [each["size_bytes"] for each in found["columns"]] == sizes
    assert found["size_bytes"] == sum(sizes)
    assert "place.y.item" in text_of("stats", table)
    first = json_of("stats", table, "-v", "1")["columns"][0]
    assert (first["minimum"], first["maximum"], first["num_nulls"]) == (0, ROWS - 1, 0)


def test_verify_finds_damaged_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance_format.write_dataset({"a": range(1000)}, path)
    valid = json_of("verify", path, "--all")
    assert valid["valid"] is True
    assert valid["verified_bytes"] == valid["size_bytes"] > 0
    assert valid["files_by_status"] == {"intact": len(valid["findings"])}
    (file,) = (path / "data").iterdir()
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    file.write_bytes(content)
    ended = execute("verify", path)
    assert (ended.code, ended.err) == (1, "")
    assert "is damaged" in ended.out
    assert "rows 0 to 999" in ended.out
    file.unlink()
    found = json.loads(execute("verify", path, "--json").out)
    assert found["valid"] is False
    assert [each["status"] for each in found["findings"]] == ["missing"]


def test_verify_repairs_what_can_be_repaired(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = lance_format.write_dataset({"a": range(1000)}, path)
    dataset.create_scalar_index("a", "ZONEMAP")
    (index,) = (path / "_indices").glob("*/*")
    (file,) = (path / "data").iterdir()
    for damaged in (index, file):
        content = bytearray(damaged.read_bytes())
        content[20] ^= 1
        damaged.write_bytes(content)
    ended = execute("verify", path, "--repair")
    assert (ended.code, ended.err) == (1, "")
    assert "rebuilt the indices a_idx" in ended.out
    assert "lost rows" in ended.out
    found = json.loads(execute("verify", path, "--json").out)
    assert [(each["path"].partition("/")[0], each["repair"]) for each in found["findings"]] == [("data", "")]
    (lost,) = found["lost"]
    assert (lost["type"], lost["fragment_id"], lost["columns"], lost["version"]) == ("values", 0, ["a"], None)
    assert (lost["start"], lost["stop"], lost["num_rows"]) == (0, 1000, 1000)
    lance_format.dataset(path).delete("_rowaddr < 1000")
    lance_format.write_dataset({"a": range(9)}, path, mode="append")
    (index,) = (index for index in (path / "_indices").glob("*/*") if index.parent.name in str(_uuids(path)))
    index.unlink()
    done = json_of("verify", path, "--repair")
    assert (done["valid"], done["rebuilt_indices"], done["version"]) == (False, ["a_idx"], 5)
    assert json_of("verify", path)["valid"] is True


def _uuids(path: Path) -> list[str]:
    return [index["uuid"] for index in lance_format.dataset(path).list_indices()]


def test_optimize_vacuum_tags_and_restore(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for number in range(4):
        lance_format.write_dataset(birds(number * 100, number * 100 + 100), path, mode="append" if number else "create")
    assert json_of("optimize", path, "--dry-run")["fragments_to_rewrite"] == 4
    done = json_of("optimize", path)
    assert (done["read_version"], done["version"], done["fragments_removed"], done["fragments_added"]) == (4, 5, 4, 1)
    assert json_of("optimize", path)["fragments_removed"] == 0

    assert [tag["name"] for tag in json_of("tags", path, "--create", "first", "-v", "1")["tags"]] == ["first"]
    before = json_of("vacuum", path, "--retain-versions", 1, "--dry-run")
    assert before["old_versions"] == 3
    assert {file["kind"] for file in before["files"]} == {"data", "manifest", "transaction"}
    assert lance.dataset(str(path), version=2).count_rows() == 200
    after = json_of("vacuum", path, "--retain-versions", 1)
    assert {key: after[key] for key in ("old_versions", "bytes_removed")} == {
        key: before[key] for key in ("old_versions", "bytes_removed")
    }
    assert [each["version"] for each in json_of("history", path)["versions"]] == [5, 1]
    assert json_of("restore", path, "first") == {"uri": str(path), "restored_version": 1, "version": 6}
    assert lance.dataset(str(path)).count_rows() == 100
    assert json_of("tags", path, "--delete", "first")["tags"] == []
    assert execute("vacuum", path, "--older-than", "soon").code == 2


@pytest.mark.parametrize("stable", [False, True])
def test_optimize_sorts_rows(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t"
    dataset = lance_format.write_dataset(birds(0, 300), path, enable_stable_row_ids=stable)
    dataset.delete("id = 17")
    json_of("optimize", path, "--order-by", "score, id")
    expected = birds(0, 300).filter(pa.compute.not_equal(birds(0, 300)["id"], 17)).sort_by("score")
    assert lance.dataset(str(path)).to_table().to_pylist() == expected.to_pylist()


def test_branches(table: Path) -> None:
    (found,) = json_of("branches", table)["branches"]
    assert (found["name"], found["parent_branch"], found["parent_version"]) == ("side", None, 2)
    assert "main" in text_of("branches", table)


def test_tables_of_pylance(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance.write_dataset(birds(0, 500), str(path))
    lance.write_dataset(birds(500, 900), str(path), mode="append")
    lance.dataset(str(path)).delete("id < 10")
    assert json_of("info", path)["rows"] == 890
    assert [each["operation"] for each in json_of("history", path)["versions"]] == ["delete", "append", "overwrite"]
    assert json_of("diff", path, 2, 3)["versions"][0]["rows_deleted"] == 10
    for each in json_of("files", path)["files"]:
        if each["content"] == "data":
            assert json_of("pages", path / each["path"])["rows"] in (500, 400)
    assert json_of("explain", path, "id = 5")["fragments_read"] in (0, 1, 2)
    assert json_of("verify", path)["valid"] is True


def test_an_empty_table_and_unusual_values(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "vector": pa.array([[0.5, float("nan")], None], pa.list_(pa.float32(), 2)),
            "nested": pa.array([[{"k": b"\xff" * 100}], []], pa.list_(pa.struct([("k", pa.binary())]))),
            "text": pa.array(["a\nb\x1b[31m", "x" * 500]),
            "time": pa.array([datetime.datetime(2024, 2, 3, 4, tzinfo=datetime.UTC), None], pa.timestamp("us", "UTC")),
            "blob": lance_format.blob_array([b"abc", None]),
        },
        schema=pa.schema(
            [
                ("vector", pa.list_(pa.float32(), 2)),
                ("nested", pa.list_(pa.struct([("k", pa.binary())]))),
                ("text", pa.string()),
                ("time", pa.timestamp("us", "UTC")),
                lance_format.blob_field("blob"),
            ]
        ),
    )
    path = tmp_path / "t"
    lance_format.write_dataset(rows, path)
    lance_format.write_dataset(rows.slice(0, 0), tmp_path / "empty")
    shown = text_of("head", path)
    assert "x" * 60 not in shown
    assert "\\x0ab\\x1b[31m" in shown
    assert "x" * 500 in text_of("head", path, "--wide")
    found = json_of("head", path)["rows"]
    assert found[0]["vector"] == [0.5, "nan"]
    assert found[0]["time"] == "2024-02-03T04:00:00+00:00"
    for command in ("info", "history", "files", "stats", "head", "sample", "verify", "optimize"):
        assert json.loads(execute(command, tmp_path / "empty", "--json").out)
        assert text_of(command, tmp_path / "empty")
    for each in json_of("files", path)["files"]:
        text_of("pages", path / each["path"])
    assert json_of("explain", tmp_path / "empty", "text = 'a'")["fragments_read"] == 0


@pytest.mark.slow
def test_many_fragments_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "t"
    add_fragments(lance_format.write_dataset({"a": [1]}, path), 9_999)
    assert json_of("info", path)["fragments"] == 10_000
    shown = text_of("files", path)
    assert "9,950 more files are not shown" in shown
    assert shown.count("\n") < 60
