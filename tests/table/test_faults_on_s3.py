"""Faults between a table and its object store: nothing is lost, nothing doubled, nothing left."""

from __future__ import annotations

import itertools
import re
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta

import pyarrow as pa
import pytest

import lance_format
from lance_format import (
    CommitStateUnknownError,
    CorruptFileError,
    LanceDataset,
    LanceError,
    NotSupportedError,
    RetryableCommitConflictError,
    StorageError,
)
from lance_format.object_store import cloud_store, resolve
from lance_format.object_store.cloud_store import _PART_BYTES
from tests.proxies import Fault, Proxy, Request, Rule, always, first
from tests.servers import ObjectServer, s3_options

pytestmark = pytest.mark.system

SLOW_DOWN = Fault(503, "<Error><Code>SlowDown</Code></Error>", {"Retry-After": "1"})
PASSING = {
    "503": SLOW_DOWN,
    "429": Fault(429, "<Error><Code>TooManyRequests</Code></Error>", {"Retry-After": "1"}),
    "500": Fault(500, "<Error><Code>InternalError</Code></Error>"),
    "reset": Fault(),
}
BREAKS = {
    "reset": Fault(),
    "lost reply": Fault(is_late=True),
    "500": PASSING["500"],
    "late 503": Fault(503, "<Error><Code>SlowDown</Code></Error>", is_late=True),
    "409": Fault(409, "<Error><Code>ConditionalRequestConflict</Code></Error>"),
}


@pytest.fixture
def proxy(s3_server: ObjectServer) -> Iterator[Proxy]:
    made = Proxy(s3_server.endpoint)
    with made.running():
        yield made


@pytest.fixture
def options(proxy: Proxy) -> dict[str, str]:
    return s3_options(proxy.endpoint)


@pytest.fixture
def once(options: dict[str, str]) -> dict[str, str]:
    """Options without repeated requests."""
    return {**options, "client_max_retries": "0"}


@pytest.fixture
def uri(s3_server: ObjectServer) -> str:
    """Return a table of the rows 0 to 9."""
    uri = s3_server.new_root()
    lance_format.write_dataset({"a": range(10)}, uri, storage_options=s3_server.options)
    return uri


def rows(server: ObjectServer, uri: str) -> list[int]:
    table = lance_format.dataset(uri, storage_options=server.options)
    table.validate()
    return sorted(table.to_table()["a"].to_pylist())


def files(server: ObjectServer, uri: str) -> set[str]:
    store, root = resolve(uri, server.options)
    return {info.path for info in store.list_tree(root)}


def uploads(server: ObjectServer) -> str:
    with urllib.request.urlopen(f"{server.endpoint}/tables?uploads") as reply:
        return str(reply.read())


def is_manifest(request: Request) -> bool:
    return request.method == "PUT" and request.key.endswith(".manifest")


@pytest.mark.parametrize("fault", PASSING)
def test_passing_faults_are_waited_out(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str], uri: str, fault: str
) -> None:
    with proxy.failing(first(2, PASSING[fault])):
        assert lance_format.dataset(uri, storage_options=options).count_rows() == 10
    with proxy.failing(first(1, PASSING[fault], lambda request: "/data/" in request.key)):
        lance_format.write_dataset({"a": [10]}, uri, mode="append", storage_options=options)
    with proxy.failing(first(1, PASSING[fault], is_manifest)):
        lance_format.write_dataset({"a": [11]}, uri, mode="append", storage_options=options)
    assert rows(s3_server, uri) == list(range(12))


@pytest.mark.parametrize(("operation", "status", "seconds"), [("open", 503, 4), ("append", 429, 3)])
def test_a_busy_server_is_waited_for_and_left_alone(
    s3_server: ObjectServer, proxy: Proxy, uri: str, operation: str, status: int, seconds: int
) -> None:
    """The server refuses all requests for some seconds, and asks for two."""
    busy = Fault(status, "<Error><Code>SlowDown</Code></Error>", {"Retry-After": "2"})
    options = {name: value for name, value in s3_server.options.items() if "client_" not in name}
    options["aws_endpoint"] = proxy.endpoint
    refused: dict[tuple[str, str], list[float]] = {}

    def rule(request: Request) -> Fault | None:
        if request.arrived > proxy.requests[0].arrived + seconds:
            return None
        refused.setdefault((request.method, request.key), []).append(request.arrived)
        return busy

    with proxy.failing(rule):
        if operation == "append":
            lance_format.write_dataset({"a": [10]}, uri, mode="append", storage_options=options)
        else:
            assert lance_format.dataset(uri, storage_options=options).count_rows() == 10
    assert refused
    for moments in refused.values():
        assert len(moments) <= 10
        assert all(later - earlier >= 0.2 for earlier, later in itertools.pairwise(moments))
    assert rows(s3_server, uri) == list(range(11 if operation == "append" else 10))


