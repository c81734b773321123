"""Tables on S3 that pylance and this library share."""

from __future__ import annotations

import json
import subprocess
import sys

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.servers import ObjectServer

_WORKER = """
import json, sys
import pyarrow as pa
library, uri, options, writer, count = json.loads(sys.argv[1])
if library == "ours":
    from lance_format import write_dataset
else:
    from lance import write_dataset
sys.stdin.readline()
for number in range(count):
    write_dataset(pa.table({"a": [writer * 1000 + number]}), uri, mode="append", storage_options=options)
"""


@pytest.fixture
def uri(s3_server: ObjectServer) -> str:
    return f"{s3_server.new_root()}/birds.lance"


DATA = pa.table(
    {
        "id": range(5000),
        "name": [None if number % 7 == 0 else f"bird {number}" for number in range(5000)],
        "tags": [[str(number)] * (number % 3) for number in range(5000)],
        "place": [{"x": number / 2, "y": None} for number in range(5000)],
    }
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pylance_reads_and_changes_what_we_write(s3_server: ObjectServer, uri: str, version: str) -> None:
    options = s3_server.options
    ours = lance_format.write_dataset(DATA, uri, storage_options=options, data_storage_version=version)
    theirs = lance.dataset(uri, storage_options=options)
    assert theirs.to_table() == ours.to_table()
    theirs.delete("id % 10 = 0")
    theirs.tags.create("pruned", 2)
    theirs.create_branch("wild/birds")
    lance.write_dataset(DATA.slice(0, 10), uri, mode="append", storage_options=options)
    ours = lance_format.dataset(uri, storage_options=options)
    assert ours.count_rows() == 4510
    assert lance_format.dataset(uri, "pruned", storage_options=options).count_rows() == 4500
    assert lance_format.dataset(uri, ("wild/birds", None), storage_options=options).count_rows() == 4500
    assert ours.to_table(filter="id < 12 AND name LIKE 'bird 1%'")["id"].to_pylist() == [1, 11, 1]


def test_we_read_and_change_what_pylance_writes(s3_server: ObjectServer, uri: str) -> None:
    options = s3_server.options
    lance.write_dataset(DATA, uri, storage_options=options, max_rows_per_file=2000)
    ours = lance_format.dataset(uri, storage_options=options)
    assert ours.to_table() == DATA
    ours.delete("id >= 4000")
    ours.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(DATA.slice(3990, 20))
    branch = ours.create_branch("a/b")
    branch.tags.create("t", ("a/b", None))
    ours.optimize.compact_files()
    theirs = lance.dataset(uri, storage_options=options)
    assert theirs.version == ours.version
    assert theirs.count_rows() == ours.count_rows() == 4010
    assert sorted(theirs.to_table()["id"].to_pylist()) == sorted(ours.to_table()["id"].to_pylist())
    assert theirs.checkout_version("t").count_rows() == 4010
    theirs.cleanup_old_versions(error_if_tagged_old_versions=False)
    lance_format.dataset(uri, storage_options=options).validate()


def test_processes_of_both_append_at_once(s3_server: ObjectServer, uri: str) -> None:
    """Every row once, and the versions without a gap."""
    writers, count = ["ours", "pylance"] * 2, 6
    lance_format.write_dataset({"a": [0]}, uri, storage_options=s3_server.options)
    processes = []
    for number, library in enumerate(writers, 1):
        argument = json.dumps([library, uri, s3_server.options, number, count])
        command = [sys.executable, "-W", "ignore", "-c", _WORKER, argument]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [(process.communicate(timeout=600)[1], process.returncode) for process in processes] == [("", 0)] * 4
    expected = sorted([0, *(number * 1000 + turn for number in range(1, 5) for turn in range(count))])
    ours = lance_format.dataset(uri, storage_options=s3_server.options)
    assert sorted(ours.to_table()["a"].to_pylist()) == expected
    assert sorted(lance.dataset(uri, storage_options=s3_server.options).to_table()["a"].to_pylist()) == expected
    assert [entry["version"] for entry in ours.versions()] == list(range(1, 26))
    ours.validate()
