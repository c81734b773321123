"""Checksums of all files of a table: what is damaged or swapped is found, and other writers are not disturbed."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import time
import uuid as uuids
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import ChecksumError, LanceDataset
from lance_format.proto import table_pb2
from lance_format.table.format.layout import is_index_of, new_index_uuid
from tests.table.builders import changed_manifest

VERSIONS = ("2.0", "2.1", "2.2")


def _table(num_rows: int = 9000) -> pa.Table:
    numbers = np.random.default_rng(0).integers(0, 2**62, num_rows)
    return pa.table({"id": range(num_rows), "number": numbers, "name": [f"bird {row}" for row in range(num_rows)]})


def _write(path: Path, version: str = "2.2", num_rows: int = 9000) -> LanceDataset:
    lance_format.write_dataset(_table(num_rows), path, data_storage_version=version, max_rows_per_file=3000)
    return lance_format.dataset(path)


def _files(path: Path, directory: str) -> list[Path]:
    return sorted(file for file in (path / directory).rglob("*") if file.is_file())


def _flip(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("version", VERSIONS)
def test_damage_names_file_column_and_rows(tmp_path: Path, version: str) -> None:
    _write(tmp_path, version)
    file = _files(tmp_path, "data")[0]
    _flip(file, 30_000)
    damaged = lance_format.dataset(tmp_path)
    with pytest.raises(
        ChecksumError, match=rf"{file.name}: bytes \d+ to \d+, which hold rows 0 to 2999 of column"
    ) as caught:
        damaged.to_table()
    assert "restore" in str(caught.value)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), ChecksumError)
    unverified = lance_format.dataset(tmp_path, verify_checksums=False)
    assert unverified.to_table() != _table()
    assert (
        pickle.loads(pickle.dumps(unverified)).count_rows() == pickle.loads(pickle.dumps(damaged)).count_rows() == 9000
    )
    with pytest.raises(ChecksumError):
        pickle.loads(pickle.dumps(damaged)).to_table()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_metadata_of_many_columns_is_found(tmp_path: Path, version: str) -> None:
    """The error would name columns and rows, and needs the metadata for that."""
    table = pa.table({f"column {number}": range(10) for number in range(400)})
    lance_format.write_dataset(table, tmp_path, data_storage_version=version)
    (file,) = _files(tmp_path, "data")
    whole = file.read_bytes()
    for position in range(0, len(whole), 2048):
        _flip(file, position)
        with pytest.raises(ChecksumError, match=file.name):
            lance_format.dataset(tmp_path).to_table()
        file.write_bytes(whole)


@pytest.mark.parametrize("version", VERSIONS)
def test_damage_between_the_wanted_pages_does_no_harm(tmp_path: Path, version: str) -> None:
    """Pages so close to each other are one request, with what lies between them."""
    numbers = np.random.default_rng(0).integers(0, 2**62, (3, 900))
    rows = pa.table(dict(zip("abc", numbers, strict=True)))
    lance_format.write_dataset(rows, tmp_path, data_storage_version=version)
    (file,) = _files(tmp_path, "data")
    _flip(file, 10_000)
    dataset = lance_format.dataset(tmp_path)
    assert dataset.to_table(columns=["a", "c"]) == rows.select(["a", "c"])
    assert dataset.take([1, 800], columns=["c", "a"]) == rows.select(["c", "a"]).take([1, 800])
    for columns in (["b"], ["a", "b", "c"]):
        with pytest.raises(ChecksumError, match="of column 'b', are not"):
            lance_format.dataset(tmp_path).to_table(columns=columns)


def test_takes_and_statistics_are_verified(tmp_path: Path) -> None:
    dataset = _write(tmp_path, num_rows=3000)
    (file,) = _files(tmp_path, "data")
    whole = file.read_bytes()

    def read() -> None:
        found = lance_format.dataset(tmp_path)
        found.take(list(range(0, 3000, 10)))
        found.to_table(filter="id < 5 and number > 7 and name > 'a'")

    read()
    for position in range(0, len(whole), 1777):
        _flip(file, position)
        with pytest.raises(ChecksumError):
            read()
        file.write_bytes(whole)
    assert dataset.to_table() == _table(3000)


def test_the_table_says_whether_checksums_are_compared(tmp_path: Path) -> None:
    _write(tmp_path).update_config({"lance.verify_checksums": "false"})
    _flip(_files(tmp_path, "data")[0], 30_000)
    assert lance_format.dataset(tmp_path).to_table().num_rows == 9000
    with pytest.raises(ChecksumError):
        lance_format.dataset(tmp_path, verify_checksums=True).to_table()


def test_swapped_files_and_files_of_other_tables_are_found(tmp_path: Path) -> None:
    _write(tmp_path / "a")
    first, second, _ = _files(tmp_path / "a", "data")
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1].ljust(len(contents[0]), b"\0"))
    with pytest.raises(lance_format.CorruptFileError, match=first.name):
        lance_format.dataset(tmp_path / "a").to_table()
    first.write_bytes(contents[0])
    _write(tmp_path / "b")
    other = next(file for file in _files(tmp_path / "b", "data") if file.stat().st_size == first.stat().st_size)
    shutil.copy(other, first)
    with pytest.raises(ChecksumError, match=rf"this is the file '{other.name}', in the place of '{first.name}'"):
        lance_format.dataset(tmp_path / "a").to_table()


def test_lost_checksums_are_found(tmp_path: Path) -> None:
    """A name promises them, so that no damage can hide them."""
    dataset = _write(tmp_path, num_rows=100)
    (file,) = _files(tmp_path, "data")
    content = file.read_bytes()
    file.write_bytes(content.replace(b"LANCESUM", b"\0" * 8))
    with pytest.raises(ChecksumError, match="lost its checksums"):
        lance_format.dataset(tmp_path).to_table()
    file.write_bytes(content)
    (manifest,) = (tmp_path / "_versions").glob("*.manifest")
    manifest.write_bytes(b"\0" * 20 + manifest.read_bytes()[20:])
    with pytest.raises(ChecksumError, match=f"{manifest.name}: the manifest has lost its checksum"):
        lance_format.dataset(tmp_path)
    assert lance_format.dataset(tmp_path, verify_checksums=False).to_table() == dataset.to_table()


@pytest.mark.slow
@pytest.mark.parametrize("directory", ["_deletions", "_indices", "_versions", "_transactions"])
def test_every_flip_in_other_files_is_found(tmp_path: Path, directory: str) -> None:
    dataset = _write(tmp_path, num_rows=3100)
    dataset.create_scalar_index("id", "ZONEMAP")
    dataset.delete("id % 3 = 1")
    manifest = min((tmp_path / "_versions").glob("*.manifest"))
    (file,) = [manifest] if directory == "_versions" else _files(tmp_path, directory)[-1:]
    whole = file.read_bytes()
    if directory == "_transactions":  # Readers prefer the copy in the manifest, which is verified with it.
        from lance_format.table.transaction.transaction import parse_transaction

        def read() -> None:
            parse_transaction(file.read_bytes())
    else:

        def read() -> None:
            found = lance_format.dataset(tmp_path)
            found.count_rows("id <> 5")

    read()
    trailer = 3 if directory == "_transactions" else 0  # Without its tag the checksum of a message is none.
    for position in range(0, len(whole) - 8 - trailer, 7):
        _flip(file, position)
        with pytest.raises(lance_format.LanceError):
            read()
        file.write_bytes(whole)


def test_identities_of_indices_are_marked_uuids() -> None:
    job = str(uuids.uuid4())
    uuid = new_index_uuid(job)
    assert (uuid.version, uuid.variant) == (8, "specified in RFC 4122")
    assert uuid.bytes[:4] == b"LSUM"
    assert is_index_of(str(uuid), job)
    assert not is_index_of(str(uuid), str(uuids.uuid4()))
    assert not is_index_of(str(uuids.uuid4()), job)
    assert not is_index_of(f"{uuid}x", job)


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_rewrites_tables_with_checksums(tmp_path: Path, version: str, stable: bool) -> None:
    path = str(tmp_path / "t")
    rows = _table(2000)
    dataset = lance_format.write_dataset(
        rows, path, data_storage_version=version, max_rows_per_file=500, enable_stable_row_ids=stable
    )
    dataset.delete("id % 10 = 3")
    dataset.create_scalar_index("id", "ZONEMAP")
    theirs = lance.dataset(path)
    assert theirs.to_table() == dataset.to_table()
    assert theirs.to_table(filter="id = 7").num_rows == 1
    assert theirs.take([0, 700]) == dataset.take([0, 700])

    def check() -> lance.LanceDataset:
        ours, reopened = lance_format.dataset(path), lance.dataset(path)
        order = [("id", "ascending"), ("name", "ascending")]
        assert ours.to_table().sort_by(order) == reopened.to_table().sort_by(order)
        assert not ours.verify().problems
        return reopened

    lance.write_dataset(rows.slice(0, 50), path, mode="append")
    check().delete("id % 10 = 4")
    check().update({"name": "'x'"}, where="id % 10 = 5")
    check().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows.slice(100, 7))
    check().add_columns({"twice": "id * 2"})
    check().create_scalar_index("number", "BTREE")
    lance_format.dataset(path).delete("id = 8")
    check().optimize.compact_files()
    check().restore()
    theirs = check()
    theirs.checkout_version(2).restore()
    check()
    lance_format.dataset(path).optimize.compact_files()
    check()


def test_verification(tmp_path: Path) -> None:
    dataset = _write(tmp_path)
    dataset.delete("id < 10")
    dataset.create_scalar_index("id", "ZONEMAP")
    report = dataset.verify()
    assert {finding.status for finding in report.findings} == {"intact"}
    assert report.size_bytes == report.verified_bytes
    assert Counter(finding.type for finding in report.findings) == {
        "manifest": dataset.version,
        "transaction file": dataset.version,
        "data file": 3,
        "deletion file": 1,
        "index file": 1,
    }
    lance.write_dataset(_table(10), str(tmp_path), mode="append")
    dataset = lance_format.dataset(tmp_path)
    report = dataset.verify()
    assert not report.problems
    assert Counter(finding.type for finding in report.findings if finding.status == "no checksums") == {
        "manifest": 1,
        "transaction file": 1,
        "data file": 1,
    }
    first, second, *_ = (file for file in _files(tmp_path, "data") if "sealed" in file.name)
    _flip(first, 300)
    _flip(first, 30_000)
    second.unlink()
    (index,) = _files(tmp_path, "_indices")
    _flip(index, 90)
    dataset = lance_format.dataset(tmp_path)
    report = dataset.verify()
    found = [(finding.path.rpartition("/")[2], finding.status) for finding in report.problems]
    assert sorted(found) == sorted(
        [(index.name, "damaged"), (first.name, "damaged"), (first.name, "damaged"), (second.name, "missing")]
    )
    assert all("rows 0 to " in x.detail for x in report.problems if x.path.endswith(first.name))
    assert report.to_table().num_rows == len(report.findings)
    assert dataset.verify(repair=True).rebuilt_indices == ("id_idx",)
    assert [len(index["fragment_ids"]) for index in dataset.list_indices()] == [2], "two fragments are damaged"


def _problems(dataset: LanceDataset) -> dict[str, str]:
    """Verify a table; return the status of each file with a problem, by its path."""
    return {finding.path: finding.status for finding in dataset.verify().problems}


def test_other_versions_are_verified(tmp_path: Path) -> None:
    """The latest version is intact, and needs none of the files."""
    dataset = _write(tmp_path)
    dataset.create_branch("side", 1)
    dataset.delete("id < 10")
    dataset.optimize.compact_files()
    dataset = lance_format.dataset(tmp_path)
    assert _problems(dataset) == {}
    assert _problems(dataset.checkout_version(("side", None))) == {}
    needed = {file.path for fragment in dataset.get_fragments() for file in fragment.data_files()}
    lost, *_ = (file for file in _files(tmp_path, "data") if file.name not in needed)
    content = lost.read_bytes()
    lost.unlink()
    (deletion,) = _files(tmp_path, "_deletions")
    deletion.unlink()
    assert _problems(dataset) == {f"data/{lost.name}": "missing", f"_deletions/{deletion.name}": "missing"}
    lost.write_bytes(content)
    manifest = next(path for path in _files(tmp_path, "_versions") if path.name == f"{2**64 - 1 - 1:020}.manifest")
    _flip(manifest, manifest.stat().st_size // 2)
    assert _problems(dataset)[f"_versions/{manifest.name}"] == "damaged"


def test_transaction_files_are_verified(tmp_path: Path) -> None:
    dataset = _write(tmp_path)
    (transaction,) = _files(tmp_path, "_transactions")
    content = transaction.read_bytes()
    _flip(transaction, 20)
    assert _problems(dataset) == {f"_transactions/{transaction.name}": "damaged"}
    transaction.write_bytes(content[:-11])  # It has lost its checksum with its last field.
    assert _problems(dataset) == {f"_transactions/{transaction.name}": "damaged"}
    transaction.unlink()
    assert _problems(dataset) == {}, "the manifest has a copy"


def test_orphans_are_listed_and_are_no_problems(tmp_path: Path) -> None:
    dataset = _write(tmp_path)
    dataset.create_branch("side")
    size = dataset.verify().size_bytes
    week = time.time() - 8 * 24 * 3600
    for place, age in (("data/old-sealed.lance", week), ("data/new.lance", time.time()), ("other/kept", week)):
        stray = tmp_path / place
        stray.parent.mkdir(exist_ok=True)
        stray.write_bytes(b"stray")
        os.utime(stray, (age, age))
    report = dataset.verify()
    found = [(x.path, x.type, x.status, x.size_bytes) for x in report.findings if x.status == "orphaned"]
    assert found == [("data/old-sealed.lance", "data file", "orphaned", 5)]
    assert not report.problems
    assert report.size_bytes == size
    dataset.cleanup_old_versions(retain_versions=1)
    assert not (tmp_path / "data/old-sealed.lance").exists()


def test_a_compaction_adds_checksums(tmp_path: Path) -> None:
    lance.write_dataset(_table(), str(tmp_path), max_rows_per_file=3000)
    dataset = lance_format.dataset(tmp_path)
    assert dataset.verify().verified_bytes == 0
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(retain_versions=1)
    report = dataset.verify()
    assert report.verified_bytes == report.size_bytes > 0


def _id_of_another_row(message: table_pb2.Manifest) -> None:
    message.fragments[1].inline_row_ids = message.fragments[0].inline_row_ids


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda message: message.fragments.reverse(), "fragment 2 .* is before fragment 1; their ids are not"),
        (lambda message: setattr(message, "max_fragment_id", 1), "fragment 2, and the highest id .* to be 1"),
        (_id_of_another_row, "row id 0 is that of row 0 of fragment 0 and row 0 of fragment 1"),
        (lambda message: setattr(message, "next_row_id", 8000), "fragment 2 .* has the row id 8999; the next is 8000"),
    ],
)
def test_fragments_that_contradict_each_other_are_found(
    tmp_path: Path, change: Callable[[table_pb2.Manifest], None], wrong: str
) -> None:
    """All files are intact; a writer has put contradictions into the manifest."""
    lance_format.write_dataset(_table(), tmp_path, max_rows_per_file=3000, enable_stable_row_ids=True)
    assert not lance_format.dataset(tmp_path).verify().problems
    (manifest,) = (tmp_path / "_versions").glob("*.manifest")
    manifest.write_bytes(changed_manifest(manifest.read_bytes(), change))
    problems = lance_format.dataset(tmp_path).verify().problems
    assert {problem.status for problem in problems} == {"inconsistent"}
    assert any(re.search(wrong, problem.detail) for problem in problems), problems
    with pytest.raises(lance_format.LanceError, match=wrong):
        lance_format.dataset(tmp_path).validate()


def test_moved_rows_keep_their_ids(tmp_path: Path) -> None:
    """A moved row has its id in two fragments, and a damaged deletion file is no second problem."""
    dataset = lance_format.write_dataset(_table(), tmp_path, max_rows_per_file=3000, enable_stable_row_ids=True)
    dataset.update({"name": "'moved'"}, where="id % 5 = 0")
    assert not lance_format.dataset(tmp_path).verify().problems
    deletion = _files(tmp_path, "_deletions")[0]
    _flip(deletion, 100)
    assert _problems(lance_format.dataset(tmp_path)) == {f"_deletions/{deletion.name}": "damaged"}
