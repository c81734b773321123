"""Cleanup: ours leaves of one copy of a table the same files that pylance leaves of another."""

import dataclasses
import datetime
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError
from lance_format.object_store import resolve
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.history import load_detached
from lance_format.table.versions.named_files import named_files
from tests.interop.test_table_pylance import assert_same

AT_ONCE = datetime.timedelta(0)
STATS = [
    "bytes_removed",
    "old_versions",
    "data_files_removed",
    "transaction_files_removed",
    "index_files_removed",
    "deletion_files_removed",
    "failed_deletes",
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of all kinds of files; versions 1 to 12."""
    path = tmp_path_factory.mktemp("cleanup") / "t"
    uri = str(path)
    table = lance.write_dataset(pa.table({"a": range(10)}), uri, max_rows_per_file=4)
    table.create_scalar_index("a", "BTREE")
    table.insert(pa.table({"a": range(10, 14)}))
    table.delete("a % 5 = 1")
    table.update({"a": "a + 100"}, where="a < 3")
    lance_format.dataset(path).delete("a = 8")
    table = lance.dataset(uri)
    table.optimize.compact_files()
    table.create_scalar_index("a", "BTREE", replace=True)
    table.add_columns({"b": "a * 2"})
    lance_format.write_dataset({"a": [1], "b": [2]}, path, mode="append")
    lance_format.write_dataset({"a": [3], "b": [4]}, path, mode="overwrite")
    lance.dataset(uri).delete("a = 77")
    detached = lance.fragment.write_fragments(pa.table({"a": [9], "b": [9]}), lance.dataset(uri))
    lance.LanceDataset.commit(
        uri, lance.LanceOperation.Append(detached), read_version=lance.dataset(uri).version, detached=True
    )
    lance.fragment.write_fragments(pa.table({"a": [9], "b": [9]}), lance.dataset(uri))  # Never committed.
    return path


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def tag_and_branch(path: Path) -> None:
    table = lance.dataset(str(path))
    table.tags.create("t", 4)
    table.create_branch("b", 6)
    branch = lance.dataset(str(path)).checkout_version(("b", None))
    branch.delete("a = 5")


CLEANUPS: dict[str, Callable[[Any], Any]] = {
    "all": lambda table: table.cleanup_old_versions(AT_ONCE),
    "by count": lambda table: table.cleanup_old_versions(retain_versions=4),
    "young": lambda table: table.cleanup_old_versions(datetime.timedelta(hours=1), 2),
    "default": lambda table: table.cleanup_old_versions(),
    "some": lambda table: table.cleanup_old_versions(versions=[2, 3, 7, 11, 99]),
    "from before": lambda table: table.checkout_version(6).cleanup_old_versions(AT_ONCE),
}


@pytest.mark.parametrize("named", [False, True], ids=["plain", "tag and branch"])
@pytest.mark.parametrize("name", CLEANUPS)
def test_the_same_goes(original: Path, tmp_path: Path, name: str, named: bool) -> None:
    path, backup = tmp_path / "t", tmp_path / "backup"
    shutil.copytree(original, path)
    if named:
        tag_and_branch(path)
    shutil.copytree(path, backup)
    if named and name in ("all", "by count"):
        with pytest.raises(InvalidInputError, match=r"'t' \(4\)"):
            CLEANUPS[name](lance_format.dataset(path))
        assert files(path) == files(backup)
    outcomes = []
    for library in (lance, lance_format):
        shutil.rmtree(path)
        shutil.copytree(backup, path)  # To the same place, where branches look for the files of the main one.
        stats = CLEANUPS[name](_With(library.dataset(str(path))))
        outcomes.append((files(path), {key: getattr(stats, key) for key in STATS}))
    (theirs, their_stats), (ours, our_stats) = outcomes
    kept = ours - theirs  # pylance takes the transaction of the version that a branch starts from.
    assert len(kept) == (1 if named and name in ("all", "by count") else 0)
    for file in kept:
        assert file.startswith("_transactions/5-")
        our_stats["transaction_files_removed"] += 1
        our_stats["bytes_removed"] += (path / file).stat().st_size
        ours = ours - kept
    assert (ours, our_stats) == (theirs, their_stats)
    assert dataclasses.asdict(stats).keys() == set(STATS)
    assert_same(path)
    if named:
        assert_same(path / "tree/b")
        assert lance_format.dataset(path, "t").to_table() == lance.dataset(str(path), "t").to_table()


class _With:
    """A table whose cleanup keeps tagged versions."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def checkout_version(self, version: int) -> "_With":
        return _With(self.table.checkout_version(version))

    def cleanup_old_versions(self, *args: Any, **options: Any) -> Any:
        return self.table.cleanup_old_versions(*args, **options, error_if_tagged_old_versions=False)


def test_unverified_files(original: Path, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    extra = ["data/x.txt", "_versions/7.manifest#1", "data/y/z.lance", "other/a.lance", "_indices/stray", "a.lance"]
    shutil.copytree(original, ours)
    for name in extra:
        (ours / name).parent.mkdir(exist_ok=True)
        (ours / name).write_bytes(b"x")
    for name in ("_versions/.tmp_1", "data/10.lance", "_transactions/1-x.txn", "_deletions/1-1-1.bin", "_indices/u/f"):
        (ours / name).parent.mkdir(exist_ok=True)
        (ours / name).write_bytes(b"x")
    shutil.copytree(ours, theirs)
    for path, library in ((ours, lance_format), (theirs, lance)):
        library.dataset(str(path)).cleanup_old_versions(retain_versions=100)
    assert files(ours) == files(theirs)
    assert (ours / "data/10.lance").exists()
    week_ago = time.time() - 7 * 24 * 3600 - 60
    for path in (ours, theirs):
        for file in path.rglob("*"):
            os.utime(file, (week_ago, week_ago))
    kept_by_us = {"_indices/stray", "data/y/z.lance"}  # Neither library gives such names.
    kept_by_us |= detached_files(ours)
    for path, library in ((ours, lance_format), (theirs, lance)):
        library.dataset(str(path)).cleanup_old_versions(retain_versions=100)
    assert files(ours) == files(theirs) | kept_by_us
    assert not (ours / "data/10.lance").exists()
    assert not (ours / "_indices/u").exists()
    assert all((ours / name).exists() for name in extra)
    assert_same(ours)


def detached_files(path: Path) -> set[str]:
    """Return the files of the detached version, which pylance deletes once they are old."""
    store, root = resolve(path)
    ((_, manifest),) = load_detached(TableDirectory(store, root), frozenset())
    return {name.removeprefix(f"{root}/") for name in named_files(manifest, TableDirectory(store, root))}


def test_pylance_spares_our_branches(tmp_path: Path) -> None:
    uri = str(tmp_path)
    for number in range(4):
        lance.write_dataset(pa.table({"a": [number]}), uri, mode="overwrite")
    table = lance_format.dataset(uri)
    branch = table.create_branch("b", 2)
    branch.create_branch("b/c")
    table.tags.create("t", 3)
    stats = lance.dataset(uri).cleanup_old_versions(AT_ONCE, error_if_tagged_old_versions=False)
    assert stats.old_versions == 1
    for name in ("b", "b/c"):
        assert lance.dataset(uri).checkout_version((name, None)).to_table()["a"].to_pylist() == [1]
        assert_same(tmp_path / "tree" / name)
    assert lance.dataset(uri, "t").to_table()["a"].to_pylist() == [2]


def test_blobs_beside_their_data_files(tmp_path: Path) -> None:
    """A sidecar is deleted with its data file, and a branch finds those of its parent."""
    uri = str(tmp_path)
    schema = pa.schema([lance.blob_field("b"), pa.field("a", pa.int64())])
    for number in range(2):
        values = lance.blob_array([bytes([number]) * 5_000_000])
        table = pa.table([values, pa.array([number])], schema=schema)
        lance.write_dataset(table, uri, mode="overwrite", data_storage_version="2.2")
    assert len(list(tmp_path.glob("data/*/*.blob"))) == 2
    branch = lance_format.dataset(uri).create_branch("b", 1)
    for kept, version in ((2, 1), (1, 2)):
        lance_format.dataset(uri).cleanup_old_versions(AT_ONCE)
        assert len(list(tmp_path.glob("data/*/*.blob"))) == kept
        opened = branch if version == 1 else lance_format.dataset(uri)
        (blob,) = opened.take_blobs("b", indices=[0])
        assert blob.read() == bytes([version - 1]) * 5_000_000
        if version == 1:
            lance_format.dataset(uri).branches.delete("b")
    assert len(list((tmp_path / "data").iterdir())) == 2


@pytest.mark.parametrize(
    "config",
    [
        {"interval": "+1", "older_than": "0s"},
        {"interval": "01", "older_than": " 0s 0ms "},
        {"interval": "1", "older_than": "0"},
        {"interval": " 1", "older_than": "0s"},
        {"interval": "-1", "older_than": "0s"},
        {"interval": "1.0", "older_than": "0s"},
        {"interval": "1_0", "retain_versions": "1"},
        {"interval": "1", "older_than": "0S"},
        {"interval": "1", "retain_versions": "+2"},
        {"interval": "1", "retain_versions": " 2"},
        {"interval": "1", "retain_versions": "2.0", "older_than": "0s"},
        {"interval": "99999999999999999999", "older_than": "0s"},
    ],
    ids=str,
)
def test_automatic_cleanups_are_configured_alike(config: dict[str, str], tmp_path: Path) -> None:
    """A value that pylance takes for nothing must not delete a version."""
    left = []
    for module in (lance_format, lance):
        path = str(tmp_path / module.__name__)
        data = pa.table({"a": [1]})
        for _ in range(4):
            lance.write_dataset(data, path, mode="append")
        lance.dataset(path).update_config({f"lance.auto_cleanup.{key}": value for key, value in config.items()})
        for _ in range(3):
            module.write_dataset(data, path, mode="append")
        left.append([version["version"] for version in lance.dataset(path).versions()])
    assert left[0] == left[1]
