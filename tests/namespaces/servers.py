"""Servers of namespaces: pylance's own, and one that does what pylance's does not."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import lance.namespace


@dataclass
class NamespaceServer:
    """A server in memory, which lists in pages of one entry, renames tables, and lends credentials.

    Parameters
    ----------
    root : str
        URI below which its tables are.
    """

    root: str
    options: dict[str, str] = field(default_factory=dict)
    """Storage options of all tables."""
    lent_seconds: float | None = None
    """How long these are valid."""
    headers: dict[str, str] = field(default_factory=dict)
    """What every request has to send."""
    busy: int = 0
    """How many requests it refuses for the time being."""
    retry_after: str | None = None
    """What it says about when to come again, if it refuses a request for the time being."""
    page: str | None = None
    """A page that it answers to all requests instead."""
    more: dict[str, Any] = field(default_factory=dict)
    """What it puts into all of its answers."""
    is_managed: bool = False
    """Whether it says that it keeps the versions of tables."""
    namespaces: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict)
    tables: dict[tuple[str, ...], str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    uri: str = ""

    def answer(self, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        _, kind, name, *action = path.strip("/").split("/")
        delimiter = query["delimiter"]
        text = urllib.parse.unquote(name)
        parts = () if text == delimiter else tuple(text.split(delimiter))
        self.requests.append("/".join((kind, *action)))
        if method == "POST":
            assert tuple(body["id"]) == parts
            return getattr(self, f"_{kind}_{action[0]}")(parts, body)
        if parts and parts not in self.namespaces:
            return 404, {"error": text, "code": 1}
        known = self.tables if action[0] == "table" else self.namespaces
        names = sorted(delimiter.join(key) for key in known if key[:-1] == parts)
        position = int(query.get("page_token", 0))
        more = {"page_token": str(position + 1)} if position + 1 < len(names) else {}
        return 200, {"tables" if action[0] == "table" else "namespaces": names[position : position + 1], **more}

    def _namespace_create(self, parts: tuple[str, ...], body: dict[str, Any]) -> tuple[int, Any]:
        if parts in self.namespaces:
            return 409, {"error": "exists", "code": 2}
        self.namespaces[parts] = body["properties"]
        return 200, {}

    def _namespace_exists(self, parts: tuple[str, ...], _body: dict[str, Any]) -> tuple[int, Any]:
        return (200, {}) if parts in self.namespaces else (404, {"error": "no", "code": 1})

    def _namespace_describe(self, parts: tuple[str, ...], _body: dict[str, Any]) -> tuple[int, Any]:
        return (200, {"properties": self.namespaces[parts]}) if parts in self.namespaces else (404, {"code": 1})

    def _namespace_drop(self, parts: tuple[str, ...], body: dict[str, Any]) -> tuple[int, Any]:
        if parts not in self.namespaces:
            return 404, {"error": "no", "code": 1}
        if body["behavior"] == "Cascade":
            return 400, {"error": "cascade is beyond this server", "code": 13}
        if any(key[: len(parts)] == parts for key in [*self.tables, *(self.namespaces.keys() - {parts})]):
            return 409, {"error": "not empty", "code": 3}
        del self.namespaces[parts]
        return 200, {}

    def _table_describe(self, parts: tuple[str, ...], _body: dict[str, Any]) -> tuple[int, Any]:
        if parts not in self.tables:
            return 404, {"error": "no", "code": 4}
        expiry = (
            {}
            if self.lent_seconds is None
            else {"expires_at_millis": str(int((time.time() + self.lent_seconds) * 1e3))}
        )
        found = {"location": self.tables[parts], "storage_options": {**self.options, **expiry}}
        return 200, {**found, "managed_versioning": True} if self.is_managed else found

    def _table_declare(self, parts: tuple[str, ...], body: dict[str, Any]) -> tuple[int, Any]:
        if parts in self.tables:
            return 409, {"error": "exists", "code": 5}
        self.tables[parts] = body.get("location") or f"{self.root}/{'-'.join(parts)}"
        return self._table_describe(parts, body)

    def _table_deregister(self, parts: tuple[str, ...], _body: dict[str, Any]) -> tuple[int, Any]:
        return (200, {}) if self.tables.pop(parts, None) else (404, {"error": "no", "code": 4})

    _table_drop = _table_deregister

    def _table_rename(self, parts: tuple[str, ...], body: dict[str, Any]) -> tuple[int, Any]:
        self.tables[*body["new_namespace_id"], body["new_table_name"]] = self.tables.pop(parts)
        return 200, {}


@contextlib.contextmanager
def serving(server: NamespaceServer) -> Iterator[NamespaceServer]:
    """Answer requests at `server.uri`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            split = urllib.parse.urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._send(*self._reply(split, content))

        do_POST = do_GET  # noqa: N815

        def _reply(self, split: urllib.parse.SplitResult, content: bytes) -> tuple[int, Any]:
            if server.page is not None:
                return 404, server.page
            if server.busy:
                server.busy -= 1
                return 503, {"error": "busy", "code": 17}
            if any(self.headers.get(name) != value for name, value in server.headers.items()):
                return 401, {"error": "who are you", "code": 16}
            query = dict(urllib.parse.parse_qsl(split.query))
            status, answer = server.answer(self.command, split.path, query, json.loads(content or b"{}"))
            return status, {**answer, **server.more}

        def _send(self, status: int, value: Any) -> None:
            data = (value if isinstance(value, str) else json.dumps(value)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if status == 503 and server.retry_after is not None:
                self.send_header("Retry-After", server.retry_after)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server.uri = f"http://127.0.0.1:{http.server_port}"
        threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        http.shutdown()


@contextlib.contextmanager
def serving_by_pylance(root: Path) -> Iterator[str]:
    """Yield the address of pylance's server of a directory."""
    with lance.namespace.RestAdapter("dir", {"root": str(root)}, port=0) as adapter:
        yield f"http://127.0.0.1:{adapter.port}"
