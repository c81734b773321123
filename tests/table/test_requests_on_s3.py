"""The requests that operations on a table in an object store take, as docs/object_stores.md lists them."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import DatasetNotFoundError, LanceDataset
from tests.proxies import Proxy, Request
from tests.servers import ObjectServer, s3_options

DOCUMENT = Path(__file__).parents[2] / "docs/object_stores.md"
ROWS_PER_FILE = 50_000
DATA = pa.table(
    {
        "id": np.arange(2 * ROWS_PER_FILE),
        **{f"c{number}": np.random.default_rng(number).random(2 * ROWS_PER_FILE) for number in range(9)},
    }
)


@pytest.fixture(scope="module")
def proxy(s3_server: ObjectServer) -> Iterator[Proxy]:
    made = Proxy(s3_server.endpoint)
    with made.running():
        yield made


@pytest.fixture(scope="module")
def measured(s3_server: ObjectServer, proxy: Proxy) -> dict[str, tuple[str, int]]:
    """The requests of each operation, and the bytes of their bodies."""
    uri, options = s3_server.new_root(), s3_options(proxy.endpoint)
    lance_format.write_dataset(DATA, uri, max_rows_per_file=ROWS_PER_FILE, storage_options=options)
    lance_format.dataset(uri, storage_options=options).count_rows()

    def table() -> LanceDataset:
        return lance_format.dataset(uri, storage_options=options)

    def compact() -> None:
        opened.optimize.compact_files()

    found: dict[str, tuple[str, int]] = {}

    def measure(name: str, operation: Callable[[], object]) -> None:
        proxy.requests.clear()
        operation()
        size = sum(request.num_sent + request.num_received for request in proxy.requests)
        found[name] = ", ".join(f"{number} {kind}" for kind, number in proxy.counts().items()) or "none", size

    measure("open", lambda: lance_format.dataset(uri, storage_options={**options, "user_agent": "another store"}))
    measure("open again", table)
    opened = table()
    measure("plan a scan", lambda: opened.scanner().plan_tasks())
    opened = table()
    measure("one row", lambda: opened.take([70_000]))
    opened = table()
    measure("one row by a filter", lambda: opened.to_table(filter="id = 70000"))
    opened = table()
    measure("one of ten columns", lambda: opened.to_table(columns=["c3"]))
    opened = table()
    measure("all columns", lambda: opened.to_table())
    measure("append", lambda: lance_format.write_dataset(DATA[:10], uri, mode="append", storage_options=options))
    opened = table()
    measure("delete", lambda: opened.delete("id = 5"))
    opened = table()
    measure("compaction", compact)
    return found


@pytest.fixture(scope="module")
def divided(s3_server: ObjectServer) -> str:
    """Return a table of twenty files, a row each."""
    uri = s3_server.new_root()
    lance_format.write_dataset({"a": range(20)}, uri, max_rows_per_file=1, storage_options=s3_server.options)
    return uri


def test_small_files_take_a_request_each(divided: str, proxy: Proxy) -> None:
    options = s3_options(proxy.endpoint)
    table = lance_format.dataset(divided, storage_options=options)
    proxy.requests.clear()
    assert table.to_table()["a"].to_pylist() == list(range(20))
    assert proxy.counts() == {"GET": 20}
    table = lance_format.dataset(divided, storage_options=options)
    proxy.requests.clear()
    assert table.to_table(filter="a > 17")["a"].to_pylist() == [18, 19]
    assert proxy.counts() == {"GET": 20}


@pytest.mark.parametrize("read", [{}, {"filter": "a >= 0"}])
def test_the_next_fragments_are_read_while_rows_are_used(
    s3_server: ObjectServer, proxy: Proxy, read: dict[str, str]
) -> None:
    """The rows of the others are asked for though those of the first are still in use, and none twice."""
    uri, num_files = s3_server.new_root(), 5
    data = pa.table({"a": np.random.default_rng(0).integers(0, 2**62, num_files * ROWS_PER_FILE)})
    lance_format.write_dataset(data, uri, max_rows_per_file=ROWS_PER_FILE, storage_options=s3_server.options)
    proxy.requests.clear()
    batches = lance_format.dataset(uri, storage_options=s3_options(proxy.endpoint)).to_batches(**read)
    found, sizes, all_read = [], dict[str, int](), threading.Event()

    def rule(request: Request) -> None:
        first, last = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
        sizes[request.key] = sizes.get(request.key, 0) + last - first
        if sum(size > 7 * ROWS_PER_FILE for size in sizes.values()) == num_files:
            all_read.set()

    with proxy.failing(rule):
        found.append(next(batches))
        assert all_read.wait(60)
        found += batches
    assert pa.Table.from_batches(found) == data
    assert proxy.counts()["GET"] == 1 + 2 * num_files
    assert max(sizes.values()) < 8 * ROWS_PER_FILE + 256 * 1024


def test_rows_of_many_fragments_are_asked_for_at_once(divided: str, proxy: Proxy) -> None:
    table = lance_format.dataset(divided, storage_options=s3_options(proxy.endpoint))
    proxy.requests.clear()
    num_asked, all_asked = itertools.count(1), threading.Event()

    def rule(request: Request) -> None:
        if next(num_asked) == 8:
            all_asked.set()
        assert all_asked.wait(60)

    with proxy.failing(rule):
        assert table.take([3, 1, 5, 19, 2, 8, 0, 7])["a"].to_pylist() == [3, 1, 5, 19, 2, 8, 0, 7]
    assert proxy.counts() == {"GET": 8}


def test_a_scan_that_is_given_up_keeps_no_rows(divided: str, s3_server: ObjectServer) -> None:
    table = lance_format.dataset(divided, storage_options=s3_server.options)
    batches = table.to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    for thread in [one for one in threading.enumerate() if one.name.startswith("lance-open")]:
        thread.join(60)
    scans = [table._table.scan(fragment.metadata, table.lance_schema) for fragment in table.get_fragments()]
    assert not [scan for scan in scans if "files" in scan.memory]
    assert table.to_table()["a"].to_pylist() == list(range(20))


def test_a_limit_opens_few_files(divided: str, proxy: Proxy) -> None:
    for read, most in (({"limit": 2}, 2), ({"limit": 2, "filter": "a >= 0"}, 8)):
        table = lance_format.dataset(divided, storage_options=s3_options(proxy.endpoint))
        proxy.requests.clear()
        assert table.to_table(**read)["a"].to_pylist() == [0, 1]
        assert proxy.counts()["GET"] <= most


def test_a_missing_file_is_an_error_only_if_it_is_needed(s3_server: ObjectServer, divided: str) -> None:
    uri = s3_server.new_root()
    table = lance_format.write_dataset({"a": range(6)}, uri, max_rows_per_file=2, storage_options=s3_server.options)
    store, root = table._table.store, table._table.root
    (file,) = table.get_fragments()[2].metadata.files
    store.delete(f"{root}/{file.relative_path}")
    table = lance_format.dataset(uri, storage_options=s3_server.options)
    assert table.to_table(limit=4)["a"].to_pylist() == [0, 1, 2, 3]
    assert table.to_table(filter="a < 9", limit=2)["a"].to_pylist() == [0, 1]
    batches = table.to_batches()
    assert [next(batches)["a"].to_pylist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(DatasetNotFoundError, match="of fragment 2 is missing"):
        next(batches)


def test_a_delete_sees_what_was_committed_before_it(s3_server: ObjectServer, proxy: Proxy) -> None:
    """The version that it is planned on first is assumed to be the latest."""
    uri, options = s3_server.new_root(), s3_options(proxy.endpoint)
    lance_format.write_dataset({"a": [1, 2]}, uri, storage_options=s3_server.options)
    table = lance_format.dataset(uri, storage_options=options)
    lance_format.write_dataset({"a": [1, 3]}, uri, mode="append", storage_options=s3_server.options)
    assert table.delete("a = 1").num_deleted_rows == 2
    assert table.to_table()["a"].to_pylist() == [2, 3]
    lance_format.write_dataset({"b": [1]}, uri, mode="overwrite", storage_options=s3_server.options)
    table.delete("b = 1")  # The column is one of the latest version only.
    assert table.count_rows() == 0
    proxy.requests.clear()
    with pytest.raises(lance_format.InvalidInputError):
        table.delete("c = 1")
    table.delete("b = 5")
    assert proxy.counts() == {"LIST": 3, "PUT": 2}
    table.validate()


def documented() -> dict[str, tuple[str, int]]:
    text = DOCUMENT.read_text().partition("## Requests")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| (none|[0-9A-Z, ]+) \| ([0-9,]+) KiB \|", text, re.MULTILINE)
    return {name: (requests, int(size.replace(",", ""))) for name, requests, size in rows}


def test_the_documentation_says_how_many_requests_there_are(measured: dict[str, tuple[str, int]]) -> None:
    told = documented()
    assert {name: told[name][0] for name in told} == {name: requests for name, (requests, _) in measured.items()}
    for name, (_, size) in measured.items():
        assert abs(told[name][1] - size / 1024) <= 2 + size / 1024 / 50, (name, size)


@pytest.mark.slow
def test_the_latest_of_many_versions_takes_one_page(s3_server: ObjectServer, proxy: Proxy) -> None:
    uri, options = s3_server.new_root(), s3_options(proxy.endpoint)
    table = lance_format.write_dataset({"a": [1]}, uri, storage_options=s3_server.options)
    directory = table._table.directory
    content = directory.store.read(directory.manifest(1), 1 << 20)
    for number in range(2000):  # Their content is not looked at.
        directory.store.put(f"{directory.versions}/{2**64 - 1 - number - 2}.manifest", content)
    proxy.requests.clear()
    with pytest.raises(lance_format.CorruptFileError, match="version 1"):
        lance_format.dataset(uri, storage_options=options)
    assert proxy.counts() == {"GET": 1, "LIST": 1}
    assert lance_format.dataset(uri, 1, storage_options=options).count_rows() == 1
    assert proxy.counts().get("LIST", 0) == 0
