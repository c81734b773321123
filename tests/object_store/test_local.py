import errno
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lance_format import CorruptFileError, InvalidInputError, NotSupportedError, StorageError
from lance_format.byte_io import ByteRange
from lance_format.object_store import ObjectStore, resolve, write_back
from lance_format.object_store.local import LocalStore
from lance_format.object_store.local_files import LocalWriter
from tests.object_store.behaviour import DirectoryStoreBehaviour


class TestLocalStore(DirectoryStoreBehaviour):
    @pytest.fixture
    def store(self) -> LocalStore:
        return LocalStore()

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return str(tmp_path)

    @pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
    def test_the_umask_is_honoured(self, store: ObjectStore, root: str, mask: int, mode: int) -> None:
        before = os.umask(mask)
        try:
            store.put(f"{root}/a", b"")
            store.put_if_absent(f"{root}/b", b"")
        finally:
            os.umask(before)
        for name in ("a", "b"):
            assert stat.S_IMODE(Path(root, name).stat().st_mode) == mode

    def test_a_symbolic_link_under_the_final_name_is_not_followed(self, store: ObjectStore, root: str) -> None:
        target = Path(root, "precious")
        target.write_bytes(b"old")
        Path(root, "link").symlink_to(target)
        store.put(f"{root}/link", b"new")
        assert target.read_bytes() == b"old"
        with pytest.raises(FileExistsError):
            store.put_if_absent(f"{root}/link", b"newer")

    def test_truncation_under_a_reader_is_an_error_not_a_crash(self, store: ObjectStore, root: str) -> None:
        store.put(f"{root}/a", bytes(10_000))
        reader = store.open_reader(f"{root}/a")
        os.truncate(f"{root}/a", 5000)
        with pytest.raises(CorruptFileError, match="shorter"):
            reader.read_ranges([ByteRange(4000, 2000)])
        reader.close()

    def test_little_and_much_data_stay_in_order(self, store: ObjectStore, root: str) -> None:
        parts = [
            bytes([number]) * size for number, size in enumerate((1, 70_000, 0, 40_000, 40_000, 3, 65_536, 65_535))
        ]
        writer = store.open_writer(f"{root}/a")
        for position, part in enumerate(parts):
            assert writer.position == sum(map(len, parts[:position]))
            writer.write(memoryview(part))
        writer.close()
        assert Path(root, "a").read_bytes() == b"".join(parts)

    def test_a_directory_is_no_object(self, store: ObjectStore, root: str) -> None:
        with pytest.raises(StorageError, match="directory"):
            store.read(root, 10)

    def test_a_pipe_is_no_object_and_does_not_block(self, store: ObjectStore, root: str) -> None:
        os.mkfifo(f"{root}/pipe")
        for read in (lambda: store.read(f"{root}/pipe", 10), lambda: store.open_reader(f"{root}/pipe")):
            with pytest.raises(StorageError, match="Not a regular file; it is a pipe"):
                read()
        with pytest.raises(StorageError, match="it is a pipe, a socket or a device"):
            store.read("/dev/null", 10)

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES])
    @pytest.mark.parametrize("call", ["write", "fsync", "link", "replace"])
    def test_failures_are_named_and_leave_nothing(
        self, store: ObjectStore, root: str, monkeypatch: pytest.MonkeyPatch, number: int, call: str
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, call, fail)
        with pytest.raises(StorageError, match=f"{root}/a.*{os.strerror(number)}"):
            (store.put_if_absent if call == "link" else store.put)(f"{root}/a", b"data")
        monkeypatch.undo()
        assert list(Path(root).iterdir()) == []

    @pytest.mark.parametrize("call", ["fsync", "link", "replace"])
    def test_interrupts_leave_nothing(
        self, store: ObjectStore, root: str, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, call, interrupt)
        with pytest.raises(KeyboardInterrupt):
            (store.put_if_absent if call == "link" else store.put)(f"{root}/a", b"data")
        monkeypatch.undo()
        assert list(Path(root).iterdir()) == []

    def test_what_need_not_last_is_not_synced(
        self, store: ObjectStore, root: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", synced.append)
        store.put(f"{root}/a", b"data", durable=False)
        assert (synced, store.read(f"{root}/a", 100)) == ([], b"data")
        store.put(f"{root}/a", b"other")
        assert (len(synced), store.read(f"{root}/a", 100)) == (2, b"other")

    def test_what_need_not_last_takes_a_free_name(
        self, store: ObjectStore, root: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        replace, found = os.replace, list[bool]()

        def watched(source: str, target: str) -> None:
            found.append(Path(target).exists())
            replace(source, target)

        monkeypatch.setattr(os, "replace", watched)
        for durable in (False, False, True):
            store.put(f"{root}/a", b"data", durable=durable)
        assert found == [False, False, True]

    @pytest.mark.parametrize("supported", [False, True])
    def test_large_files_are_written_to_disk_early(
        self, root: str, monkeypatch: pytest.MonkeyPatch, *, supported: bool
    ) -> None:
        begun: list[tuple[int, int]] = []

        def begin(_: int, offset: int, size_bytes: int, __: int) -> int:
            begun.append((offset, size_bytes))
            return -1  # An error, as of a file system that lacks the call.

        monkeypatch.setattr(write_back, "_call", begin if supported else None)
        parts = [b"a" * 1000, b"b" * 200_000, b"c" * 100_000, b"d" * 100_000]
        for name, durable in (("durable", True), ("other", False)):
            writer = LocalWriter(f"{root}/{name}", durable=durable)
            for part in parts:
                writer.write(part)
            writer.close()
            assert Path(root, name).read_bytes() == b"".join(parts)
        assert begun == ([(0, 200_704), (200_704, 98_304), (299_008, 98_304)] if supported else [])

    def test_short_writes_are_completed(self, store: ObjectStore, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
        write = os.write
        monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:3])))
        store.put(f"{root}/a", b"0123456789")
        assert store.read(f"{root}/a", 100) == b"0123456789"

    def test_a_name_with_a_null_character_is_refused(self, store: ObjectStore, root: str) -> None:
        with pytest.raises(StorageError):
            store.read(f"{root}/a\0b", 1)


