import datetime

import pyarrow as pa
import pytest

import lance_format
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.object_store import resolve
from lance_format.object_store.memory import MemoryStore
from tests.object_store.behaviour import ObjectStoreBehaviour


class TestMemoryStore(ObjectStoreBehaviour):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def root(self) -> str:
        return "memory://place"


def test_a_uri_means_one_place_in_this_process() -> None:
    store, root = resolve("memory://a/b/")
    assert (store, root) == resolve("Memory://a//b")
    assert resolve(root) == (store, root)
    assert resolve("memory://")[1] != root


def test_a_table_lives_in_memory() -> None:
    uri = "memory://test-table"
    table = lance_format.write_dataset({"a": [1, 2, 3]}, uri)
    table.delete("a = 2")
    branch = table.create_branch("b")
    lance_format.write_dataset({"a": [4]}, branch, mode="append")
    table.tags.create("t", 1)
    lance_format.write_dataset({"a": [5]}, uri, mode="append")
    assert lance_format.dataset(uri).to_table()["a"].to_pylist() == [1, 3, 5]
    assert lance_format.dataset(uri, "t").to_table()["a"].to_pylist() == [1, 2, 3]
    assert lance_format.dataset(uri, ("b", None)).to_table()["a"].to_pylist() == [1, 3, 4]
    opened = lance_format.dataset(uri)
    opened.optimize.compact_files()
    stats = opened.cleanup_old_versions(datetime.timedelta(0), error_if_tagged_old_versions=False)
    assert stats.old_versions == 1  # One has a tag, another a branch.
    opened.validate()
    lance_format.LanceDataset.drop(uri)
    with pytest.raises(lance_format.DatasetNotFoundError):
        lance_format.dataset(uri)
    with pytest.raises(lance_format.DatasetNotFoundError):
        lance_format.LanceDataset.drop(uri)


def test_a_file_lives_in_memory() -> None:
    with LanceFileWriter("memory://files/x.lance") as writer:
        writer.write_batch(pa.table({"a": [1, 2]}))
    assert LanceFileReader("memory://files/x.lance").read_all().to_table() == pa.table({"a": [1, 2]})
