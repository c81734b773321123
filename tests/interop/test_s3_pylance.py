"""Tables on S3 that pylance and this library share."""

from __future__ import annotations

from functools import partial

import lance
import pyarrow as pa
import pytest

import lance_format
from tests.processes import at_once
from tests.servers import ObjectServer
from tests.table.versions.race_worker import appends, changes_of_own_rows

pytestmark = pytest.mark.system


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


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.nightly)])
def test_processes_of_both_merge_delete_compact_and_clean_up(s3_server: ObjectServer, uri: str, count: int) -> None:
    """Each writer changes rows of its own, so that every order of the changes ends with the same rows."""
    options = s3_server.options
    ids = [number for writer in range(1, 5) for number in range(writer * 100, writer * 100 + count)]
    data = pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array([0] * len(ids), pa.int64())})
    lance_format.write_dataset(data, uri, storage_options=options, max_rows_per_file=3)
    kinds = [
        ("lance_format", "merge", 1),
        ("lance", "merge", 2),
        ("lance_format", "delete", 3),
        ("lance", "delete", 4),
        ("lance_format", "compaction", 0),
        ("lance", "compaction", 0),
        ("lance_format", "cleanup", 0),
    ]
    at_once(
        *(partial(changes_of_own_rows, library, uri, kind, writer, count, options) for library, kind, writer in kinds)
    )
    expected = {
        number: writer
        for writer in (1, 2)
        for first in (writer * 100, writer * 10_000)
        for number in range(first, first + count)
    }
    ours, theirs = lance_format.dataset(uri, storage_options=options), lance.dataset(uri, storage_options=options)
    ours.validate()
    theirs.validate()
    for table in (ours.to_table(), theirs.to_table()):
        assert dict(zip(table["id"].to_pylist(), table["value"].to_pylist(), strict=True)) == expected
        assert table.num_rows == len(expected)


def test_processes_of_both_append_at_once(s3_server: ObjectServer, uri: str) -> None:
    """Every row once, and the versions without a gap."""
    options, count = s3_server.options, 6
    lance_format.write_dataset({"a": [0]}, uri, storage_options=options)
    libraries = ["lance_format", "lance"] * 2
    at_once(*(partial(appends, library, uri, n, count, options) for n, library in enumerate(libraries, 1)))
    expected = sorted([0, *(number * 1000 + turn for number in range(1, 5) for turn in range(count))])
    ours = lance_format.dataset(uri, storage_options=options)
    assert sorted(ours.to_table()["a"].to_pylist()) == expected
    assert sorted(lance.dataset(uri, storage_options=options).to_table()["a"].to_pylist()) == expected
    assert [entry["version"] for entry in ours.versions()] == list(range(1, 26))
    ours.validate()


@pytest.mark.parametrize("name", ["birds.lance", "rare birds ü.lance"])
def test_both_read_shallow_clones_of_the_other(s3_server: ObjectServer, name: str) -> None:
    options = s3_server.options
    root = s3_server.new_root()
    source = f"{root}/{name}"
    lance.write_dataset(DATA, source, storage_options=options, max_rows_per_file=2000)
    ours = lance_format.dataset(source, storage_options=options)
    ours.delete("id % 10 = 0")
    ours.shallow_clone(f"{root}/ours.lance", 2)
    theirs = lance.dataset(f"{root}/ours.lance", storage_options=options)
    assert theirs.count_rows(filter="id >= 0") == 4500
    lance.dataset(source, storage_options=options).shallow_clone(f"{root}/theirs.lance", 2)
    allowing = options | {"allowed_base_paths": source}
    clone = lance_format.dataset(f"{root}/theirs.lance", storage_options=allowing)
    assert clone.to_table() == ours.to_table()
    with pytest.raises(lance_format.NotSupportedError, match="base paths"):
        lance_format.dataset(f"{root}/theirs.lance", storage_options=options)