@pytest.mark.parametrize("cut", [0, 1, 100, 5000])
def test_a_body_that_breaks_off_is_read_again(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str], cut: int
) -> None:
    uri = s3_server.new_root()
    data = pa.table({"a": range(20_000)})
    lance_format.write_dataset(data, uri, storage_options=s3_server.options)
    with proxy.failing(first(3, Fault(cut_after=cut), lambda request: request.method == "GET")):
        assert lance_format.dataset(uri, storage_options=options).to_table() == data


@pytest.mark.parametrize(("retries", "seconds", "most"), [(2, 180, 3), (1000, 1, 7)])
def test_a_fault_that_stays_is_one_error(
    proxy: Proxy, options: dict[str, str], uri: str, retries: int, seconds: int, most: int
) -> None:
    """The number of retries, and their time, are bounds."""
    limited = {**options, "client_max_retries": str(retries), "client_retry_timeout": str(seconds)}
    message = f"cannot list {uri}/_versions: the store refuses requests for now, also after [1-6] retries; .*SlowDown"
    with proxy.failing(always(SLOW_DOWN)), pytest.raises(StorageError, match=message):
        lance_format.dataset(uri, storage_options=limited)
    assert 2 <= len(proxy.requests) <= most


@pytest.mark.parametrize("fault", BREAKS)
def test_a_commit_lands_once_whatever_becomes_of_its_reply(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str], uri: str, fault: str
) -> None:
    for number, given in enumerate((options, {**options, "client_max_retries": "0"})):
        with proxy.failing(first(1, BREAKS[fault], is_manifest)):
            lance_format.write_dataset({"a": [10 + number]}, uri, mode="append", storage_options=given)
    assert rows(s3_server, uri) == list(range(12))
    assert lance_format.dataset(uri, storage_options=s3_server.options).version == 3


@pytest.mark.parametrize("fault", ["reset", "lost reply", "late 503"])
def test_any_request_of_an_append_may_fail(
    s3_server: ObjectServer, proxy: Proxy, once: dict[str, str], uri: str, fault: str
) -> None:
    """Each in turn, and nothing is repeated below the commit."""
    expected, before = list(range(10)), files(s3_server, uri)
    for number in range(30):
        with proxy.failing(_number(number, BREAKS[fault])):
            try:
                lance_format.write_dataset({"a": [100 + number]}, uri, mode="append", storage_options=once)
            except CommitStateUnknownError:
                has_landed = rows(s3_server, uri) != expected
            except LanceError:
                has_landed = False
            else:
                has_landed = True
            passed = len(proxy.requests)
            proxy.requests.clear()
        expected += [100 + number] * has_landed
        assert rows(s3_server, uri) == expected
        if not has_landed:
            left = {path for path in files(s3_server, uri) - before if "/data/" in path}
            assert not left or fault != "reset"  # What was written without a reply is left for a cleanup.
        before = files(s3_server, uri)
        if passed <= number:
            break
    else:
        pytest.fail("the append has more requests than expected")


UNANSWERED: dict[str, Callable[[LanceDataset], object]] = {
    "delete": lambda table: table.delete("a = 3"),
    "tag": lambda table: table.tags.create("first", 1),
    "cleanup": lambda table: table.cleanup_old_versions(timedelta(0)),
}


