"""A proxy in front of a server, which counts requests, delays them, and fails where it is told to."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import socket
import struct
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

_HOP_HEADERS = frozenset({"connection", "transfer-encoding", "keep-alive"})


@dataclass
class Request:
    """A request that has passed.

    Parameters
    ----------
    method : str
    key : str
        The path without the bucket, decoded.
    query : str
    headers : dict of str to str
        Names in lower case.
    num_sent, num_received : int
        Bytes of the bodies.
    arrived : float
        The time of a clock that only goes forward, in seconds.
    """

    method: str
    key: str
    query: str
    headers: dict[str, str] = field(repr=False)
    num_sent: int = 0
    num_received: int = 0
    arrived: float = field(default_factory=time.monotonic)

    @property
    def kind(self) -> str:
        """Purpose of the request."""
        if self.method == "GET" and "list-type" in self.query:
            return "LIST"
        if self.method == "POST" and "delete" in self.query:
            return "DELETE"
        return self.method

    @property
    def is_conditional(self) -> bool:
        return "if-none-match" in self.headers or self.headers.get("x-goog-if-generation-match") == "0"


@dataclass(frozen=True)
class Fault:
    """The fate of a request.

    Parameters
    ----------
    status : int
        Status of the reply; 0 for a reset of the connection without a reply.
    body : str
    headers : dict of str to str
    is_late : bool
        Whether the server does its work before.
    cut_after : int, optional
        So many bytes of the true reply's body arrive before the connection is reset; `status` is ignored.
    """

    status: int = 0
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    is_late: bool = False
    cut_after: int | None = None


Rule = Callable[[Request], Fault | None]


class Proxy:
    """The proxy. `requests` has what has passed since it was last cleared.

    Parameters
    ----------
    upstream : str
        The address of the server.
    """

    def __init__(self, upstream: str) -> None:
        parsed = urllib.parse.urlsplit(upstream)
        assert parsed.hostname
        assert parsed.port
        self.upstream = (parsed.hostname, parsed.port)
        self.requests: list[Request] = []
        self.rule: Rule | None = None
        self.latency_seconds = 0.0
        self.translate: Callable[[str, dict[str, str]], str] = lambda path, _headers: path
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextlib.contextmanager
    def running(self) -> Iterator[Proxy]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    @contextlib.contextmanager
    def failing(self, rule: Rule) -> Iterator[Proxy]:
        """Apply a rule."""
        self.rule = rule
        try:
            yield self
        finally:
            self.rule = None

    def counts(self) -> dict[str, int]:
        """Return how many requests of each kind have passed, and forget them."""
        found: dict[str, int] = {}
        for request in self.requests:
            found[request.kind] = found.get(request.kind, 0) + 1
        self.requests.clear()
        return dict(sorted(found.items()))


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may go away."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._upstream = http.client.HTTPConnection(*self.server.proxy.upstream)

    def finish(self) -> None:
        self._upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Say nothing."""

    def _serve(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path, _, query = self.path.partition("?")
        key = urllib.parse.unquote(path.lstrip("/").partition("/")[2])
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, key, query, headers, len(body))
        proxy.requests.append(request)
        time.sleep(proxy.latency_seconds)
        fault = proxy.rule(request) if proxy.rule else None
        if fault is not None and not fault.is_late and fault.cut_after is None:
            self._fail(fault)
            return
        status, reply_headers, content = self._forward(body, headers)
        request.num_received = len(content)
        if fault is None:
            self._reply(status, reply_headers, content)
        elif fault.cut_after is not None:
            self._reply(status, reply_headers, content[: fault.cut_after], len(content))
            self._reset()
        else:
            self._fail(fault)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815

    def _forward(self, body: bytes, headers: dict[str, str]) -> tuple[int, list[tuple[str, str]], bytes]:
        sent = {name: value for name, value in headers.items() if name not in _HOP_HEADERS}
        path = self.server.proxy.translate(self.path, sent)
        self._upstream.request(self.command, path, body, sent)
        reply = self._upstream.getresponse()
        return reply.status, reply.getheaders(), reply.read()

    def _fail(self, fault: Fault) -> None:
        if fault.status:
            self._reply(fault.status, list(fault.headers.items()), fault.body.encode())
        else:
            self._reset()

    def _reply(self, status: int, headers: list[tuple[str, str]], content: bytes, size: int | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in {*_HOP_HEADERS, "date", "server"} and (
                name.lower() != "content-length" or self.command == "HEAD"
            ):
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content) if size is None else size))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


def first(number: int, fault: Fault, matches: Callable[[Request], bool] = lambda _request: True) -> Rule:
    """Return a rule by which the first requests of a kind fail."""
    lock, left = threading.Lock(), [number]

    def rule(request: Request) -> Fault | None:
        with lock:
            if left[0] and matches(request):
                left[0] -= 1
                return fault
        return None

    return rule


def always(fault: Fault, matches: Callable[[Request], bool] = lambda _request: True) -> Rule:
    """Return a rule by which all requests of a kind fail."""
    return lambda request: fault if matches(request) else None
