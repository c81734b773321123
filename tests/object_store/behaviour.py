"""The behaviour of every object store. Subclass it with fixtures `store` and `root`, an empty place in the store."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lance_format import CorruptFileError, StorageError
from lance_format.byte_io import ByteRange
from lance_format.object_store import ObjectExistsError, ObjectNotFoundError, ObjectStore
from lance_format.object_store.local import LocalStore


class ObjectStoreBehaviour:
    def test_what_is_put_can_be_read_and_replaced(self, store: ObjectStore, root: str) -> None:
        store.put(f"{root}/a/b", b"one")
        assert store.read(f"{root}/a/b", 100) == b"one"
        store.put(f"{root}/a/b", b"")
        assert store.read(f"{root}/a/b", 100) == b""

    def test_absence_has_its_own_error(self, store: ObjectStore, root: str) -> None:
        for look in (
            lambda: store.read(f"{root}/x", 1),
            lambda: store.size(f"{root}/x"),
            lambda: store.open_reader(f"{root}/x"),
            lambda: store.open_reader(f"{root}/x", 3).read_ranges([ByteRange(0, 1)]),
        ):
            with pytest.raises(ObjectNotFoundError, match=f"{root}/x"):
                look()

    def test_read_is_bounded(self, store: ObjectStore, root: str) -> None:
        store.put(f"{root}/a", b"12345")
        with pytest.raises(CorruptFileError, match="5 bytes"):
            store.read(f"{root}/a", 4)

    def test_put_if_absent_never_replaces(self, store: ObjectStore, root: str) -> None:
        store.put_if_absent(f"{root}/a/b", b"one")
        with pytest.raises(ObjectExistsError):
            store.put_if_absent(f"{root}/a/b", b"two")
        assert store.read(f"{root}/a/b", 100) == b"one"
        assert store.list_names(f"{root}/a") == ["b"]

    def test_put_if_absent_has_one_winner(self, store: ObjectStore, root: str) -> None:
        if not store.atomic_put_if_absent:
            pytest.skip("the store does not promise it")
        for turn in range(10):
            barrier = threading.Barrier(8)

            def attempt(number: int, path: str = f"{root}/{turn}", barrier: threading.Barrier = barrier) -> bool:
                barrier.wait()
                try:
                    store.put_if_absent(path, b"%d" % number * 1000)
                except ObjectExistsError:
                    return False
                return True

            with ThreadPoolExecutor(8) as pool:
                won = list(pool.map(attempt, range(8)))
            assert won.count(True) == 1
            assert store.read(f"{root}/{turn}", 10_000) == b"%d" % won.index(True) * 1000

    def test_a_tree_is_listed_with_all_that_is_below(self, store: ObjectStore, root: str) -> None:
        for name, content in (("t/a", b"1"), ("t/b/c", b"22"), ("t/b/d/e", b""), ("u/f", b"333"), ("t2/g", b"4444")):
            store.put(f"{root}/{name}", content)
        found = {info.path: info.size_bytes for info in store.list_tree(f"{root}/t")}
        assert found == {f"{root}/t/a": 1, f"{root}/t/b/c": 2, f"{root}/t/b/d/e": 0}
        assert list(store.list_tree(f"{root}/absent")) == []
        for info in store.list_tree(root):  # A concurrent deletion is no error.
            store.delete(info.path)
        assert list(store.list_tree(root)) == []

    def test_directories_are_listed(self, store: ObjectStore, root: str) -> None:
        for name in ("t/a", "t/b/c", "t/b/d/e", "u/f", "t2/g", "h"):
            store.put(f"{root}/{name}", b"1")
        assert sorted(store.list_directories(root)) == ["t", "t2", "u"]
        assert store.list_directories(f"{root}/t") == ["b"]
        assert store.list_directories(f"{root}/u") == store.list_directories(f"{root}/absent") == []

    def test_a_writer_shows_the_object_when_it_is_closed(self, store: ObjectStore, root: str) -> None:
        writer = store.open_writer(f"{root}/d/file")
        writer.write(b"abc")
        writer.write(memoryview(b"defg")[1:])
        assert writer.position == 6
        with pytest.raises(ObjectNotFoundError):
            store.size(f"{root}/d/file")
        writer.close()
        writer.close()
        writer.abort()
        assert store.read(f"{root}/d/file", 10) == b"abcefg"
        assert store.list_names(f"{root}/d") == ["file"]

    def test_an_aborted_writer_leaves_nothing(self, store: ObjectStore, root: str) -> None:
        writer = store.open_writer(f"{root}/d/file")
        writer.write(b"abc")
        writer.abort()
        writer.abort()
        assert store.list_objects(f"{root}/d") == []

    def test_a_reader_reads_ranges_and_no_further(self, store: ObjectStore, root: str) -> None:
        store.put(f"{root}/a", bytes(range(100)))
        reader = store.open_reader(f"{root}/a", 100)
        assert reader.size_bytes == 100
        wanted = [ByteRange(90, 10), ByteRange(0, 3), ByteRange(50, 0), ByteRange(1, 3)]
        assert reader.read_ranges(wanted) == [bytes(range(90, 100)), b"\0\1\2", b"", b"\1\2\3"]
        for beyond in (ByteRange(99, 2), ByteRange(-1, 1), ByteRange(2**62, 1), ByteRange(0, -1)):
            with pytest.raises(CorruptFileError):
                reader.read_ranges([beyond])
        reader.close()
        reader.close()

    def test_an_empty_object_is_opened(self, store: ObjectStore, root: str) -> None:
        store.put(f"{root}/a", b"")
        reader = store.open_reader(f"{root}/a")
        assert reader.size_bytes == 0
        assert reader.read_ranges([ByteRange(0, 0)]) == [b""]
        with pytest.raises(CorruptFileError):
            reader.read_ranges([ByteRange(0, 1)])
        reader.close()

    def test_a_known_size_is_checked(self, store: ObjectStore, root: str) -> None:
        store.put(f"{root}/a", b"123")
        store.open_reader(f"{root}/a", 3).close()
        for wrong in (2, 4, 400):
            with pytest.raises(CorruptFileError, match=f"3 bytes instead of {wrong}"):
                store.open_reader(f"{root}/a", wrong).read_ranges([ByteRange(wrong - 2, 2)])

    def test_listing_is_flat_and_sorted(self, store: ObjectStore, root: str) -> None:
        assert store.list_objects(f"{root}/none") == []
        assert store.list_names(f"{root}/none") == []
        for name in ("b", "a", "deeper/c"):
            store.put(f"{root}/{name}", b"xyz")
        found = store.list_objects(root)
        assert [(info.path, info.size_bytes) for info in found] == [(f"{root}/a", 3), (f"{root}/b", 3)]
        assert all(info.modified > 1_500_000_000 for info in found)
        assert sorted(store.list_names(root)) == ["a", "b"]

    def test_deleting_twice_is_harmless(self, store: ObjectStore, root: str) -> None:
        store.put(f"{root}/a", b"")
        store.delete(f"{root}/a")
        store.delete(f"{root}/a")
        assert store.list_names(root) == []

    def test_only_the_exact_content_is_deleted(self, store: ObjectStore, root: str) -> None:
        store.put(f"{root}/a", b"one")
        for other in (b"", b"two", b"one more"):
            assert not store.delete_exact(f"{root}/a", other)
        assert store.read(f"{root}/a", 3) == b"one"
        assert store.delete_exact(f"{root}/a", b"one")
        assert not store.delete_exact(f"{root}/a", b"one")
        assert store.list_names(root) == []

    def test_looking_whether_a_place_is_writable_writes_nothing(self, store: ObjectStore, root: str) -> None:
        store.check_writable(f"{root}/new/table")
        assert store.list_names(f"{root}/new") == []
        assert list(store.list_tree(root)) == []

    def test_the_first_names_are_the_lowest(self, store: ObjectStore, root: str) -> None:
        names = [f"{number:05}" for number in range(30)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: store.put(f"{root}/a/{name}", b""), names))
        first = store.list_first(f"{root}/a")
        assert sorted(first.names) == names
        assert first.is_complete
        assert list(store.list_first(f"{root}/b").names) == []

    def test_many_objects_are_deleted_at_once(self, store: ObjectStore, root: str) -> None:
        paths = [f"{root}/a/{number}" for number in range(10)]
        for path in [*paths, f"{root}/b"]:
            store.put(path, b"")
        assert store.delete_all([*paths, f"{root}/absent"]) == []
        assert store.delete_all([]) == []
        assert [info.path for info in store.list_tree(root)] == [f"{root}/b"]

    def test_names_may_have_any_character(self, store: ObjectStore, root: str) -> None:
        for name in ("a b", "a%2Fb.json", "ü#?&+x", "100%"):
            store.put_if_absent(f"{root}/n/{name}", name.encode())
            assert store.read(f"{root}/n/{name}", 100) == name.encode()
            assert store.list_names(f"{root}/n") == [name]
            store.delete(f"{root}/n/{name}")


class DirectoryStoreBehaviour(ObjectStoreBehaviour):
    """Further behaviour of stores with directories."""

    def test_a_place_that_is_looked_at_stays_absent(self, store: LocalStore, root: str) -> None:
        store.check_writable(f"{root}/new/table")
        assert store.absent_directories(f"{root}/new/table") == (f"{root}/new/table", f"{root}/new")

    def test_directories_go_only_when_empty(self, store: LocalStore, root: str) -> None:
        absent = store.absent_directories(f"{root}/x/y")
        store.put(f"{root}/x/y/a", b"1")
        store.remove_if_empty(absent)
        assert store.size(f"{root}/x/y/a") == 1
        store.delete(f"{root}/x/y/a")
        store.remove_if_empty(absent)
        assert store.absent_directories(f"{root}/x/y") == absent

    def test_directories_are_made_renamed_and_removed(self, store: LocalStore, root: str) -> None:
        store.make_directory(f"{root}/x/y")
        store.make_directory(f"{root}/x/y")
        assert store.list_directories(f"{root}/x") == ["y"]
        store.put(f"{root}/x/y/a", b"1")
        store.rename_directory(f"{root}/x/y", f"{root}/x/z")
        assert store.read(f"{root}/x/z/a", 1) == b"1"
        with pytest.raises(StorageError, match=f"{root}/x"):
            store.remove_directory(f"{root}/x")
        with pytest.raises(StorageError, match=f"{root}/x/z"):
            store.rename_directory(f"{root}/x/z", f"{root}/x/z/a")
        store.delete(f"{root}/x/z/a")
        store.remove_directory(f"{root}/x/z")
        assert store.list_directories(f"{root}/x") == []
        assert not store.is_link(f"{root}/x")

    def test_a_path_below_an_object_is_an_error_that_names_it(self, store: LocalStore, root: str) -> None:
        store.put(f"{root}/a", b"")
        for touch in (
            lambda: store.put(f"{root}/a/b", b""),
            lambda: store.check_writable(f"{root}/a/b"),
            lambda: store.list_names(f"{root}/a/b"),
        ):
            with pytest.raises(StorageError, match=f"{root}/a"):
                touch()
