"""The chains of the clouds: credentials that services on the machine, or files, give to processes without options."""

from __future__ import annotations

import base64
import datetime
import http.server
import json
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lance_format
from lance_format import StorageError
from lance_format.object_store import resolve
from tests.proxies import Fault, Proxy, always
from tests.servers import ObjectServer, to_s3

pytestmark = pytest.mark.system

_EMPTY_LISTING = Fault(
    200,
    '<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs /><NextMarker /></EnumerationResults>',
    {"Content-Type": "application/xml"},
)


class Issuer(http.server.ThreadingHTTPServer):
    """A server of tokens that end at once. `asked` has the method, path, headers and form of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, dict[str, str], dict[str, list[str]]]] = []
        self.is_empty = False
        self.address = f"127.0.0.1:{self.server_address[1]}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Issuer

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Say nothing."""

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        form = urllib.parse.parse_qs(query) | urllib.parse.parse_qs(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, path, headers, form))
        token = f"T{len(self.server.asked)}"
        now = datetime.datetime.now(datetime.UTC)
        if self.server.is_empty:
            self._reply("", 404)
        elif "AssumeRoleWithWebIdentity" in form.get("Action", []):
            keys = "<AccessKeyId>AKID</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
            token = f"<SessionToken>{token}</SessionToken><Expiration>{now.isoformat()}</Expiration>"
            found = f"<Credentials>{keys}{token}</Credentials>"
            result = f"<AssumeRoleWithWebIdentityResult>{found}</AssumeRoleWithWebIdentityResult>"
            self._reply(f"<AssumeRoleWithWebIdentityResponse>{result}</AssumeRoleWithWebIdentityResponse>")
        elif path == "http://169.254.170.2/keys":
            keys = {"AccessKeyId": "AKID", "SecretAccessKey": "s", "Token": token}
            self._reply(json.dumps({**keys, "Expiration": now.isoformat().replace("+00:00", "Z")}))
        else:
            ends = {"expires_in": 0, "expires_on": str(int(now.timestamp()))}
            self._reply(json.dumps({"access_token": token, "token_type": "Bearer", "resource": "", **ends}))

    do_GET = do_POST = _serve  # noqa: N815

    def _reply(self, text: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def issuer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Issuer]:
    """Return a running server, encrypted if the parameter is true."""
    server = Issuer()
    if getattr(request, "param", False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(make_certificate(tmp_path / "certificate.pem"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def make_certificate(path: Path) -> Path:
    """Write a key and a certificate that it has signed."""
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    dated = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(encoded + dated.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize("issuer", [True], indirect=True)
def test_the_web_identity_of_a_pod(
    s3_server: ObjectServer, issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of the token is written again by Kubernetes, and read again for each renewal."""
    (tmp_path / "token").write_text("pod-1")
    proxy = Proxy(s3_server.endpoint)
    for name, value in {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/birds",
        "AWS_ROLE_SESSION_NAME": "session",
        "AWS_ENDPOINT_URL_STS": f"https://{issuer.address}",
        "AWS_ENDPOINT_URL": proxy.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    options = {"allow_invalid_certificates": "true"}
    with proxy.running():
        uri = s3_server.new_root()
        lance_format.write_dataset({"a": [1]}, uri, storage_options=options)
        (tmp_path / "token").write_text("pod-2")
        assert lance_format.dataset(uri, storage_options=options).count_rows() == 1
        tokens = [request.headers["x-amz-security-token"] for request in proxy.requests]
    assert len(set(tokens)) > 1
    assert {form["RoleArn"][0] for *_, form in issuer.asked} == {"arn:aws:iam::123456789012:role/birds"}
    assert [form["WebIdentityToken"][0] for *_, form in issuer.asked][:: len(issuer.asked) - 1] == ["pod-1", "pod-2"]


def test_the_role_of_a_container(s3_server: ObjectServer, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address is fixed: a proxy of HTTP stands for it."""
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/keys")
    proxy = Proxy(s3_server.endpoint)
    options = {
        "aws_endpoint": proxy.endpoint,
        "aws_region": "us-east-1",
        "allow_http": "true",
        "proxy_url": f"http://{issuer.address}",
        "proxy_excludes": "127.0.0.1",
    }
    with proxy.running():
        uri = s3_server.new_root()
        lance_format.write_dataset({"a": [1]}, uri, storage_options=options)
        assert lance_format.dataset(uri, storage_options=options).count_rows() == 1
        assert len({request.headers["x-amz-security-token"] for request in proxy.requests}) > 1


@pytest.mark.parametrize("source", ["managed identity", "workload identity", "client secret"])
def test_identities_of_azure(issuer: Issuer, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator knows no identities: the proxy answers in its place."""
    (tmp_path / "token").write_text("pod-1")
    principal = {
        "AZURE_CLIENT_ID": "client",
        "AZURE_TENANT_ID": "tenant",
        "AZURE_AUTHORITY_HOST": f"http://{issuer.address}",
    }
    settings = {
        "managed identity": {"IDENTITY_ENDPOINT": f"http://{issuer.address}/msi", "IDENTITY_HEADER": "of-the-app"},
        "workload identity": {**principal, "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "token")},
        "client secret": {**principal, "AZURE_CLIENT_SECRET": "s3cr3t"},
    }[source]
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    proxy = Proxy("http://127.0.0.1:1")
    options = {"azure_storage_account_name": "account", "azure_endpoint": proxy.endpoint, "allow_http": "true"}
    with proxy.running(), proxy.failing(always(_EMPTY_LISTING)):
        store, root = resolve("az://container/t", options)
        assert store.list_names(root) == []
        (tmp_path / "token").write_text("pod-2")
        assert store.list_names(root) == []
        bearers = [request.headers["authorization"] for request in proxy.requests]
    assert bearers == ["Bearer T1", "Bearer T2"]
    if source == "managed identity":
        assert [path for _, path, *_ in issuer.asked] == ["/msi"] * 2
        assert [headers["x-identity-header"] for *_, headers, _ in issuer.asked] == ["of-the-app"] * 2
    else:
        assert [path for _, path, *_ in issuer.asked] == ["/tenant/oauth2/v2.0/token"] * 2
        forms = [form for *_, form in issuer.asked]
        if source == "workload identity":
            assert [form["client_assertion"] for form in forms] == [["pod-1"], ["pod-2"]]
        else:
            assert [form["client_secret"] for form in forms] == [["s3cr3t"]] * 2


@pytest.fixture
def google(s3_server: ObjectServer, gcs_server: ObjectServer) -> Iterator[tuple[Proxy, dict[str, str]]]:
    """Return a server of Google's language, and options without credentials."""
    proxy = Proxy(s3_server.endpoint)
    proxy.translate = to_s3
    with proxy.running():
        yield proxy, {"google_base_url": proxy.endpoint, "allow_http": "true"}


def test_the_metadata_of_an_instance_of_google(
    gcs_server: ObjectServer,
    google: tuple[Proxy, dict[str, str]],
    issuer: Issuer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy, options = google
    monkeypatch.setenv("HOME", str(tmp_path))  # No file of gcloud.
    monkeypatch.setenv("GCE_METADATA_HOST", issuer.address)
    uri = gcs_server.new_root()
    lance_format.write_dataset({"a": [1]}, uri, storage_options=options)
    assert lance_format.dataset(uri, storage_options=options).count_rows() == 1
    assert len({request.headers["authorization"] for request in proxy.requests}) > 1
    method, path, headers, _ = issuer.asked[0]
    assert (method, path) == ("GET", "/computeMetadata/v1/instance/service-accounts/default/token")
    assert headers["metadata-flavor"] == "Google"


@pytest.mark.parametrize("given", ["option", "environment"])
def test_the_file_of_a_service_account_of_google(
    gcs_server: ObjectServer,
    google: tuple[Proxy, dict[str, str]],
    given: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding

    proxy, options = google
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    account = {"type": "service_account", "client_email": "birds@example.com", "private_key_id": "7"}
    (tmp_path / "account.json").write_text(json.dumps({**account, "private_key": text}))
    if given == "option":
        options = {**options, "google_service_account": str(tmp_path / "account.json")}
    else:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
    uri = gcs_server.new_root()
    lance_format.write_dataset({"a": [1]}, uri, storage_options=options)
    assert lance_format.dataset(uri, storage_options=options).count_rows() == 1
    bearer = proxy.requests[0].headers["authorization"].removeprefix("Bearer ")
    signed, _, signature = bearer.rpartition(".")
    private.public_key().verify(_decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    assert json.loads(_decoded(signed.partition(".")[2]))["iss"] == "birds@example.com"


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize(
    ("uri", "address", "remedy"),
    [
        ("s3://bucket/t", "aws_endpoint", "aws_access_key_id and aws_secret_access_key"),
        ("gs://bucket/t", "google_base_url", "google_service_account"),
        ("az://container/t", "azure_endpoint", "azure_storage_account_key"),
    ],
)
def test_no_credentials_at_all_are_one_error(
    uri: str,
    address: str,
    remedy: str,
    is_there: bool,
    s3_server: ObjectServer,
    issuer: Issuer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine of no cloud: nobody listens where its metadata would be, or something that issues nothing."""
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("GCE_METADATA_HOST", issuer.address)
    issuer.is_empty = True
    if not is_there:
        issuer.shutdown()
        issuer.server_close()
    options = {
        address: s3_server.endpoint,
        "allow_http": "true",
        "aws_metadata_endpoint": f"http://{issuer.address}",
        "azure_storage_account_name": "account",
        "azure_msi_endpoint": f"http://{issuer.address}/metadata/identity/oauth2/token",
    }
    with pytest.raises(
        StorageError, match=f"cannot .* {uri[:9]}.*: no credentials were found .* give {remedy}"
    ) as failed:
        lance_format.dataset(uri, storage_options=options)
    assert str(failed.value).startswith("cannot list" if is_there else "cannot reach")
    assert len(issuer.asked) <= 3
