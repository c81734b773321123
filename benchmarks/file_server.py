"""A server of files that speaks as much of S3's language as readers of tables need: faster than emulators of S3.

    python -m benchmarks.file_server --directory /tmp/tables --port 9000 --latency-ms 30

The first part of each path is a bucket: a directory. Bodies go from the file to the socket inside the kernel, so that a
scan measures its reader. Nothing is written.
"""

from __future__ import annotations

import argparse
import contextlib
import email.utils
import http.server
import os
import re
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tests.servers import free_port, running

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    root: Path
    latency_seconds = 0.0

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        time.sleep(self.latency_seconds)
        path, _, query = self.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path.lstrip("/")).partition("/")
        asked = urllib.parse.parse_qs(query)
        if not key:
            self._list(self.root / bucket, asked.get("prefix", [""])[0], asked.get("delimiter", [""])[0])
            return
        file = self.root / bucket / key
        if not file.is_file():
            self._reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        self._send(file)

    def _send(self, file: Path) -> None:
        with file.open("rb") as content:
            size = os.fstat(content.fileno()).st_size
            start, stop = self._range(size)
            self.send_response_only(206 if "range" in self.headers else 200)
            self._head(stop - start, content.fileno())
            if "range" in self.headers:
                self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
            self.end_headers()
            self.wfile.flush()
            while start < stop and self.command == "GET":
                start += os.sendfile(self.connection.fileno(), content.fileno(), start, stop - start)

    def _range(self, size: int) -> tuple[int, int]:
        found = _RANGE.fullmatch(self.headers.get("range") or "")
        if not found:
            return 0, size
        first, last = found.groups()
        if not first:
            return max(size - int(last), 0), size
        return int(first), min(int(last) + 1, size) if last else size

    def _list(self, bucket: Path, prefix: str, delimiter: str) -> None:
        entries, prefixes = [], set()
        for file in sorted(found for found in (bucket / prefix).rglob("*") if found.is_file()):
            key = str(file.relative_to(bucket))
            inner, slash, _ = key[len(prefix) :].partition(delimiter or "\0")
            if slash:
                prefixes.add(f"{prefix}{inner}{slash}")
                continue
            entries.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{file.stat().st_size}</Size>"
                f'<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"{file.stat().st_mtime_ns}"</ETag></Contents>'
            )
        shared = "".join(f"<CommonPrefixes><Prefix>{escape(found)}</Prefix></CommonPrefixes>" for found in prefixes)
        listing = f"<IsTruncated>false</IsTruncated>{''.join(entries)}{shared}"
        self._reply(200, f"<ListBucketResult>{listing}</ListBucketResult>".encode())

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _head(self, size: int, descriptor: int) -> None:
        modified = os.fstat(descriptor)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", f'"{modified.st_mtime_ns}"')
        self.send_header("Last-Modified", email.utils.formatdate(modified.st_mtime, usegmt=True))


@contextlib.contextmanager
def serving(directory: Path, latency_ms: float = 0.0) -> Iterator[str]:
    """Run a server in a separate process, and return its address."""
    port = free_port()
    program = [sys.executable, "-m", "benchmarks.file_server", "--directory", str(directory)]
    with running([*program, "--port", str(port), "--latency-ms", str(latency_ms)], port):
        yield f"http://127.0.0.1:{port}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    asked = parser.parse_args()
    _Handler.root, _Handler.latency_seconds = asked.directory, asked.latency_ms / 1000
    http.server.ThreadingHTTPServer(("127.0.0.1", asked.port), _Handler).serve_forever()


if __name__ == "__main__":
    main()
