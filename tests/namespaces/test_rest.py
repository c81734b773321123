"""Namespaces that servers keep: that of pylance, and one that is stricter, pages its lists and lends credentials."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import lance.namespace
import lance_namespace
import pytest

import lance_format
from lance_format import (
    DatasetExistsError,
    DatasetNotFoundError,
    InvalidInputError,
    NamespaceListing,
    NotSupportedError,
    RestNamespace,
    StorageError,
    TablePlace,
)
from lance_format.namespaces.renewal import renewing
from lance_format.namespaces.vending import storage_of
from tests.namespaces.servers import NamespaceServer, serving, serving_by_pylance
from tests.servers import ObjectServer


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_format.namespaces.http_client._BACKOFF_SECONDS", 0.01)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NamespaceServer]:
    with serving(NamespaceServer(str(tmp_path / "root"))) as made:
        yield made


@pytest.fixture(params=["pylance", "strict"])
def namespace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RestNamespace]:
    if request.param == "strict":
        yield RestNamespace(request.getfixturevalue("server").uri)
        return
    with serving_by_pylance(tmp_path) as uri:
        yield RestNamespace(uri)


def write(place: TablePlace, *values: int) -> None:
    lance_format.write_dataset({"id": [*values]}, place.uri, storage_options=place.storage_options)


def test_namespaces(namespace: RestNamespace) -> None:
    assert namespace.listing() == NamespaceListing((), ())
    assert namespace.exists([])
    assert not namespace.exists(["a"])
    assert namespace.listing(["a"]) is None
    assert namespace.properties(["a"]) is None
    namespace.create(["a"], {"owner": "me"})
    namespace.create(["a"])
    for name in ("c", "b"):
        namespace.create(["a", name])
    assert namespace.properties(["a"]) == {"owner": "me"}
    assert namespace.listing() == NamespaceListing(("a",), ())
    assert namespace.listing(["a"]) == NamespaceListing(("b", "c"), ())
    assert not namespace.remove(["a"])
    assert namespace.remove(["a", "b"])
    assert namespace.remove(["a"], cascade=True)
    assert namespace.listing(["a"]) is None
    with pytest.raises(StorageError, match="cannot drop the namespace a"):
        namespace.remove(["a"])


def test_tables(namespace: RestNamespace) -> None:
    namespace.create(["a"])
    assert namespace.find(["a", "t"]) is None
    place = namespace.declare(["a", "t"])
    assert namespace.find(["a", "t"]) == place
    with pytest.raises(DatasetExistsError, match=r"the table a\.t"):
        namespace.declare(["a", "t"])
    assert namespace.reserve(["a", "t"]) == (place, False)
    with pytest.raises(InvalidInputError, match=r"the table a\.t is at .* already"):
        namespace.reserve(["a", "t"], "/elsewhere")
    write(place, 1, 2)
    assert lance_format.dataset(place.uri).count_rows() == lance.dataset(place.uri).count_rows() == 2
    found, is_new = namespace.reserve(["a", "u"])
    assert is_new
    write(found, 3)
    assert namespace.listing(["a"]) == NamespaceListing((), ("t", "u"))
    assert namespace.deregister(["a", "t"])
    assert not namespace.deregister(["a", "t"])
    assert lance_format.dataset(place.uri).count_rows() == 2
    assert namespace.drop(["a", "u"])
    assert not namespace.drop(["a", "u"])
    assert namespace.listing(["a"]) == NamespaceListing((), ())


def test_a_table_that_the_server_still_has(tmp_path: Path) -> None:
    with serving_by_pylance(tmp_path) as uri:
        namespace = RestNamespace(uri)
        write(namespace.declare(["t"]), 1)
        for status in (200, 404):
            with pytest.raises(StorageError, match=rf"deregister the table t: .* answers {status}, and has it still"):
                namespace.deregister(["t"])
        with pytest.raises(StorageError, match=r"drop the table t: .* has it still; delete the files at .*t\.lance"):
            namespace.drop(["t"])


def test_what_pylance_puts_there(tmp_path: Path) -> None:
    with serving_by_pylance(tmp_path) as uri:
        theirs = lance.namespace.RestNamespace(uri=uri)
        theirs.create_namespace(lance_namespace.CreateNamespaceRequest(id=["a.b"]))
        made = theirs.declare_table(lance_namespace.DeclareTableRequest(id=["a.b", "x+y"]))
        lance.write_dataset({"id": [1]}, made.location)
        ours = RestNamespace(uri)
        assert ours.listing(["a.b"]) == NamespaceListing((), ("x+y",))
        place = ours.find(["a.b", "x+y"])
        assert place is not None
        assert lance_format.dataset(place.uri).count_rows() == 1
        write(ours.declare(["a.b", "ours"]), 1, 2, 3)
        assert lance.dataset(namespace_client=theirs, table_id=["a.b", "ours"]).count_rows() == 3
        write(ours.declare(["a.b", "with a space"]), 1)  # whose name pylance's client garbles
        assert ours.listing(["a.b"]) == NamespaceListing((), ("ours", "with a space", "x+y"))


def test_cascade_drops_what_servers_do_not(server: NamespaceServer) -> None:
    namespace = RestNamespace(server.uri)
    for parts in (["a"], ["a", "b"]):
        namespace.create(parts)
        namespace.declare([*parts, "t"])
        namespace.declare([*parts, "u"])
    assert namespace.remove(["a"], cascade=True)
    assert (server.namespaces, server.tables) == ({}, {})


def test_renaming(server: NamespaceServer, tmp_path: Path) -> None:
    namespace = RestNamespace(server.uri)
    place = namespace.declare(["a", "t"])
    namespace.rename(["a", "t"], ["b", "u"])
    assert namespace.find(["b", "u"]) == place
    with serving_by_pylance(tmp_path) as uri:
        RestNamespace(uri).declare(["t"])
        with pytest.raises(NotSupportedError, match=r"cannot rename the table t to u: .*; nothing was changed"):
            RestNamespace(uri).rename(["t"], ["u"])


def test_another_delimiter(server: NamespaceServer) -> None:
    namespace = RestNamespace(f"{server.uri}/", delimiter="::")
    namespace.create(["a$b"])
    namespace.declare(["a$b", "t"])
    assert server.tables.keys() == {("a$b", "t")}
    with pytest.raises(InvalidInputError, match="'a::b' cannot be a part of a name"):
        namespace.find(["a::b"])
    for wrong in ("", ".", ".."):
        with pytest.raises(InvalidInputError, match=f"{wrong!r} cannot be a part of a name"):
            namespace.find([wrong])
    with pytest.raises(InvalidInputError, match="the delimiter of names is empty"):
        RestNamespace(server.uri, delimiter="")


def test_headers_are_sent_and_never_shown(server: NamespaceServer) -> None:
    server.headers = {"Authorization": "Bearer s3cret"}
    namespace = RestNamespace(server.uri, headers=server.headers)
    assert namespace.listing() == NamespaceListing((), ())
    assert pickle.loads(pickle.dumps(namespace)).listing() == NamespaceListing((), ())
    assert "s3cret" not in repr(namespace)
    with pytest.raises(StorageError, match="answers 401, 'who are you'; give the headers that it asks for"):
        RestNamespace(server.uri).listing()


def test_a_busy_server_is_asked_again(server: NamespaceServer) -> None:
    server.busy = 2
    namespace = RestNamespace(server.uri)
    namespace.create(["a"])
    assert namespace.exists(["a"])
    server.busy, server.retry_after = 2, "not a time"
    assert namespace.exists(["a"])
    server.busy = 100
    with pytest.raises(StorageError, match="answers 503, 'busy'; it is not available"):
        namespace.create(["b"])


def test_a_busy_server_does_not_say_how_long_programs_wait(
    server: NamespaceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_format.namespaces.http_client._LONGEST_WAIT_SECONDS", 0.1)
    server.busy, server.retry_after = 100, "86400"
    started = time.monotonic()
    with pytest.raises(StorageError, match="it is not available"):
        RestNamespace(server.uri).exists(["a"])
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("name", "value"), [("X-Key", "s3cret\n"), ("X-Key", "s3cr\u2026et"), ("X\nKey", "s3cret"), ("", "")]
)
def test_headers_that_cannot_be_sent(server: NamespaceServer, name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=r"the header .* cannot be sent") as caught:
        RestNamespace(server.uri, headers={name: value}).listing()
    assert "s3cr" not in str(caught.value)


def test_other_servers(server: NamespaceServer) -> None:
    server.page = "<html>Not here</html>"
    with pytest.raises(StorageError, match="answers 404, '<html>Not here</html>'; check its address"):
        RestNamespace(server.uri).find(["t"])
    with pytest.raises(StorageError, match=r"the server http://127\.0\.0\.1:1/x does not answer: .*refused"):
        RestNamespace("http://127.0.0.1:1/x").find(["t"])
    with pytest.raises(InvalidInputError, match=r"the server http://127\.0\.0\.1:1/x names a user") as refusal:
        RestNamespace("http://me:s3cret@127.0.0.1:1/x")
    assert "s3cret" not in str(refusal.value)
    for wrong in ("localhost:80", "ftp://a", "http://", "/a"):
        with pytest.raises(InvalidInputError, match="its address begins with http"):
            RestNamespace(wrong)
    with pytest.raises(InvalidInputError, match=r"the server http://a/b goes on with \? or #: leave that out"):
        RestNamespace("http://a/b?key=s3cret")


def test_answers_of_wrong_types(server: NamespaceServer) -> None:
    namespace = RestNamespace(server.uri)
    namespace.create(["a"])
    namespace.declare(["a", "t"])

    def refused(name: str, value: object, ask: Callable[[], object]) -> None:
        server.more = {name: value}
        with pytest.raises(StorageError, match=rf"has '{name}', which is of the type {type(value).__name__} and not"):
            ask()

    for name, value in (("location", 5), ("table_uri", ["s3://b"]), ("storage_options", ["s3cret"])):
        refused(name, value, lambda: namespace.find(["a", "t"]))
        refused(name, value, lambda: namespace.declare(["a", "u"]))
    assert [*server.tables] == [("a", "t")]
    refused("properties", "p", lambda: namespace.properties(["a"]))
    refused("tables", 7, lambda: namespace.listing(["a"]))
    server.more = {"properties": {"team": 5, "owner": None}}
    assert namespace.properties(["a"]) == {"team": "5"}
    server.page = "[" * 100_000
    with pytest.raises(StorageError, match=r"answers 404, '\[\[.*'; check its address"):
        namespace.find(["a", "t"])


def test_versions_that_the_server_keeps_are_refused(server: NamespaceServer) -> None:
    server.is_managed = True
    namespace = RestNamespace(server.uri)
    with pytest.raises(NotSupportedError, match=r"the versions of the table t are kept by the server"):
        namespace.declare(["t"])


def _count(namespace: RestNamespace, results: Any) -> None:
    results.put(len(namespace.listing(["a"]).tables))


def test_a_forked_process_opens_its_own_connections(server: NamespaceServer) -> None:
    namespace = RestNamespace(server.uri)
    namespace.create(["a"])
    for name in "tuvw":
        namespace.declare(["a", name])
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    children = [fork.Process(target=_count, args=(namespace, results)) for _ in range(2)]
    for child in children:
        child.start()
    assert [len(namespace.listing(["a"]).tables), results.get(timeout=60), results.get(timeout=60)] == [4, 4, 4]
    for child in children:
        child.join()


# Credentials


def lending(server: NamespaceServer, store: ObjectServer, seconds: float | None) -> RestNamespace:
    server.root = store.new_root()
    server.options = {**store.options, "aws_session_token": "lent", "what.no.store": "takes"}
    server.lent_seconds = seconds
    return RestNamespace(server.uri, headers={"x-api-key": "s3cret"})


def test_a_server_chooses_no_credential_provider(
    server: NamespaceServer, s3_server: ObjectServer, tmp_path: Path
) -> None:
    namespace = lending(server, s3_server, None)
    server.options |= {"Credential_Provider": "os:system", "credential_provider_token": f"touch {tmp_path / 'called'}"}
    write(namespace.declare(["t"]), 1)
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("seconds", [None, 3600, 0])
def test_lent_credentials(server: NamespaceServer, s3_server: ObjectServer, seconds: float | None) -> None:
    namespace = lending(server, s3_server, seconds)
    write(namespace.declare(["t"]), 1, 2)
    place = namespace.find(["t"])
    assert place is not None
    assert "s3cret" not in repr(place)
    assert lance_format.dataset(place.uri, storage_options=place.storage_options).count_rows("id > 1") == 1
    renewals = server.requests[2:]
    assert set(renewals) == ({"table/describe"} if seconds == 0 else set())


def test_credentials_are_kept_for_half_of_their_time(server: NamespaceServer, s3_server: ObjectServer) -> None:
    namespace = lending(server, s3_server, 3600)
    first = namespace.declare(["t"])
    server.options["aws_secret_access_key"] = "another"
    assert namespace.find(["t"]) == first
    server.tables["t",] += "moved"
    assert namespace.find(["t"]) != first


def test_a_table_that_is_gone_when_its_credentials_expire(server: NamespaceServer, s3_server: ObjectServer) -> None:
    namespace = lending(server, s3_server, 0)
    options = namespace.declare(["t"]).storage_options
    provide = renewing(options["credential_provider_token"])
    assert provide()["token"] == "lent"
    server.lent_seconds = None
    with pytest.raises(StorageError, match="has lent credentials for the table t, which expire, and lends no others"):
        provide()
    del server.tables["t",]
    with pytest.raises(DatasetNotFoundError, match="has no table t"):
        provide()


def test_a_renewal_that_fails_while_credentials_are_valid(server: NamespaceServer, s3_server: ObjectServer) -> None:
    namespace = lending(server, s3_server, 60)
    options = namespace.declare(["t"]).storage_options
    token = json.loads(options["credential_provider_token"])
    provide = renewing(json.dumps({**token, "expires": int((time.time() + 30) * 1000)}))
    found = provide()
    assert "table/describe" not in server.requests
    server.more = {"storage_options": {}}
    renewals = []
    for seconds in (14, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lance_format.namespaces.renewal._seconds_to", lambda _expires, left=seconds: float(left))
            if seconds == 1:
                with pytest.raises(StorageError, match="lends no others"):
                    provide()
            else:
                assert (provide(), provide()) == (found, found)
        renewals.append(server.requests.count("table/describe"))
    assert renewals == [1, 2]


def test_credentials_that_never_expire(server: NamespaceServer, s3_server: ObjectServer) -> None:
    namespace = lending(server, s3_server, None)
    for largest in (str(2**63 - 1), "9" * 20):
        server.options["expires_at_millis"] = largest
        place = namespace.reserve(["t"])[0]
        assert renewing(place.storage_options["credential_provider_token"])()["token"] == "lent"


@pytest.mark.parametrize(
    ("location", "given", "plain", "lent"),
    [
        (
            "s3://b/t",
            {"aws_access_key_id": "i", "secret_access_key": "k", "aws_session_token": "t", "aws_region": "r"},
            {"aws_access_key_id": "i", "aws_secret_access_key": "k", "aws_session_token": "t", "aws_region": "r"},
            {"access_key_id": "i", "secret_access_key": "k", "token": "t"},
        ),
        ("gs://b/t", {"google_storage_token": "t"}, {"google_bearer_token": "t"}, {"token": "t"}),
        (
            "abfss://c@a.dfs.core.windows.net/t",
            {"azure_storage_sas_token": "s", "azure_storage_account_name": "a"},
            {"azure_storage_sas_token": "s", "azure_storage_account_name": "a"},
            {"sas_token": "s"},
        ),
    ],
)
def test_credentials_of_each_cloud(
    location: str, given: dict[str, str], plain: dict[str, str], lent: dict[str, str]
) -> None:
    assert storage_of(location, given, {}) == plain
    assert storage_of("/tmp/t", given, {}) == {}
    options = storage_of(location, {**given, "expires_at_millis": "9999999999999"}, {"table": ["t"]})
    token = json.loads(options["credential_provider_token"])
    assert token == {"table": ["t"], "provider": token["provider"], "credentials": lent, "expires": 9999999999999}
    assert not options.keys() & {name for name in plain if "token" in name or "key" in name}
