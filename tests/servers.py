"""Object stores on this machine: one server process each, started when a test asks for it first.

| server | stands for | differs |
|---|---|---|
| moto | S3 | checks no signature, knows no rights; one process, so that listings never lag |
| Azurite | Azure Blob Storage | no hierarchical namespace |
| moto behind a translating proxy | Google Cloud Storage | its XML API is that of S3, except for conditions |
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.proxies import Proxy

_START_SECONDS = 300
_AZURE_ACCOUNT = "devstoreaccount1"
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class ObjectServer:
    """A server, and how to reach it.

    Parameters
    ----------
    endpoint : str
    root : str
        URI of its bucket.
    options : dict of str to str
        Storage options.
    """

    endpoint: str
    root: str
    options: dict[str, str] = field(repr=False)

    def new_root(self) -> str:
        """Return the URI of an empty place."""
        return f"{self.root}/{uuid.uuid4().hex}"


def s3_options(endpoint: str) -> dict[str, str]:
    return {
        "aws_endpoint": endpoint,
        "aws_access_key_id": "AKIDTEST",
        "aws_secret_access_key": "s3cr3t-of-the-tests",
        "aws_region": "us-east-1",
        "allow_http": "true",
        "client_max_retries": "4",
        "client_retry_timeout": "20",
    }


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    """Run a server until it is no longer needed; returns when it accepts connections."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} does not start")
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def s3() -> Iterator[ObjectServer]:
    """Run moto, with a bucket."""
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    program = str(Path(__file__).with_name("moto_server.py"))
    # Safe of the folders beside it, which Python 3.14 would take for packages of the library that it comes with.
    with running([sys.executable, "-P", "-W", "ignore", program, "-H", "127.0.0.1", "-p", str(port)], port):
        create_bucket(endpoint, "tables")
        yield ObjectServer(endpoint, "s3://tables", s3_options(endpoint))


def create_bucket(endpoint: str, name: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT")).close()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[ObjectServer]:
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        pytest.skip("moto is not installed: pip install 'pyspark-lance[test]'")
    with s3() as server:
        yield server


@pytest.fixture(scope="session")
def azure_server() -> Iterator[ObjectServer]:
    program = Path(sys.prefix, "azurite/node_modules/.bin/azurite-blob")
    if not program.exists() or not shutil.which("node"):
        pytest.skip("Azurite is not installed: make test does it where npm is")
    port = free_port()
    command = [str(program), "--blobPort", str(port), "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    with running([*command, "--skipApiVersionCheck"], port):
        endpoint = f"http://127.0.0.1:{port}/{_AZURE_ACCOUNT}"
        options = {
            "azure_storage_account_name": _AZURE_ACCOUNT,
            "azure_storage_account_key": _AZURE_KEY,
            "azure_storage_endpoint": endpoint,
            "allow_http": "true",
        }
        _create_container(endpoint, "tables")
        yield ObjectServer(endpoint, "az://tables", options)


def _create_container(endpoint: str, name: str) -> None:
    date, resource = formatdate(usegmt=True), f"/{_AZURE_ACCOUNT}/{_AZURE_ACCOUNT}/{name}\nrestype:container"
    signed = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n{resource}"
    digest = hmac.new(base64.b64decode(_AZURE_KEY), signed.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2021-08-06",
        "Content-Length": "0",
        "Authorization": f"SharedKey {_AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}",
    }
    asked = urllib.request.Request(f"{endpoint}/{name}?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(asked).close()


@pytest.fixture(scope="session")
def gcs_server(s3_server: ObjectServer) -> Iterator[ObjectServer]:
    create_bucket(s3_server.endpoint, "google-tables")
    proxy = Proxy(s3_server.endpoint)
    proxy.translate = to_s3
    with proxy.running():
        account = {"gcs_base_url": proxy.endpoint, "disable_oauth": True, "client_email": ""}
        key = json.dumps({**account, "private_key": "", "private_key_id": ""})
        options = {"google_service_account_key": key, "allow_http": "true"}
        yield ObjectServer(proxy.endpoint, "gs://google-tables", options)


def to_s3(path: str, headers: dict[str, str]) -> str:
    """Translate the condition that an object is absent, slashes that are encoded, and the credentials."""
    if headers.pop("x-goog-if-generation-match", None) == "0":
        headers["if-none-match"] = "*"
    scope = "Credential=AKIDTEST/20260101/us-east-1/s3/aws4_request"
    headers["authorization"] = f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"
    path, mark, query = path.partition("?")
    return f"{path.replace('%2F', '/').replace('%2D', '-')}{mark}{query}"


@pytest.fixture(scope="session")
def hive_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a Hive metastore with a database in memory: that of the jars of Spark."""
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "thriftpy2")) or not shutil.which("java"):
        pytest.skip("Java, PySpark or thriftpy2 is not installed: pip install 'pyspark-lance[test]'")
    directory, port = tmp_path_factory.mktemp("hive"), free_port()
    settings = {
        "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:hive;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "none",
        "hive.async.log.enabled": "false",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"file://{directory}/warehouse",
    }
    lines = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    (directory / "hive-site.xml").write_text(f"<configuration>{lines}</configuration>")
    jars = Path(importlib.util.find_spec("pyspark").origin).with_name("jars")
    java = ["java", "-Xmx256m", f"-Dderby.stream.error.file={directory}/derby.log", "-cp", f"{directory}:{jars}/*"]
    with running([*java, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)], port):
        yield f"thrift://127.0.0.1:{port}"