@pytest.mark.parametrize("fault", ["reset", "lost reply"])
@pytest.mark.parametrize("change", UNANSWERED)
def test_a_request_without_an_answer_is_repeated(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str], change: str, fault: str
) -> None:
    """Each in turn, and what the server has done before is recognised."""
    for number in range(40):
        uri = s3_server.new_root()
        lance_format.write_dataset({"a": range(10)}, uri, storage_options=s3_server.options).delete("a = 9")
        table = lance_format.dataset(uri, storage_options=options)
        proxy.requests.clear()
        with proxy.failing(_number(number, BREAKS[fault])):
            UNANSWERED[change](table)
        assert rows(s3_server, uri) == [row for row in range(9) if change != "delete" or row != 3]
        found = lance_format.dataset(uri, storage_options=s3_server.options)
        assert len(found.versions()) == {"delete": 3, "tag": 2, "cleanup": 1}[change]
        assert list(found.tags.list()) == (["first"] if change == "tag" else [])
        deletions = [path for path in files(s3_server, uri) if "/_deletions/" in path]
        assert len(deletions) == (2 if change == "delete" else 1)
        if len(proxy.requests) <= number:
            break
    else:
        pytest.fail("the change has more requests than expected")


def test_a_tag_is_created_after_a_conflict_with_a_deletion(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str], uri: str
) -> None:
    """The server says that there is one, and then there is none."""
    table = lance_format.dataset(uri, storage_options=options)
    with proxy.failing(first(1, BREAKS["409"], lambda request: request.key.endswith("tags/one.json"))):
        table.tags.create("one", 1)
    assert list(lance_format.dataset(uri, storage_options=s3_server.options).tags.list()) == ["one"]


def test_a_table_that_replaced_another_is_not_taken_for_it(
    s3_server: ObjectServer, options: dict[str, str], uri: str
) -> None:
    """Its manifests have the names of those that this process remembers."""
    assert lance_format.dataset(uri, storage_options=options).count_rows() == 10
    LanceDataset.drop(uri, storage_options=s3_server.options)
    lance_format.write_dataset({"a": [1, 2]}, uri, storage_options=s3_server.options)
    assert lance_format.dataset(uri, storage_options=options).to_table()["a"].to_pylist() == [1, 2]
    lance_format.write_dataset({"a": [3]}, uri, mode="append", storage_options=options)
    assert rows(s3_server, uri) == [1, 2, 3]


def test_a_second_commit_leaves_the_files_of_the_first(options: dict[str, str], uri: str) -> None:
    """The transaction file, which is written before it is known that the commit has landed, is one of them."""
    data = pa.table({"a": [10]})
    write = lance_format.plan_write(uri, data.schema, mode="append", storage_options=options)
    fragments = write.write_fragments(data.to_batches())
    version = write.commit(fragments)
    store, root = resolve(uri, options)
    (path,) = (info.path for info in store.list_tree(f"{root}/_transactions") if write.uuid in info.path)
    store.put(path, b"as it landed")
    assert write.commit(fragments) == version
    assert store.read(path, 100) == b"as it landed"


def test_a_conflict_leaves_no_transaction_file(s3_server: ObjectServer, options: dict[str, str], uri: str) -> None:
    table = lance_format.dataset(uri, storage_options=options)
    plan = table.plan_delete("a = 1")
    results = [task.execute(table) for task in plan.tasks]
    lance_format.dataset(uri, storage_options=options).delete("a = 1")
    before = files(s3_server, uri)
    with pytest.raises(RetryableCommitConflictError):
        plan.commit(table, results)
    assert files(s3_server, uri) == before


def _number(wanted: int, fault: Fault) -> Rule:
    seen = []

    def rule(request: Request) -> Fault | None:
        seen.append(request)
        return fault if len(seen) == wanted + 1 else None

    return rule


@pytest.mark.parametrize("fault", ["reset", "503"])
def test_a_store_that_is_gone_is_not_asked_for_each_file_of_a_failed_write(
    proxy: Proxy, once: dict[str, str], uri: str, fault: str
) -> None:
    """Each request may take minutes until it fails."""
    num_written = 0
    refused = []

    def rule(request: Request) -> Fault | None:
        nonlocal num_written
        num_written += request.method == "PUT" and "/data/" in request.key
        if num_written < 20:
            return None
        refused.append(request)
        return PASSING[fault]

    rows = {"a": range(20)}
    with proxy.failing(rule), pytest.raises(StorageError, match=f"cannot write {uri}/data/"):
        lance_format.write_dataset(rows, uri, mode="append", max_rows_per_file=1, storage_options=once)
    assert 2 <= len(refused) <= 4


