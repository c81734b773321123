"""The store of the clouds, on servers of this machine."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lance_format import CorruptFileError, StorageError
from lance_format.byte_io import ByteRange, stream_ranges
from lance_format.object_store import ObjectNotFoundError, ObjectStore, resolve
from lance_format.object_store.cloud_places import parse_place
from lance_format.object_store.cloud_store import _PART_BYTES, CloudStore
from tests.object_store.behaviour import ObjectStoreBehaviour
from tests.servers import ObjectServer


class CloudStoreBehaviour(ObjectStoreBehaviour):
    """Further behaviour of every cloud, with a fixture `server`."""

    @pytest.fixture
    def store(self, server: ObjectServer) -> ObjectStore:
        return resolve(server.root, server.options)[0]

    @pytest.fixture
    def root(self, server: ObjectServer) -> str:
        return server.new_root()

    def test_what_a_listing_names_is_read_once(self, store: ObjectStore, root: str, server: ObjectServer) -> None:
        other = CloudStore(parse_place(server.root.partition(":")[0], server.root), server.options)
        store.put_if_absent(f"{root}/a", b"one")
        tag = store.list_first(root).tags["a"]
        other.delete(f"{root}/a")
        assert store.read(f"{root}/a", 3, tag) == b"one"
        with pytest.raises(ObjectNotFoundError):
            store.read(f"{root}/a", 3)
        other.put(f"{root}/a", b"two")
        changed = store.list_first(root).tags["a"]
        for _ in range(2):
            assert store.read(f"{root}/a", 3, changed) == b"two"
        with pytest.raises(CorruptFileError, match="at most 2 are expected"):
            store.read(f"{root}/a", 2, changed)

    def test_a_large_object_is_written_in_parts_and_read_in_parts(self, store: ObjectStore, root: str) -> None:
        piece = bytes(range(256)) * 4096
        writer = store.open_writer(f"{root}/a")
        for _ in range(2 * _PART_BYTES // len(piece) + 3):
            writer.write(piece)
        assert store.list_names(root) == []
        writer.close()
        reader = store.open_reader(f"{root}/a")
        assert reader.size_bytes == writer.position > 2 * _PART_BYTES
        everything = reader.read_ranges([ByteRange(0, reader.size_bytes)])[0]
        assert everything == piece * (writer.position // len(piece))
        for wrong_bytes in (writer.position - 1, writer.position + 7):
            with pytest.raises(CorruptFileError, match=f"has {writer.position} bytes instead of {wrong_bytes}"):
                store.open_reader(f"{root}/a", wrong_bytes).read_ranges([ByteRange(wrong_bytes - 2**20, 2**20)])
        assert store.open_reader(f"{root}/a", writer.position).read_ranges([ByteRange(7, 2), ByteRange(0, 1)]) == [
            bytes([7, 8]),
            bytes([0]),
        ]

    def test_large_ranges_are_received_into_memory_of_arrow(self, store: ObjectStore, root: str) -> None:
        """The C library would keep memory for each thread that receives one."""
        store.put(f"{root}/a", bytes(3 * 2**20))
        ranges = [ByteRange(0, 2**20), ByteRange(2**20, 2 * 2**20)]
        allocated = pa.total_allocated_bytes()
        found = list(stream_ranges(store.open_reader(f"{root}/a", 3 * 2**20), ranges))
        assert [len(data) for data in found] == [wanted.size for wanted in ranges]
        assert pa.total_allocated_bytes() - allocated >= 3 * 2**20

    def test_an_aborted_upload_leaves_nothing(self, store: ObjectStore, root: str) -> None:
        writer = store.open_writer(f"{root}/a")
        for _ in range(3):
            writer.write(bytes(_PART_BYTES))
        writer.abort()
        writer.abort()
        assert list(store.list_tree(root)) == []
        with pytest.raises(StorageError):
            store.read(f"{root}/a", 1 << 30)


class TestS3(CloudStoreBehaviour):
    @pytest.fixture
    def server(self, s3_server: ObjectServer) -> ObjectServer:
        return s3_server

    @pytest.mark.slow
    def test_listings_have_all_pages(self, store: ObjectStore, root: str) -> None:
        names = sorted(f"{number:04}" for number in range(1010))
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda name: store.put(f"{root}/a/{name}", b""), names))
        assert sorted(store.list_names(f"{root}/a")) == names
        assert sorted(info.path[-4:] for info in store.list_tree(root)) == names
        first = store.list_first(f"{root}/a")
        assert sorted(first.names) == names[: len(first.names)]
        assert first.is_complete == (len(first.names) == len(names))
        assert store.delete_all([f"{root}/a/{name}" for name in names]) == []
        assert store.list_names(f"{root}/a") == []


class TestAzure(CloudStoreBehaviour):
    @pytest.fixture
    def server(self, azure_server: ObjectServer) -> ObjectServer:
        return azure_server


class TestGoogle(CloudStoreBehaviour):
    @pytest.fixture
    def server(self, gcs_server: ObjectServer) -> ObjectServer:
        return gcs_server