_WRITABLE = """
import sys
from lance_format import StorageError
from lance_format.object_store.local import LocalStore
try:
    LocalStore().check_writable(sys.argv[1])
except StorageError as error:
    print(error)
"""


def test_a_file_system_that_is_read_only_is_not_a_matter_of_rights(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o ro none {tmp_path}"
    private = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*private, mount], check=False).returncode:
        pytest.skip("this machine allows no private mounts")
    program = f"{mount} && exec {sys.executable} -c '{_WRITABLE}' {tmp_path}/table"
    found = subprocess.run([*private, program], capture_output=True, text=True, check=True).stdout
    assert found.strip() == (
        f"cannot write in {tmp_path}/table: Read-only file system; the file system is read-only; choose another path"
    )


def test_paths_and_file_uris_mean_local_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    for uri, path in {
        "/a/b": "/a/b",
        "/a/b/": "/a/b",
        "/a//b/../c": "/a/c",
        "t": f"{tmp_path}/t",
        "./t.lance": f"{tmp_path}/t.lance",
        "~/t": "/home/someone/t",
        "~": "/home/someone",
        "./~/t": f"{tmp_path}/~/t",
        "~t": f"{tmp_path}/~t",
        "~root/t": f"{tmp_path}/~root/t",
        "file:///a/b": "/a/b",
        "file:/a/b": "/a/b",
        "FILE:///a/b%20c": "/a/b c",
        "file://localhost/a": "/a",
        "file:///a\n\tb ": "/a\n\tb ",
        "file:///a%0Ab;[c]": "/a\nb;[c]",
        "a:b": f"{tmp_path}/a:b",
    }.items():
        assert resolve(uri)[1] == path, uri
    assert resolve(tmp_path)[1] == str(tmp_path)


@pytest.mark.parametrize("uri", ["s3+ddb://b/t", "hdfs://n/t", "http://h/t"])
def test_other_storages_are_refused_by_name(uri: str) -> None:
    with pytest.raises(NotSupportedError, match=uri.split(":")[0].replace("+", r"\+") + "://.*local"):
        resolve(uri)


@pytest.mark.parametrize(
    "uri",
    [
        *("", "  ", None, 7, "file://elsewhere/t", "file://[/t", "file:///t?", "file:///t#"),
        *("file:///a%00b", "file:///a%FFb", "s3://b/a%00b", "s3://b/a%FFb"),
    ],
)
def test_what_is_no_path_is_refused(uri: object) -> None:
    with pytest.raises(InvalidInputError):
        resolve(uri)  # type: ignore[arg-type]


def test_a_tree_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_bytes(b"12345")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/directory").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "tree/dangling").symlink_to(tmp_path / "nothing")
    paths = {info.path for info in LocalStore().list_tree(str(tmp_path / "tree"))}
    assert paths == {str(tmp_path / "tree/directory"), str(tmp_path / "tree/dangling")}


def test_what_takes_the_place_of_an_object_that_is_deleted_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at its content and its deletion."""
    rename = os.rename

    def overtaken(source: str, target: str) -> None:
        Path(source).write_bytes(b"two")
        rename(source, target)

    store, path = LocalStore(), f"{tmp_path}/a"
    store.put(path, b"one")
    monkeypatch.setattr(os, "rename", overtaken)
    assert not store.delete_exact(path, b"one")
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert store.read(path, 3) == b"two"