@pytest.mark.parametrize("fault", ["reset", "503"])
def test_a_store_that_is_gone_is_not_asked_for_each_object(
    s3_server: ObjectServer, proxy: Proxy, once: dict[str, str], fault: str
) -> None:
    """A deletion of many is refused, and then the store goes."""
    store, root = resolve(s3_server.new_root(), once)
    paths = [f"{root}/{number}" for number in range(100)]
    kept = f"{root}/kept"
    store.put(kept, b"")
    for allowed in (0, 1):
        proxy.requests.clear()

        def rule(_request: Request, allowed: int = allowed) -> Fault:
            return (
                Fault(403, "<Error><Code>AccessDenied</Code></Error>")
                if len(proxy.requests) <= allowed
                else PASSING[fault]
            )

        with proxy.failing(rule):
            assert store.delete_all([kept, *paths]) == [kept, *paths]
        assert len(proxy.requests) <= 1 + cloud_store.PARALLEL_REQUESTS
    assert store.delete_all([kept, *paths]) == []
    assert list(store.list_tree(root)) == []


@pytest.mark.parametrize("part", [1, 2, 3])
def test_an_interrupted_upload_leaves_nothing(
    s3_server: ObjectServer, proxy: Proxy, once: dict[str, str], part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_store, "_PARTS_AT_ONCE", 1)  # The server fails if an upload is deleted while it grows.
    store, root = resolve(s3_server.new_root(), once)
    rule = always(Fault(403, "<Error><Code>AccessDenied</Code></Error>"), lambda one: f"partNumber={part}" in one.query)
    with proxy.failing(rule):
        writer = store.open_writer(f"{root}/a")
        with pytest.raises(StorageError, match=f"cannot write {root}/a: access denied; grant .* s3:PutObject"):
            _write_parts(writer)
        writer.abort()
    assert list(store.list_tree(root)) == []
    assert root.rpartition("/")[2] not in uploads(s3_server)


def test_an_upload_that_cannot_be_completed_leaves_nothing(
    s3_server: ObjectServer, proxy: Proxy, once: dict[str, str]
) -> None:
    store, root = resolve(s3_server.new_root(), once)
    completion = always(Fault(403), lambda one: one.method == "POST" and "uploadId" in one.query)
    with proxy.failing(completion):
        writer = store.open_writer(f"{root}/a")
        with pytest.raises(StorageError):
            _write_parts(writer)
        writer.abort()
    assert list(store.list_tree(root)) == []
    assert root.rpartition("/")[2] not in uploads(s3_server)


def _write_parts(writer: object) -> None:
    for _ in range(3):
        writer.write(bytes(_PART_BYTES))  # type: ignore[attr-defined]
    writer.write(b"end")  # type: ignore[attr-defined]
    writer.close()  # type: ignore[attr-defined]


def test_a_bucket_that_vanishes_is_not_a_missing_table(proxy: Proxy, options: dict[str, str], uri: str) -> None:
    table = lance_format.dataset(uri, storage_options=options)
    with proxy.failing(always(Fault(404, "<Error><Code>NoSuchBucket</Code></Error>"))):
        for use in (
            table.to_table,
            lambda: lance_format.dataset(uri, storage_options=options),
            lambda: lance_format.write_dataset({"a": [1]}, uri, mode="append", storage_options=options),
            lambda: LanceDataset.drop(uri, storage_options=options),
        ):
            with pytest.raises(StorageError, match="the bucket or container does not exist") as missing:
                use()
            assert not isinstance(missing.value, FileNotFoundError)


@pytest.mark.parametrize("method", ["deep_clone", "shallow_clone"])
def test_a_clone_that_cannot_be_opened_was_made(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str], uri: str, method: str
) -> None:
    table, target, landed = lance_format.dataset(uri, storage_options=options), f"{s3_server.new_root()}/clone", []
    denied = Fault(403, "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>")

    def is_after(one: Request) -> bool:
        landed.extend([one.key] if one.method == "PUT" and one.key.endswith(".manifest") else [])
        return bool(landed) and one.key != landed[0]

    with proxy.failing(always(denied, is_after)), pytest.raises(StorageError, match="was made, and cannot be opened"):
        getattr(table, method)(target, table.version)
    allowed = s3_server.options | {"allowed_base_paths": uri}
    assert lance_format.dataset(target, storage_options=allowed).to_table() == table.to_table()


