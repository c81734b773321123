"""Credentials that expire while a process uses them: each way to obtain them gives new ones in time."""

from __future__ import annotations

import datetime
import http.server
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lance_format
from lance_format import CommitStateUnknownError, StorageError
from lance_format.object_store import cloud_credentials
from lance_format.object_store.cloud_credentials import aws_profile
from tests.proxies import Fault, Proxy, Request
from tests.servers import ObjectServer

pytestmark = pytest.mark.system

EXPIRED = Fault(400, "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>")
LIFETIME = 32
"""The number of later tokens after which one is refused; more than the requests that a process has under way."""
_PROCESS = """
import datetime, json, pathlib, sys
calls = pathlib.Path(sys.argv[1])
calls.write_text(calls.read_text() + "x")
end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)
keys = {"AccessKeyId": "AKID", "SecretAccessKey": "s", "SessionToken": f"T{len(calls.read_text())}"}
print(json.dumps({"Version": 1, **keys, "Expiration": end.isoformat()}))
"""


def token_of(request: Request) -> int:
    """Return the number of the token of a request; 0 for none."""
    return int(request.headers.get("x-amz-security-token", "T0")[1:])


def expire(request: Request, newest: list[int], lifetime: int) -> Fault | None:
    """Refuse a token once so many later ones have been used."""
    newest[0] = max(newest[0], token_of(request))
    return EXPIRED if not token_of(request) or token_of(request) + lifetime < newest[0] else None


