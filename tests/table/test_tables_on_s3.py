"""Tables in an object store."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import lance_format
from lance_format import DatasetExistsError, DatasetNotFoundError, LanceDataset
from lance_format.object_store import resolve
from tests.servers import ObjectServer

AT_ONCE = datetime.timedelta(0)


@pytest.mark.slow
@pytest.mark.parametrize("cloud", ["s3_server", "azure_server", "gcs_server"])
def test_a_table_lives_in_a_cloud(cloud: str, request: pytest.FixtureRequest) -> None:
    server: ObjectServer = request.getfixturevalue(cloud)
    options = server.options
    uri = f"{server.new_root()}/my birds%25/ü"
    data = pa.table({"id": range(1000), "name": [f"bird {number}" for number in range(1000)]})
    table = lance_format.write_dataset(data, uri, storage_options=options)
    with pytest.raises(DatasetExistsError):
        lance_format.write_dataset(data, uri, mode="create", storage_options=options)
    assert lance_format.write_dataset(data, uri, mode="append", storage_options=options).count_rows() == 2000
    assert table.version == 1
    table = lance_format.dataset(uri, storage_options=options)
    table.delete("id % 2 = 1")
    table.update({"name": "'emu'"}, where="id = 4")
    table.merge_insert("id").when_not_matched_insert_all().execute({"id": [5000], "name": ["jay"]})
    assert table.to_table(columns=["id"], filter="name = 'emu' OR id > 2000")["id"].to_pylist() == [4, 4, 5000]
    branch = table.create_branch("a/b")
    lance_format.write_dataset({"id": [7], "name": ["auk"]}, branch, mode="append")
    table.tags.create("one", 1)
    table.optimize.compact_files()
    table.create_scalar_index("id", "ZONEMAP")
    assert table.take([500, 0], columns=["id"])["id"].to_pylist() == [2, 0]
    assert lance_format.dataset(uri, "one", storage_options=options).count_rows() == 1000
    assert lance_format.dataset(uri, ("a/b", None), storage_options=options).count_rows() == 1002
    stats = table.cleanup_old_versions(AT_ONCE, error_if_tagged_old_versions=False, delete_unverified=True)
    assert stats.old_versions > 2
    assert stats.failed_deletes == 0
    table.validate()
    assert lance_format.dataset(uri, ("a/b", None), storage_options=options).count_rows() == 1002
    table.branches.delete("a/b")
    fragments = lance_format.write_fragments(data, uri, mode="append", storage_options=options)
    appended = LanceDataset.commit(
        uri, lance_format.LanceOperation.Append(fragments), read_version=table.version, storage_options=options
    )
    assert appended.count_rows() == 2001
    clone = table.deep_clone(f"{server.new_root()}/clone", table.version, storage_options=options)
    assert clone.to_table() == table.to_table()
    shallow = table.shallow_clone(f"{uri} cloned", table.version)
    shallow.delete("id > 500")
    again = lance_format.dataset(shallow.uri, storage_options=options | {"allowed_base_paths": uri})
    assert again.count_rows(filter="id > 500") == 0
    assert table.count_rows() == 1001
    LanceDataset.drop(uri, storage_options=options)
    store, root = resolve(uri, options)
    assert list(store.list_tree(root)) == []
    with pytest.raises(DatasetNotFoundError):
        LanceDataset.drop(uri, storage_options=options)
    LanceDataset.drop(uri, ignore_not_found=True, storage_options=options)


@pytest.mark.parametrize("files", ["data", "_indices"])
def test_files_that_vanish_between_two_reads_are_missing(s3_server: ObjectServer, files: str) -> None:
    """What is known of a file may be remembered: it is then a later request that finds no object."""
    uri = s3_server.new_root()
    rows = {"id": range(20_000), "name": [f"bird {number}" for number in range(20_000)]}
    table = lance_format.write_dataset(rows, uri, storage_options=s3_server.options)
    table.create_scalar_index("id", "BTREE")
    assert table.to_table(["id"], filter="id = 7").num_rows == 1
    store, root = resolve(uri, s3_server.options)
    assert store.delete_all([info.path for info in store.list_tree(f"{root}/{files}")]) == []
    with pytest.raises(DatasetNotFoundError, match=f"{files}/.* is missing; if a cleanup has removed this version"):
        table.to_table(filter="id = 19000")


def test_a_verification_reports_emptied_objects(s3_server: ObjectServer) -> None:
    uri, options = s3_server.new_root(), s3_server.options
    table = lance_format.write_dataset({"id": range(10)}, uri, storage_options=options)
    table.create_scalar_index("id", "ZONEMAP")
    store, root = resolve(uri, options)
    emptied = [info.path for info in store.list_tree(root) if "/data/" in info.path or "/_indices/" in info.path]
    for path in emptied:
        store.put(path, b"")
    report = lance_format.dataset(uri, storage_options=options).verify()
    assert {(finding.status, finding.size_bytes) for finding in report.problems} == {("damaged", 0)}
    assert {f"{root}/{finding.path}" for finding in report.problems} == set(emptied)