@pytest.mark.parametrize(
    ("method", "where", "right"),
    [
        ("GET", "/data/", "s3:GetObject"),
        ("GET", "list-type", "s3:ListBucket"),
        ("PUT", "/data/", "s3:PutObject"),
        ("PUT", "/_transactions/", "s3:PutObject"),
        ("PUT", "/_versions/", "s3:PutObject"),
    ],
)
def test_a_right_that_is_missing_is_named(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str], uri: str, method: str, where: str, right: str
) -> None:
    before = files(s3_server, uri)
    denied = Fault(403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
    table = lance_format.dataset(uri, storage_options=options)
    lance_format.write_dataset({"a": [1]}, s3_server.new_root(), storage_options=options)  # The store is known.
    rule = always(denied, lambda one: one.method == method and where in f"/{one.key}?{one.query}")

    def use() -> None:
        if where == "/data/" and method == "GET":
            table.to_table()
        lance_format.write_dataset({"a": [1]}, uri, mode="append", storage_options=options)

    with proxy.failing(rule), pytest.raises(StorageError, match=f"access denied; grant these credentials {right}"):
        use()
    assert files(s3_server, uri) == before


def test_a_store_that_ignores_conditions_is_refused(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str], uri: str
) -> None:
    def without_conditions(path: str, headers: dict[str, str]) -> str:
        headers.pop("if-none-match", None)
        return path

    proxy.translate = without_conditions
    before = files(s3_server, uri)
    for write in (
        lambda: lance_format.write_dataset({"a": [1]}, uri, mode="append", storage_options=options),
        lambda: lance_format.write_dataset({"a": [1]}, s3_server.new_root(), storage_options=options),
        lambda: lance_format.dataset(uri, storage_options=options).delete("a = 1"),
    ):
        for _ in range(2):
            with pytest.raises(NotSupportedError, match="ignores the condition If-None-Match"):
                write()
    assert files(s3_server, uri) == before
    assert lance_format.dataset(uri, storage_options=options).count_rows() == 10


def test_a_store_that_knows_no_conditions_is_refused(proxy: Proxy, options: dict[str, str], uri: str) -> None:
    unknown = Fault(501, "<Error><Code>NotImplemented</Code></Error>")
    with (
        proxy.failing(always(unknown, lambda request: request.is_conditional)),
        pytest.raises(NotSupportedError, match="only if it is absent"),
    ):
        lance_format.write_dataset(
            {"a": [1]}, uri, mode="append", storage_options={**options, "client_max_retries": "0"}
        )


def test_a_store_that_ignores_where_a_listing_begins_is_refused(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be listed for ever."""
    monkeypatch.setattr(cloud_store, "_PAGE_NAMES", 2)
    proxy.translate = lambda path, _headers: re.sub(r"start-after=[^&]*", "", path)
    store, root = resolve(s3_server.new_root(), options)
    for name in "abc":
        store.put(f"{root}/{name}", b"")
    with pytest.raises(NotSupportedError, match=r"cannot list .*: the store ignores start-after"):
        list(itertools.islice(store.list_tree(root), 10))


def test_what_another_writer_puts_in_the_place_of_a_file_is_noticed(
    s3_server: ObjectServer, options: dict[str, str], uri: str
) -> None:
    table = lance_format.dataset(uri, storage_options=options)
    store, root = resolve(uri, options)
    (path,) = (info.path for info in store.list_tree(f"{root}/data"))
    for content in (b"", b"short", bytes(100_000)):
        store.put(path, content)
        with pytest.raises(CorruptFileError, match=f"{len(content)} bytes instead of"):
            lance_format.dataset(table.uri, storage_options=options).to_table()


def test_what_another_writer_puts_in_the_place_of_a_deleted_object_stays(
    s3_server: ObjectServer, proxy: Proxy, options: dict[str, str]
) -> None:
    """The reply to the deletion is lost; it is repeated, and meets another object."""
    uri = s3_server.new_root()
    direct, root = resolve(uri, s3_server.options)
    store, _ = resolve(uri, options)
    path = f"{root}/one"
    direct.put(path, b"ours")
    seen: list[str] = []

    def rule(request: Request) -> Fault | None:
        seen.append(request.kind)
        if seen.count("DELETE") == 0:
            return None
        if seen[-1] == "DELETE" and seen.count("DELETE") == 1:
            return BREAKS["lost reply"]
        if seen[-2] == "DELETE":
            direct.put(path, b"another")
        return None

    with proxy.failing(rule):
        assert store.delete_exact(path, b"ours")
    assert seen.count("DELETE") == 1
    assert len(seen) > seen.index("DELETE") + 1
    assert direct.read(path, 7) == b"another"