class _Issuer(http.server.BaseHTTPRequestHandler):
    """The endpoints from which a container and an instance take their keys; every reply has new ones."""

    protocol_version = "HTTP/1.1"

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        self._reply("session")

    def do_GET(self) -> None:
        if self.path.endswith("/security-credentials/"):
            self._reply("role")
            return
        issued: list[int] = self.server.issued  # type: ignore[attr-defined]
        issued[0] += 1
        end = datetime.datetime.now(datetime.UTC)  # The library renews them before each request.
        keys = {"Code": "Success", "AccessKeyId": "AKID", "SecretAccessKey": "s", "Token": f"T{issued[0]}"}
        self._reply(json.dumps({**keys, "Expiration": end.isoformat().replace("+00:00", "Z")}))

    def _reply(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def issuer() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Issuer)
    server.issued = [0]  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def proxy(s3_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Return a proxy whose address and region the environment has, and no keys."""
    made = Proxy(s3_server.endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with made.running():
        yield made


def change_a_table(server: ObjectServer, proxy: Proxy) -> list[int]:
    """Write, change and read a table without options, and return the tokens of the requests."""
    uri = server.new_root()
    newest = [0]
    with proxy.failing(lambda request: expire(request, newest, LIFETIME)):
        for number in range(3):
            lance_format.write_dataset({"a": [number]}, uri, mode="append")
        table = lance_format.dataset(uri)
        table.delete("a = 1")
        table.optimize.compact_files()
        while newest[0] <= 2 * LIFETIME:
            assert lance_format.dataset(uri).to_table()["a"].to_pylist() == [0, 2]
    return [token_of(request) for request in proxy.requests]


@pytest.mark.parametrize("source", ["container", "instance"])
def test_metadata_services(
    s3_server: ObjectServer, proxy: Proxy, issuer: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "container":
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{issuer}/keys")
        (tmp_path / "token").write_text("token-of-the-container")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    else:
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", issuer)
    tokens = change_a_table(s3_server, proxy)
    assert max(tokens) > 2 * LIFETIME
    assert min(tokens) == 1


def test_a_profile_with_a_process(
    s3_server: ObjectServer, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("boto3")
    program, calls, config = tmp_path / "keys.py", tmp_path / "calls", tmp_path / "config"
    program.write_text(_PROCESS)
    calls.write_text("")
    config.write_text(f"[profile work]\ncredential_process = {sys.executable} {program} {calls}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "work")
    provider = aws_profile({})[1]
    now = datetime.datetime.now(datetime.UTC)
    first, second = provider(), provider()
    assert first["token"] != second["token"]
    # boto3 promises ten minutes, and the library uses keys until five minutes before the end.
    assert second["expires_at"] - now < datetime.timedelta(minutes=10)
    lance_format.write_dataset({"a": [1]}, s3_server.new_root())
    assert token_of(proxy.requests[0]) > 2


def test_keys_that_other_programs_write_into_a_profile(
    s3_server: ObjectServer, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_credentials, "_KEPT", datetime.timedelta(0))  # Asked again before each request.
    place = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(place))

    def renew(token: str) -> None:
        place.write_text(f"[default]\naws_access_key_id=AKID\naws_secret_access_key=s\naws_session_token={token}\n")

    uri, newest = s3_server.new_root(), [0]
    with proxy.failing(lambda request: expire(request, newest, 0)):
        renew("T1")
        lance_format.write_dataset({"a": range(10)}, uri)
        table = lance_format.dataset(uri)
        newest[0] = 2
        with pytest.raises(StorageError, match="the credentials have expired; give a credential_provider"):
            table.to_table()
        renew("T2")
        assert table.to_table().num_rows == 10
        assert table.delete("a > 3") is not None
    assert {token_of(request) for request in proxy.requests} == {1, 2}
    place.write_text("[default]\nregion = x\n")
    with pytest.raises(StorageError, match=r"cannot list .*: there are no credentials: .* lost its aws_access_key_id"):
        lance_format.dataset(uri)


def changes(uri: str, options: dict[str, str]) -> dict[str, Callable[[], object]]:
    """Return changes of a table with a row, each of which commits something else."""
    rows = {"a": [1]}
    return {
        "append": lambda: lance_format.write_dataset(rows, uri, mode="append", storage_options=options),
        "new table": lambda: lance_format.write_dataset(rows, f"{uri}/below", storage_options=options),
        "tag": lambda: lance_format.dataset(uri, storage_options=options).tags.create("x", 1),
        "branch": lambda: lance_format.dataset(uri, storage_options=options).create_branch("x"),
    }


@pytest.mark.parametrize("change", ["append", "new table", "tag", "branch"])
def test_a_commit_that_expired_credentials_refuse_has_not_landed(
    s3_server: ObjectServer, proxy: Proxy, change: str
) -> None:
    uri = s3_server.new_root()
    lance_format.write_dataset({"a": [0]}, uri, storage_options=s3_server.options)
    is_expired = threading.Event()

    def refuse(request: Request) -> Fault | None:
        if request.is_conditional and ("_versions" in request.key or "/tags/" in request.key):
            is_expired.set()
        return EXPIRED if is_expired.is_set() else None

    options = {**s3_server.options, "aws_endpoint": proxy.endpoint}
    with (
        proxy.failing(refuse),
        pytest.raises(StorageError, match=r"cannot create .*: the credentials have expired; give"),
    ):
        changes(uri, options)[change]()
    table = lance_format.dataset(uri, storage_options=s3_server.options)
    assert (table.latest_version, table.tags.list(), table.branches.list()) == (1, {}, {})
    changes(uri, s3_server.options)[change]()


def test_a_refusal_after_an_attempt_without_a_reply_leaves_the_commit_open(
    s3_server: ObjectServer, proxy: Proxy
) -> None:
    uri = s3_server.new_root()
    lance_format.write_dataset({"a": [0]}, uri, storage_options=s3_server.options)
    faults: list[Fault] = []

    def lose(request: Request) -> Fault | None:
        if not faults and not (request.is_conditional and "_versions" in request.key):
            return None
        faults.append(EXPIRED if faults else Fault(is_late=True))
        return faults[-1]

    options = {**s3_server.options, "aws_endpoint": proxy.endpoint}
    with proxy.failing(lose), pytest.raises(CommitStateUnknownError, match=r"may have landed: .*have expired"):
        changes(uri, options)["append"]()
    assert lance_format.dataset(uri, storage_options=s3_server.options).count_rows() == 2
