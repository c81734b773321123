"""Operations on many objects wait for several of them at the same time."""

from __future__ import annotations

import datetime
import itertools
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset
from lance_format.errors import LanceError
from tests.proxies import Fault, Proxy, Request
from tests.servers import ObjectServer

LATENCY_SECONDS = 0.1
NUM_FILES = 40

OPERATIONS: dict[str, tuple[str, Callable[[LanceDataset], object]]] = {
    "scan": ("data", lambda table: table.to_table()),
    "compact": ("data", lambda table: table.optimize.compact_files()),
    "BTREE": ("data", lambda table: table.create_scalar_index("id", "BTREE")),
    "ZONEMAP": ("data", lambda table: table.create_scalar_index("id", "ZONEMAP")),
    "BLOOMFILTER": ("data", lambda table: table.create_scalar_index("id", "BLOOMFILTER")),
    "INVERTED": ("data", lambda table: table.create_scalar_index("text", "INVERTED")),
    "IVF_FLAT": ("data", lambda table: table.create_index("vector", "IVF_FLAT", num_partitions=2)),
    "add_columns": ("data", lambda table: table.add_columns({"double": "id * 2"})),
    "alter_columns": ("data", lambda table: table.alter_columns({"path": "id", "data_type": pa.int32()})),
    "data_stats": ("data", lambda table: table.stats.data_stats()),
    "validate": ("data", lambda table: table.validate()),
    "verify": ("data", lambda table: table.verify()),
    "deep_clone": ("data", lambda table: table.deep_clone(f"{table.uri}-copy", table.version)),
    "versions": ("_versions", lambda table: table.versions()),
    "version_log": ("_versions", lambda table: list(table.version_log())),
    "get_transactions": ("_versions", lambda table: table.get_transactions(NUM_FILES)),
    "tracked_files": ("_versions", lambda table: table.tracked_files().read_all()),
    "verify history": ("_versions", lambda table: table.verify()),
    "cleanup": ("_versions", lambda table: table.cleanup_old_versions(datetime.timedelta(0))),
}


@pytest.fixture(scope="module")
def proxy(s3_server: ObjectServer) -> Iterator[Proxy]:
    made = Proxy(s3_server.endpoint)
    with made.running():
        yield made


@pytest.mark.parametrize("name", OPERATIONS)
def test_several_requests_are_under_way(name: str, s3_server: ObjectServer, proxy: Proxy) -> None:
    uri, (directory, operation) = s3_server.new_root(), OPERATIONS[name]
    vectors = np.random.default_rng(0).random(NUM_FILES * 20 * 4, np.float32)
    rows = pa.table(
        {
            "id": range(NUM_FILES * 20),
            "text": [f"text {number}" for number in range(NUM_FILES * 20)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 4),
        }
    )
    table = lance_format.write_dataset(rows, uri, max_rows_per_file=20, storage_options=s3_server.options)
    for number in range(NUM_FILES if directory == "_versions" else 0):
        table.update_config({"key": str(number)})
    delayed = lance_format.dataset(uri, storage_options={**s3_server.options, "aws_endpoint": proxy.endpoint})
    proxy.requests.clear()
    proxy.latency_seconds = LATENCY_SECONDS
    try:
        operation(delayed)
    finally:
        proxy.latency_seconds = 0
    read = [each.arrived for each in proxy.requests if f"/{directory}/" in each.key and each.method == "GET"]
    assert delayed.to_table(["text", "vector"]) == rows.select(["text", "vector"])
    assert delayed.to_table(["id"]).cast(pa.schema([("id", pa.int64())])) == rows.select(["id"])
    assert len(read) >= NUM_FILES - 1  # The last version is known already.
    together = [later - earlier < LATENCY_SECONDS / 2 for earlier, later in itertools.pairwise(sorted(read))]
    assert sum(together) > 0.7 * len(together)


