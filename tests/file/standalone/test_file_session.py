"""Files below one directory: the session of pylance and ours do the same to two directories."""

from pathlib import Path
from typing import Any

import lance.file
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, StorageError
from lance_format.file import LanceFileSession


def fill(session: Any, local: Path) -> None:
    with session.open_writer("a/foo.lance") as writer:
        writer.write_batch(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}))
    with session.open_writer("bar.lance", schema=pa.schema({"a": pa.int64()}), version="2.1") as writer:
        writer.write_batch(pa.table({"a": [4]}))
    local.write_bytes(b"0123456789")
    session.upload_file(local, "a/b/digits.bin")
    session.upload_file(str(local), "a/b/digits.bin")


def test_the_same_as_pylance(tmp_path: Path) -> None:
    sessions: list[Any] = []
    for library in (lance.file.LanceFileSession, LanceFileSession):
        base = tmp_path / library.__module__
        base.mkdir()
        sessions.append(library(base))
        fill(sessions[-1], tmp_path / "local")
    theirs, ours = sessions
    for path in (None, "a", "a/", "a/b", "b", "nothing"):
        assert ours.list(path) == sorted(theirs.list(path))
        mine, other = ours.list_with_delimiter(path), theirs.list_with_delimiter(path)
        assert (mine.common_prefixes, mine.objects) == (sorted(other.common_prefixes), sorted(other.objects))
    for path in ("bar.lance", "a", "a/b/digits.bin", "a/digits.bin", "nothing/at/all"):
        assert ours.contains(path) == theirs.contains(path)
    for offset, length in ((0, 10), (2, 3), (3, 0)):
        assert ours.read_range("a/b/digits.bin", offset, length) == theirs.read_range("a/b/digits.bin", offset, length)
    for reader, other in ((ours, theirs), (lance.file.LanceFileSession(tmp_path / LanceFileSession.__module__), ours)):
        for arguments in (("a/foo.lance",), ("a/foo.lance", ["b"]), ("bar.lance",)):
            assert (
                reader.open_reader(*arguments).read_all().to_table()
                == other.open_reader(*arguments).read_all().to_table()
            )
    for session in sessions:
        session.download_file("a/b/digits.bin", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b"0123456789"
        with pytest.raises(OSError):
            session.download_file("nothing", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == b"0123456789"
        session.delete_file("a/b/digits.bin")
        with pytest.raises(OSError):
            session.delete_file("a/b/digits.bin")
        with pytest.raises(OSError):
            session.read_range("a/b/digits.bin", 0, 1)
        with pytest.raises(OSError):
            session.upload_file(tmp_path / "none", "none")
    assert ours.list() == sorted(theirs.list()) == ["a/foo.lance", "bar.lance"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["back", "local"]


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../local", "a/../../local", "a//b", "./a"])
def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    (tmp_path / "local").write_bytes(b"secret")
    (tmp_path / "base").mkdir()
    session = LanceFileSession(tmp_path / "base")
    for attempt in (
        session.open_reader,
        session.open_writer,
        session.contains,
        session.delete_file,
        lambda path: session.read_range(path, 0, 1),
        lambda path: session.upload_file(tmp_path / "local", path),
        lambda path: session.download_file(path, tmp_path / "back"),
    ):
        with pytest.raises(InvalidInputError, match="no path below"):
            attempt(path)
    if path:
        with pytest.raises(InvalidInputError, match="no path below"):
            session.list(path)
    assert (tmp_path / "local").read_bytes() == b"secret"


@pytest.mark.parametrize("place", ["local/back", "none/back", "a" * 300])
def test_a_local_path_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    session = LanceFileSession(tmp_path)
    fill(session, tmp_path / "local")
    with pytest.raises(StorageError, match=r"cannot write the local file .*; check its directory"):
        session.download_file("a/b/digits.bin", tmp_path / place)


def test_ranges_that_are_not_there(tmp_path: Path) -> None:
    session = LanceFileSession(tmp_path)
    fill(session, tmp_path / "local")
    for offset, length in ((8, 5), (-1, 1), (0, -1)):
        with pytest.raises(InvalidInputError, match="not within"):
            session.read_range("local", offset, length)
    with pytest.raises(StorageError):
        session.open_reader("nothing.lance")


def test_of_a_table_and_in_memory(tmp_path: Path) -> None:
    for path in (str(tmp_path / "t"), "memory://test_file_session/t"):
        table = lance_format.write_dataset({"a": [1, 2]}, path)
        session = table.new_file_session()
        (file,) = table.get_fragment(0).data_files()  # type: ignore[union-attr]
        assert session.open_reader(file.relative_path).read_all().to_table() == table.to_table()
        assert session.contains(file.relative_path)
        assert file.relative_path in session.list("data")
    lance_format.LanceDataset.drop("memory://test_file_session/t")
