"""Writers to an object store that are killed at a request: the table is what it was before or after."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format.object_store import resolve
from tests.proxies import Fault, Proxy, Request
from tests.servers import ObjectServer, s3_options
from tests.table.versions.s3_kill_worker import OPERATIONS, create

pytestmark = pytest.mark.system

REPOSITORY = Path(__file__).parents[3]
_MOST_REQUESTS = 200


class Worker:
    """A process that makes changes in children, and a proxy that kills these."""

    def __init__(self, proxy: Proxy, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._proxy, self._input, self._output = proxy, process.stdin, process.stdout

    def is_killed(self, operation: str, uri: str, wanted: int) -> bool:
        """Make a change; return whether its process was killed at the request of a number.

        The server carries out every second of these requests first.
        """
        seen: list[Request] = []
        children: queue.Queue[int] = queue.Queue()

        def strike(request: Request) -> Fault | None:
            seen.append(request)
            if len(seen) <= wanted:
                return None
            child = children.get(timeout=600)
            children.put(child)
            os.kill(child, signal.SIGKILL)
            return Fault(is_late=wanted % 2 == 1)

        with self._proxy.failing(strike):
            self._send(json.dumps([operation, uri, s3_options(self._proxy.endpoint)]))
            children.put(int(self._output.readline()))
            status = int(self._output.readline())
        assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL
        return status != 0

    def _send(self, line: str) -> None:
        stream: IO[str] = self._input
        stream.write(line + "\n")
        stream.flush()


@pytest.fixture(scope="module")
def worker(s3_server: ObjectServer) -> Iterator[Worker]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.table.versions.s3_kill_worker"]
    with (
        Proxy(s3_server.endpoint).running() as proxy,
        subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        yield Worker(proxy, process)
        assert process.stdin is not None
        process.stdin.close()


def content(server: ObjectServer, uri: str) -> tuple[int, pa.Table]:
    """Return the version and the rows that both libraries see."""
    ours = lance_format.dataset(uri, storage_options=server.options)
    theirs = lance.dataset(uri, storage_options=server.options)
    theirs.validate()
    ours.validate()
    rows = ours.to_table()
    assert (theirs.version, theirs.to_table()) == (ours.version, rows)
    return ours.version, rows


def uploads(server: ObjectServer) -> bytes:
    with urllib.request.urlopen(f"{server.endpoint}/tables?uploads") as reply:
        found: bytes = reply.read()
    return found


def cases() -> list[object]:
    return [pytest.param(name, marks=[] if name == "delete" else [pytest.mark.nightly]) for name in OPERATIONS]


@pytest.mark.parametrize("operation", cases())
def test_a_killed_writer_leaves_the_old_or_the_new_version(
    s3_server: ObjectServer, worker: Worker, operation: str
) -> None:
    states = []
    for number in range(_MOST_REQUESTS):
        uri = s3_server.new_root()
        create(uri, s3_server.options)
        old = content(s3_server, uri)
        was_killed = worker.is_killed(operation, uri, number)
        found = content(s3_server, uri)
        states.append(found != old)
        has_upload = uri.rpartition("/")[2].encode() in uploads(s3_server)
        table = lance_format.dataset(uri, storage_options=s3_server.options)
        table.insert({"a": [1000], "s": [b"z"]})
        table.cleanup_old_versions(timedelta(0), delete_unverified=True)
        version, rows = content(s3_server, uri)
        assert (version, rows.slice(0, found[1].num_rows)) == (found[0] + 1, found[1])
        store, root = resolve(uri, s3_server.options)
        data = [info.path for info in store.list_tree(f"{root}/data")]
        assert len(data) == sum(len(fragment.metadata.files) for fragment in table.get_fragments())
        assert len(store.list_names(f"{root}/_versions")) == 1
        if not was_killed:
            assert not has_upload
            break
    else:
        pytest.fail("the change has more requests than expected")
    assert number > 4
    assert states == sorted(states) or operation == "cleanup"
    assert states[-1] == (operation != "cleanup")