def test_searches_read_partitions_and_parts_at_the_same_time(s3_server: ObjectServer, proxy: Proxy) -> None:
    uri, options = s3_server.new_root(), s3_server.options
    vectors = np.random.default_rng(0).random((8000, 8), np.float32)
    rows = pa.table(
        {
            "id": range(8000),
            "text": [f"text {number % 50}" for number in range(8000)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8),
        }
    )
    table = lance_format.write_dataset(rows.slice(0, 5000), uri, storage_options=options)
    table.create_index("vector", "IVF_FLAT", num_partitions=20)
    table.create_scalar_index("text", "INVERTED")
    table.create_scalar_index("id", "BTREE")
    for start in range(5000, 8000, 500):
        table.insert(rows.slice(start, 500))
        table.optimize.optimize_indices(num_indices_to_merge=0)
    nearest = {"column": "vector", "q": vectors[7], "k": 3, "nprobes": 20}
    for search in ({"nearest": nearest}, {"full_text_query": "text"}, {"filter": "id = 77"}):
        expected = table.to_table([], with_row_id=True, **search)
        delayed = lance_format.dataset(uri, storage_options={**options, "aws_endpoint": proxy.endpoint})
        proxy.requests.clear()
        proxy.latency_seconds = LATENCY_SECONDS
        try:
            assert delayed.to_table([], with_row_id=True, **search) == expected
        finally:
            proxy.latency_seconds = 0
        read = sorted(each.arrived for each in proxy.requests if "/_indices/" in each.key and each.method == "GET")
        assert len(read) >= 14
        together = [later - earlier < LATENCY_SECONDS / 2 for earlier, later in itertools.pairwise(read)]
        assert sum(together) > 0.7 * len(together)


FAILING: dict[str, Callable[[LanceDataset], object]] = {
    **{name: OPERATIONS[name][1] for name in ("scan", "compact", "BTREE", "ZONEMAP", "INVERTED")},
    "filter": lambda table: table.to_table(filter="id % 7 = 1"),
    "update": lambda table: table.update({"text": "'new'"}, "id % 2 = 0"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_kept_error_keeps_no_threads(name: str, s3_server: ObjectServer, proxy: Proxy) -> None:
    uri = s3_server.new_root()
    rows = pa.table({"id": range(NUM_FILES * 20), "text": ["text"] * NUM_FILES * 20})
    lance_format.write_dataset(rows, uri, max_rows_per_file=20, storage_options=s3_server.options)
    table = lance_format.dataset(uri, storage_options={**s3_server.options, "aws_endpoint": proxy.endpoint})
    num_read = itertools.count()

    def refuse(request: Request) -> Fault | None:
        is_read = request.method == "GET" and "/data/" in request.key
        return Fault(403) if is_read and next(num_read) > 2 else None

    with proxy.failing(refuse), pytest.raises(LanceError) as kept:
        FAILING[name](table)
    deadline = time.monotonic() + 10
    while _reading_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _reading_threads() == []
    assert "access denied" in str(kept.value)  # Its traceback has the variables of all calls.


def _reading_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("lance-open", "lance-io"))]


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def with_deletions(request: pytest.FixtureRequest, s3_server: ObjectServer, proxy: Proxy) -> LanceDataset:
    """A table whose fragments all have deleted rows; the first five also have moved ones if ids are stable."""
    uri, options = s3_server.new_root(), s3_server.options
    rows = pa.table({"id": range(NUM_FILES * 20), "x": [number % 7 for number in range(NUM_FILES * 20)]})
    table = lance_format.write_dataset(
        rows, uri, max_rows_per_file=20, storage_options=options, enable_stable_row_ids=request.param
    )
    table.create_scalar_index("id", "BTREE")
    table.delete("id % 20 = 3")
    table.update({"x": "100"}, where="id < 100 AND id % 20 = 4")
    return lance_format.dataset(uri, storage_options={**options, "aws_endpoint": proxy.endpoint})


def _deletion_files(proxy: Proxy) -> list[str]:
    found = [request.key for request in proxy.requests if "/_deletions/" in request.key]
    proxy.requests.clear()
    return found


def test_deleted_rows_are_read_once_and_of_the_rows_that_are_found(with_deletions: LanceDataset, proxy: Proxy) -> None:
    table, is_stable = with_deletions, with_deletions.has_stable_row_ids
    proxy.requests.clear()
    assert table.to_table(filter="id IN (401, 403, 501)")["id"].to_pylist() == [401, 501]
    first = _deletion_files(proxy)
    assert len(first) == (7 if is_stable else 2)
    assert table.to_table(filter="id IN (24, 23)").to_pylist() == [{"id": 24, "x": 100}]
    assert len(_deletion_files(proxy)) == (0 if is_stable else 1)
    assert table.take([390, 391, 0], ["id"])["id"].to_pylist() == [416, 417, 0]
    again = _deletion_files(proxy)
    assert table.take([390, 391, 0], ["id"])["id"].to_pylist() == [416, 417, 0]
    assert table.to_table(filter="id IN (401, 403, 501)").num_rows == 2
    assert not _deletion_files(proxy)
    assert len(first) + len(again) <= 9
    table.delete("id = 401")
    proxy.requests.clear()
    assert table.to_table(filter="id IN (401, 403, 501)")["id"].to_pylist() == [501]
    assert len(_deletion_files(proxy)) <= 1
    table.validate()
    assert len({*_deletion_files(proxy)}) == NUM_FILES
