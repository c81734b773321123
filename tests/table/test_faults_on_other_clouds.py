"""Faults and races of tables in Azure and Google Cloud Storage: a sample of what S3 is tried with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import lance
import pytest

import lance_format
from lance_format import CommitStateUnknownError, LanceError, StorageError
from lance_format.byte_io import RangeWriter
from lance_format.object_store import resolve
from lance_format.object_store.cloud_store import _PART_BYTES
from tests.processes import at_once
from tests.proxies import Fault, Proxy, Request, always, first
from tests.servers import ObjectServer, to_s3
from tests.table.versions.race_worker import appends, changes_of_own_rows

pytestmark = pytest.mark.system

BUSY = Fault(503, "<Error><Code>ServerBusy</Code></Error>", {"Retry-After": "1"})
BREAKS = {
    "reset": Fault(),
    "lost reply": Fault(is_late=True),
    "500": Fault(500, "<Error><Code>InternalError</Code></Error>"),
    "late 503": Fault(503, "<Error><Code>ServerBusy</Code></Error>", is_late=True),
}


@dataclass(frozen=True)
class Cloud:
    """A server, and the options that lead to it through a proxy."""

    server: ObjectServer
    proxy: Proxy
    options: dict[str, str]

    @property
    def once(self) -> dict[str, str]:
        """Options without repeated requests."""
        return {**self.options, "client_max_retries": "0"}

    def rows(self, uri: str) -> list[int]:
        table = lance_format.dataset(uri, storage_options=self.server.options)
        table.validate()
        theirs = lance.dataset(uri, storage_options=self.server.options).to_table()["a"]
        assert theirs == table.to_table()["a"]
        return sorted(theirs.to_pylist())


@pytest.fixture(params=["azure_server", "gcs_server"])
def cloud(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    server: ObjectServer = request.getfixturevalue(request.param)
    if request.param == "azure_server":
        proxy = Proxy(server.endpoint)
        address = {"azure_storage_endpoint": f"{proxy.endpoint}/{server.options['azure_storage_account_name']}"}
    else:
        proxy = Proxy(request.getfixturevalue("s3_server").endpoint)
        proxy.translate = to_s3
        key = json.loads(server.options["google_service_account_key"])
        address = {"google_service_account_key": json.dumps({**key, "gcs_base_url": proxy.endpoint})}
    with proxy.running():
        yield Cloud(server, proxy, {**server.options, **address})


@pytest.fixture
def uri(cloud: Cloud) -> str:
    """Return a table of the rows 0 to 9."""
    uri = cloud.server.new_root()
    lance_format.write_dataset({"a": range(10)}, uri, storage_options=cloud.server.options)
    return uri


def is_manifest(request: Request) -> bool:
    return request.method == "PUT" and request.key.endswith(".manifest")


def test_a_commit_lands_once_whatever_becomes_of_its_reply(cloud: Cloud, uri: str) -> None:
    for number, fault in enumerate(BREAKS.values()):
        for turn, options in enumerate((cloud.options, cloud.once)):
            with cloud.proxy.failing(first(1, fault, is_manifest)):
                row = 10 + 2 * number + turn
                lance_format.write_dataset({"a": [row]}, uri, mode="append", storage_options=options)
    assert cloud.rows(uri) == list(range(10 + 2 * len(BREAKS)))
    assert lance_format.dataset(uri, storage_options=cloud.server.options).version == 1 + 2 * len(BREAKS)


@pytest.mark.parametrize("fault", ["reset", "lost reply"])
def test_any_request_of_an_append_may_fail(cloud: Cloud, uri: str, fault: str) -> None:
    """Each in turn, and nothing is repeated below the commit."""
    expected = list(range(10))
    for number in range(30):
        seen: list[Request] = []

        def rule(request: Request, seen: list[Request] = seen, number: int = number) -> Fault | None:
            seen.append(request)
            return BREAKS[fault] if len(seen) == number + 1 else None

        with cloud.proxy.failing(rule):
            try:
                lance_format.write_dataset({"a": [100 + number]}, uri, mode="append", storage_options=cloud.once)
            except CommitStateUnknownError:
                has_landed = cloud.rows(uri) != expected
            except LanceError:
                has_landed = False
            else:
                has_landed = True
        expected += [100 + number] * has_landed
        assert cloud.rows(uri) == expected
        if len(seen) <= number:
            assert has_landed
            break
    else:
        pytest.fail("the append has more requests than expected")


def test_busy_and_denied_requests(cloud: Cloud, uri: str) -> None:
    with cloud.proxy.failing(first(2, BUSY)):
        assert lance_format.dataset(uri, storage_options=cloud.options).count_rows() == 10
    limited = {**cloud.options, "client_max_retries": "1"}
    with cloud.proxy.failing(always(BUSY)), pytest.raises(StorageError, match="refuses requests for now, also after 1"):
        lance_format.dataset(uri, storage_options=limited)
    gone = Fault(404, "<Error><Code>ContainerNotFound NoSuchBucket</Code></Error>")
    with cloud.proxy.failing(always(gone)), pytest.raises(StorageError, match="container does not exist") as missing:
        lance_format.dataset(uri, storage_options=cloud.options)
    assert not isinstance(missing.value, FileNotFoundError)


def test_an_interrupted_upload_leaves_no_object(cloud: Cloud) -> None:
    store, root = resolve(cloud.server.new_root(), cloud.once)
    denied = Fault(403, "<Error><Code>AccessDenied</Code></Error>")
    parts: list[Request] = []

    def second_part(request: Request) -> bool:
        if "partNumber=" in request.query or "comp=block&" in f"{request.query}&":
            parts.append(request)
        return len(parts) > 1

    with cloud.proxy.failing(always(denied, second_part)):
        writer = store.open_writer(f"{root}/a")
        with pytest.raises(StorageError, match=f"cannot write {root}/a: access denied"):
            _write_parts(writer)
        writer.abort()
    assert parts
    assert list(store.list_tree(root)) == []


def _write_parts(writer: RangeWriter) -> None:
    for _ in range(3):
        writer.write(bytes(_PART_BYTES))
    writer.close()


def test_processes_of_both_append_at_once(cloud: Cloud) -> None:
    """Every row once, and the versions without a gap."""
    uri, options, count = f"{cloud.server.new_root()}/birds.lance", cloud.server.options, 4
    lance_format.write_dataset({"a": [0]}, uri, storage_options=options)
    libraries = ["lance_format", "lance", "lance_format"]
    at_once(*(partial(appends, library, uri, n, count, options) for n, library in enumerate(libraries, 1)))
    expected = sorted([0, *(number * 1000 + turn for number in range(1, 4) for turn in range(count))])
    assert cloud.rows(uri) == expected
    versions = lance_format.dataset(uri, storage_options=options).versions()
    assert [entry["version"] for entry in versions] == list(range(1, 3 * count + 2))


@pytest.mark.parametrize("count", [1, pytest.param(10, marks=pytest.mark.nightly)])
def test_processes_of_both_merge_delete_and_compact(cloud: Cloud, count: int) -> None:
    uri, options = f"{cloud.server.new_root()}/birds.lance", cloud.server.options
    ids = [number for writer in range(1, 5) for number in range(writer * 100, writer * 100 + count)]
    lance_format.write_dataset({"id": ids, "value": [0] * len(ids)}, uri, storage_options=options, max_rows_per_file=3)
    kinds = [
        ("lance_format", "merge", 1),
        ("lance", "merge", 2),
        ("lance_format", "delete", 3),
        ("lance", "delete", 4),
        ("lance_format", "compaction", 0),
    ]
    at_once(
        *(partial(changes_of_own_rows, library, uri, kind, writer, count, options) for library, kind, writer in kinds)
    )
    expected = {
        number: writer
        for writer in (1, 2)
        for start in (writer * 100, writer * 10_000)
        for number in range(start, start + count)
    }
    ours, theirs = lance_format.dataset(uri, storage_options=options), lance.dataset(uri, storage_options=options)
    ours.validate()
    for table in (ours.to_table(), theirs.to_table()):
        assert table.num_rows == len(expected)
        assert dict(zip(table["id"].to_pylist(), table["value"].to_pylist(), strict=True)) == expected
