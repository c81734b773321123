"""`CALL catalog.system.<procedure>(…)`."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import lance_format
from connector.procedures.registry import PROCEDURES
from lance_format import LanceDataset
from tests.spark.conftest import Catalog, files
from tests.spark.test_jobs import job_from, jobs_of
from tests.table.leftovers import leftovers

_PAGE = Path(__file__).parents[2] / "docs" / "maintenance.md"


@pytest.fixture
def table(catalog: Catalog) -> LanceDataset:
    """Return a table `t` of 8 fragments with 100 rows each."""
    rows = {"id": range(800), "name": [f"bird {number}" for number in range(800)]}
    lance_format.write_dataset(pa.table(rows), catalog.path("t"), max_rows_per_file=100)
    return lance_format.dataset(catalog.path("t"))


def call(catalog: Catalog, text: str) -> list[Any]:
    return catalog.sql(f"CALL {catalog.name}.system.{text}")


def check(table: LanceDataset, num_rows: int = 800) -> lance.LanceDataset:
    """Let pylance validate the latest version."""
    found = lance.dataset(table.uri)
    found.validate()
    assert found.count_rows() == num_rows
    assert leftovers(Path(table.uri)) == set()
    return found


def test_the_page_lists_procedures_and_arguments() -> None:
    text = _PAGE.read_text()
    for name, procedure in PROCEDURES.items():
        section = text.split(f"### `{name}`")[1].split("\n### ")[0].split("\n## ")[0]
        for parameter in procedure.parameters:
            assert f"`{parameter.name}`" in section, (name, parameter.name)


def test_procedures_are_listed(catalog: Catalog, table: LanceDataset) -> None:
    found = catalog.spark.sql(f"SHOW PROCEDURES IN {catalog.name}.system").collect()
    assert sorted(row[-1] for row in found) == sorted(PROCEDURES)
    catalog.refuses(f"CALL {catalog.name}.system.compact('@.t')", "no procedure .*compact.*optimize, vacuum")
    catalog.refuses(f"CALL {catalog.name}.db.optimize('@.t')", "no procedure")


def test_optimize(catalog: Catalog, table: LanceDataset) -> None:
    assert call(catalog, "optimize('@.t', target_rows_per_fragment => 400)") == [(8, 2, 8, 2, 2)]
    found = check(table)
    assert [fragment.count_rows() for fragment in found.get_fragments()] == [400, 400]
    assert found.to_table() == table.to_table()
    assert call(catalog, "optimize('@.t', target_rows_per_fragment => 400)") == [(0, 0, 0, 0, 2)]


def test_optimize_is_a_named_job(catalog: Catalog, table: LanceDataset) -> None:
    statement = "optimize(table => '@.t', target_rows_per_fragment => 200)"
    with job_from(catalog.spark, 0):
        jobs = jobs_of(catalog.spark, lambda: call(catalog, statement))
    assert [(job.description, job.num_tasks) for job in jobs] == [("lance: compact fragments 0-7", 4)]


def test_optimize_refreshes_indices(catalog: Catalog, table: LanceDataset) -> None:
    table.create_scalar_index("id", "BTREE")
    table.create_scalar_index("name", "ZONEMAP")
    with job_from(catalog.spark, 0):
        jobs = jobs_of(catalog.spark, lambda: call(catalog, "optimize('@.t', target_rows_per_fragment => 400)"))
    assert [job.description for job in jobs] == [
        "lance: compact fragments 0-7",
        "lance: refresh id_idx, name_idx after the optimization, version 4",
    ]
    covered = "SELECT name, fragments, fragments_missing FROM @.t.indices ORDER BY name"
    assert catalog.sql(covered) == [("id_idx", 2, 0), ("name_idx", 2, 0)]
    assert call(catalog, "optimize('@.t', order_by => array('name'))") == [(2, 1, 2, 1, 7)]
    assert catalog.sql(covered) == [("id_idx", 1, 0), ("name_idx", 1, 0)]
    arguments = "target_rows_per_fragment => 100, order_by => array('id'), defer_index_remap => true"
    assert call(catalog, f"optimize('@.t', {arguments})")[0][-1] == 8
    assert {missing for _, _, missing in catalog.sql(covered)} == {8}
    assert catalog.sql("SELECT id FROM @.t WHERE id IN (17, 1000)") == [(17,)]


def test_optimize_some_rows(catalog: Catalog, table: LanceDataset) -> None:
    table.create_scalar_index("id", "ZONEMAP")
    table.delete("id = 650")
    assert call(catalog, "optimize('@.t', where => 'id >= 200 AND id < 400')") == [(2, 1, 2, 1, 5)]
    counts = [fragment.count_rows() for fragment in check(table, 799).get_fragments()]
    assert counts == [100, 100, 100, 100, 99, 100, 200]
    arguments = "materialize_deletions_threshold => 0.001, target_rows_per_fragment => 50"
    assert call(catalog, f"optimize('@.t', {arguments})") == [(1, 1, 2, 1, 7)]
    assert call(catalog, "optimize('@.t', max_source_fragments => 1)") == [(0, 0, 0, 0, 7)]


@pytest.mark.slow
def test_failed_procedures_leave_nothing(catalog: Catalog, table: LanceDataset) -> None:
    system = f"CALL {catalog.name}.system"
    for statement, message in {
        "optimize('@.nothing')": "TABLE_OR_VIEW_NOT_FOUND",
        "optimize('nowhere.t')": "TABLE_OR_VIEW_NOT_FOUND",
        "optimize('@.t', where => 'size > 3')": "InvalidInputError: .*size",
        "optimize('@.t', where => 'id >')": "InvalidInputError: ",
        "optimize('@.t', target_rows_per_fragment => 0)": "InvalidInputError: target_rows_per_fragment is 0",
        "optimize('@.t', max_source_fragments => 0)": "InvalidInputError: max_source_fragments is 0",
        "optimize('@.t', order => 'id')": "order",
        "optimize(NULL)": "`table` of optimize is NULL",
        "optimize('@.t', order_by => 'id')": r"`order_by` of optimize is of type STRING.*ARRAY<STRING>.*array\(",
        "optimize('@.t', array('id'))": "`where` of optimize is of type ARRAY<STRING>",
        "vacuum('@.t', older_than => 5)": "`older_than` of vacuum is of type INT.*INTERVAL '7' DAY",
        "vacuum('@.t', older_than => DATE'2020-01-01')": "`older_than` of vacuum is of type DATE",
        "restore('@.t', version => true)": "`version` of restore is of type BOOLEAN",
        "create_index('@.t', 'size')": "InvalidInputError: .*size",
        "create_index('@.t', NULL)": "InvalidInputError: the argument 'column' of create_index is NULL",
        "create_index('@.t', 'id', 'FTS')": "NotSupportedError: ",
        "refresh_index('@.t', 'no')": "InvalidInputError: there is no index 'no'",
        "drop_index('@.t', 'no')": "IndexNotFoundError: there is no index 'no'",
        "restore('@.t')": "InvalidInputError: restore takes one of the arguments",
        "restore('@.t', version => 7)": "VersionNotFoundError: ",
        "create_tag('@.t', 'a b')": "InvalidInputError: ",
        "delete_tag('@.t', 'no')": "VersionNotFoundError: .*no tag 'no'",
        "delete_branch('@.t', 'no')": "VersionNotFoundError: ",
        "vacuum('@.t', retain_versions => 0)": "InvalidInputError: retain_versions is 0",
        "optimize('@.t.history')": "metadata table",
        "vacuum('@.t', older_than => INTERVAL '-1' DAY)": "older_than is -1 day, .*; an interval from 0 on is needed",
        "vacuum('@.t', before_version => 0)": "before_version is 0; a whole number from 1 on",
        "history('@.t', limit => -1)": "limit is -1; a whole number from 0 on",
        "optimize('@.t', order_by => array(NULL))": r"order_by is \[None\]; an array without NULL",
        "set_unenforced_primary_key('@.t', array(NULL))": r"columns is \[None\]; an array without NULL",
        "set_unenforced_primary_key('@.t', array())": r"columns is \[\]; one column or more",
        "create_index('@.t', 'name', 'INVERTED', max_ngram_length => 0)": "max_ngram_length is 0; a number of char",
        "create_index('@.t', 'name', 'INVERTED', max_ngram_length => 1)": "min_ngram_length is 3; a number of char",
        "add_columns('@.t', '')": "source is ''; the name of a view or table is needed",
    }.items():
        catalog.refuses(f"{system}.{statement}", message)
    assert table.latest_version == 1


@pytest.mark.slow
@pytest.mark.parametrize("num_bytes", [0, None])
def test_a_job_that_fails_halfway_leaves_nothing(catalog: Catalog, table: LanceDataset, num_bytes: int | None) -> None:
    (file,) = table.get_fragments()[5].data_files()
    lost = Path(table.uri, "data", file.path)
    content = lost.read_bytes()
    lost.unlink()
    statement = f"CALL {catalog.name}.system.optimize('@.t', target_rows_per_fragment => 200)"
    with job_from(catalog.spark, num_bytes):
        catalog.refuses(statement, "DatasetNotFoundError: ")
    assert table.latest_version == 1
    lost.write_bytes(content)
    check(table)


def test_stable_row_ids(catalog: Catalog) -> None:
    lance_format.write_dataset(
        pa.table({"id": range(400)}), catalog.path("t"), max_rows_per_file=100, enable_stable_row_ids=True
    )
    table = lance_format.dataset(catalog.path("t"))
    table.delete("id % 7 = 0")
    before = table.to_table(columns=["id", "_rowid", "_row_created_at_version"])
    call(catalog, "optimize('@.t', target_rows_per_fragment => 200)")
    assert lance_format.dataset(table.uri).to_table(columns=before.schema.names) == before
    check(table, before.num_rows)


def test_indices(catalog: Catalog, table: LanceDataset) -> None:
    assert call(catalog, "create_index('@.t', 'id', rows_per_zone => 50)") == [("id_idx", "id", "ZoneMap", 8, 2)]
    assert call(catalog, "create_index('@.t', column => 'name', name => 'n', index_type => 'zonemap')")[0][0] == "n"
    catalog.refuses(f"CALL {catalog.name}.system.create_index('@.t', 'id', replace => false)", "there is an index")
    table.checkout_latest()
    table.insert({"id": [900], "name": ["emu"]})
    assert sorted(call(catalog, "refresh_index('@.t')")) == [
        ("id_idx", "id", "ZoneMap", 9, 5),
        ("n", "name", "ZoneMap", 9, 5),
    ]
    assert call(catalog, "refresh_index('@.t', 'n', retrain => true)") == [("n", "name", "ZoneMap", 9, 6)]
    found = check(table, 801)
    assert found.to_table(filter="id = 900").num_rows == 1
    assert call(catalog, "drop_index('@.t', 'n')") == [("n", 7)]
    assert [index.name for index in lance.dataset(table.uri).describe_indices()] == ["id_idx"]
    assert call(catalog, "create_index('@.t', 'id', index_type => NULL, replace => NULL)")[0][2] == "ZoneMap"


def test_statements_about_indices(catalog: Catalog, table: LanceDataset) -> None:
    catalog.sql("ALTER TABLE @.t ADD COLUMN odd struct<`x y`: int, z: string>")
    catalog.sql("CREATE INDEX ids ON TABLE @.t USING btree (id) OPTIONS ('zone_size' = '64')")
    catalog.sql("CREATE INDEX zones ON @.t (id) OPTIONS (rows_per_zone = 50)")
    catalog.sql("CREATE INDEX inner ON @.t USING bitmap (odd.`x y`)")
    catalog.sql("CREATE INDEX IF NOT EXISTS ids ON @.t USING bitmap (name)")
    for statement, message in {
        "CREATE INDEX ids ON @.t USING btree (id)": "INDEX_ALREADY_EXISTS",
        "CREATE INDEX i ON @.t USING rtree (name)": "NotSupportedError: indices of type rtree",
        "CREATE INDEX i ON @.t USING btree (size)": "size",
        "CREATE INDEX i ON @.t USING btree (id, name)": "of one column, not of 2",
        "CREATE INDEX i ON @.t USING btree (id OPTIONS (a = 1))": "no options of its column",
        "CREATE INDEX i ON @.t USING btree (id) OPTIONS (zone_size = 'big')": "zone_size is 'big'; a whole number",
        "CREATE INDEX i ON @.t USING btree (id) OPTIONS (zone_size = 0)": "zone_size is 0",
        "CREATE INDEX i ON @.t USING btree (id) OPTIONS (size = 1)": "no option or argument 'size'",
        "DROP INDEX i ON @.t": "INDEX_NOT_FOUND",
    }.items():
        catalog.refuses(statement, message)
    found = catalog.sql("SELECT name, type, columns FROM @.t.indices ORDER BY name")
    assert found == [
        ("ids", "BTree", ["id"]),
        ("inner", "Bitmap", ["odd.x y"]),
        ("zones", "ZoneMap", ["id"]),
    ]
    catalog.sql("DROP INDEX ids ON TABLE @.t")
    catalog.sql("DROP INDEX IF EXISTS ids ON @.t")
    assert sorted(index.name for index in lance.dataset(table.uri).describe_indices()) == ["inner", "zones"]
    assert catalog.sql("SELECT id FROM @.t WHERE id = 17") == [(17,)]


def test_indices_of_lists_texts_and_zones(catalog: Catalog, table: LanceDataset) -> None:
    catalog.sql("ALTER TABLE @.t ADD COLUMN tags array<string>")
    catalog.sql("INSERT INTO @.t SELECT 900 + id, concat('emu ', id), array('all', concat('tag ', id)) FROM range(50)")
    catalog.sql("CREATE INDEX tags ON @.t USING label_list (tags)")
    catalog.sql("CREATE INDEX texts ON @.t USING ngram (name)")
    catalog.sql("CREATE INDEX i ON @.t USING bloomfilter (id) OPTIONS (number_of_items = 64, probability = 0.01)")
    catalog.refuses(
        "CREATE INDEX j ON @.t USING bloomfilter (id) OPTIONS (probability = 2)",
        "probability is 2; a number between 0 and 1 is needed",
    )
    found = catalog.sql("SELECT name, type FROM @.t.indices ORDER BY name")
    assert found == [("i", "BloomFilter"), ("tags", "LabelList"), ("texts", "NGram")]
    assert catalog.sql("SELECT id FROM @.t WHERE array_contains(tags, 'tag 7') OR id = 17 ORDER BY id") == [
        (17,),
        (907,),
    ]
    assert catalog.sql("SELECT id FROM @.t WHERE name LIKE '%emu 17%'") == [(917,)]
    arguments = "'@.t', 'id', 'BloomFilter', 'i', number_of_items => 32, probability => 0.1"
    assert call(catalog, f"create_index({arguments})")[0][:3] == ("i", "id", "BloomFilter")
    theirs = lance.dataset(table.uri)
    assert theirs.to_table(filter="id = 917 AND array_has(tags, 'tag 17')").num_rows == 1
    assert theirs.to_table(filter="contains(name, 'emu 17')").num_rows == 1


@pytest.mark.parametrize("kind", ["BTree", "Bitmap"])
def test_indices_that_name_rows(catalog: Catalog, table: LanceDataset, kind: str) -> None:
    arguments = f"'@.t', 'id', '{kind}'{', zone_size => 64' if kind == 'BTree' else ''}"
    with job_from(catalog.spark, 0):
        jobs = jobs_of(catalog.spark, lambda: call(catalog, f"create_index({arguments})"))
    assert [(job.description, job.num_tasks) for job in jobs] == [("lance: index id as id_idx", 1)]
    table.checkout_latest()
    table.insert({"id": [900], "name": ["emu"]})
    assert call(catalog, "refresh_index('@.t')") == [("id_idx", "id", kind, 9, 4)]
    assert catalog.sql("SELECT id FROM @.t WHERE id IN (17, 900, 1000) ORDER BY id") == [(17,), (900,)]
    check(table, 801)
    scanner = lance_format.dataset(table.uri).scanner(filter="id IN (17, 900, 1000)")
    assert sum(task.num_rows for task in scanner.plan_tasks()) == 2
    assert lance.dataset(table.uri).to_table(filter="id IN (17, 900, 1000)").num_rows == 2


def _flip(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


def test_verify(catalog: Catalog, table: LanceDataset) -> None:
    ((path, kind, status, _, size, verified, *_),) = call(catalog, "verify('@.t')")
    assert (path, kind, status) == (None, "table", "intact")
    assert size == verified > 0
    kinds = Counter(row[1] for row in call(catalog, "verify('@.t', all_files => true)"))
    assert kinds == {"table": 1, "manifest": 1, "transaction file": 1, "data file": 8}
    table.create_scalar_index("id", "ZONEMAP")
    data = sorted((Path(table.uri) / "data").iterdir())[0]
    (index,) = (Path(table.uri) / "_indices").glob("*/*")
    for damaged in (data, index):
        _flip(damaged, 70)
    summary, *problems, lost = call(catalog, "verify('@.t', repair => true)")
    assert summary[2] == "damaged"
    assert summary[7].endswith("1 fragments with lost rows; rebuilt the indices id_idx")
    found = {(row[0].rpartition("/")[2], row[8]) for row in problems}
    assert found == {(data.name, ""), (index.name, "rebuild the index")}
    (fragment_id,) = {row[3] for row in problems if row[3] is not None}
    assert tuple(lost[1:4]) == ("values", "lost", fragment_id)
    assert tuple(lost[9:]) == (["id", "name"], 0, 100, 100, None)
    catalog.refuses("SELECT sum(id) FROM @.t", data.name)
    assert [len(each["fragment_ids"]) for each in lance_format.dataset(table.uri).list_indices()] == [7]


def test_verify_repairs_fragments(catalog: Catalog, table: LanceDataset) -> None:
    """Lost rows are deleted by the condition of the report, then the fragment is rewritten."""
    rows = pa.table({"id": range(30_000), "number": np.random.default_rng(0).random(30_000)})
    lance_format.write_dataset(rows, table.uri, mode="overwrite")
    (file,) = lance_format.dataset(table.uri).get_fragments()[0].data_files()
    data = Path(table.uri) / "data" / file.path
    _flip(data, data.stat().st_size // 2)
    _, problem, lost = call(catalog, "verify('@.t')")
    assert problem[8] == ""
    assert lost[9] == ["number"]
    catalog.sql(f"DELETE FROM @.t WHERE {lost[7]}")
    repaired: list[Any] = []
    with job_from(catalog.spark, 0):
        jobs = jobs_of(catalog.spark, lambda: repaired.extend(call(catalog, "verify('@.t', repair => true)")))
    assert [(job.description, job.num_tasks) for job in jobs] == [("lance: verify", 2), ("lance: repair fragments", 1)]
    summary, problem = repaired
    assert problem[8] == "rewrite the fragment"
    assert "rewrote the fragments" in summary[7]
    left = 30_000 - lost[12]
    assert [tuple(row) for row in catalog.sql("SELECT count(*), count(number) FROM @.t")] == [(left, left)]
    found = lance.dataset(table.uri)
    found.validate()
    assert found.to_table().num_rows == left


def test_vacuum(catalog: Catalog, table: LanceDataset) -> None:
    call(catalog, "optimize('@.t')")
    table.checkout_latest()
    old = {f"data/{file.path}" for each in table.checkout_version(1).get_fragments() for file in each.data_files()}
    assert call(catalog, "vacuum('@.t')") == [(0, 0, 0, 0, 0, 0, 0)]
    before = files(table.uri)
    listed = call(catalog, "vacuum('@.t', retain_versions => 1, dry_run => true)")
    assert files(table.uri) == before
    assert {row[0].removeprefix(f"{table.uri}/") for row in listed if row[1] == "data"} == old
    assert all(row[2] > 0 and row[3] is False for row in listed)
    call(catalog, "create_tag('@.t', 'first', 1)")
    catalog.refuses(f"CALL {catalog.name}.system.vacuum('@.t', retain_versions => 1)", "have tags: 'first'")
    assert call(catalog, "delete_tag('@.t', 'first')") == [("first", None, 1)]
    ((size, versions, data_files, *_),) = call(catalog, "vacuum('@.t', before_version => 2)")
    assert (versions, data_files) == (1, 8)
    assert size == sum(row[2] for row in listed)
    assert before - files(table.uri) == {row[0].removeprefix(f"{table.uri}/") for row in listed}
    assert call(catalog, "vacuum('@.t', older_than => INTERVAL 1 HOUR)") == [(0, 0, 0, 0, 0, 0, 0)]
    check(table)


def test_versions_tags_and_branches(catalog: Catalog, table: LanceDataset) -> None:
    table.delete("id < 100")
    assert call(catalog, "create_tag('@.t', 'all', version => 1)") == [("all", None, 1)]
    assert call(catalog, "update_tag('@.t', 'all', 2)") == [("all", None, 2)]
    assert call(catalog, "update_tag('@.t', 'all', 1)") == [("all", None, 1)]
    assert call(catalog, "restore('@.t', tag => 'all')") == [(1, 3)]
    assert catalog.sql("SELECT count(*) FROM @.t") == [(800,)]
    assert call(catalog, "restore('@.t', 2)") == [(2, 4)]
    time = table.checkout_version(1).get_version()["timestamp"].astimezone(datetime.UTC)
    assert call(catalog, f"restore('@.t', timestamp => TIMESTAMP '{time.isoformat()}')") == [(1, 5)]
    assert call(catalog, "create_branch('@.t', 'b', version => 2)") == [("b", None, 2)]
    assert catalog.sql("SELECT count(*) FROM @.t.branch_b") == [(700,)]
    assert call(catalog, "optimize('@.t.branch_b', target_rows_per_fragment => 350)")[0][:2] == (7, 2)
    assert call(catalog, "restore('@.t.branch_b', 2)") == [(2, 4)]
    catalog.refuses(f"CALL {catalog.name}.system.restore('@.t.branch_b', tag => 'all')", "the main branch")
    history = call(catalog, "history('@.t')")
    assert [row[0] for row in history] == [5, 4, 3, 2, 1]
    assert [row[2] for row in history] == ["restore", "restore", "restore", "delete", "overwrite"]
    assert call(catalog, "history('@.t', limit => 1)") == history[:1]
    assert call(catalog, "delete_branch('@.t', 'b')") == [("b",)]
    check(table)


def test_names_of_tables(catalog: Catalog, table: LanceDataset) -> None:
    path = catalog.path("t")
    assert call(catalog, f"history('{catalog.name}.`{path}`')") == call(catalog, "history('@.t')")
    assert call(catalog, f"history('`{path}`')") == call(catalog, "history('db.t')")
    catalog.sql(f"USE {catalog.name}.db")
    assert catalog.sql("CALL system.history('t')") == call(catalog, "history('@.t')")


def test_what_is_cached_is_read_again(catalog: Catalog, table: LanceDataset) -> None:
    table.delete("id < 100")
    cached = catalog.spark.table(f"{catalog.name}.db.t").cache()
    assert cached.count() == 700
    call(catalog, "restore('@.t', 1)")
    assert catalog.spark.table(f"{catalog.name}.db.t").count() == 800
    cached.unpersist()


@pytest.mark.slow
def test_an_explained_call_changes_nothing(catalog: Catalog, table: LanceDataset) -> None:
    catalog.sql(f"EXPLAIN CALL {catalog.name}.system.optimize('@.t')")
    assert table.latest_version == 1
    with pytest.raises(PySparkException, match="table"):
        call(catalog, "optimize()")
