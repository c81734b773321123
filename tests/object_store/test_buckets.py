"""Several stores as one: reads go where a path says, and changes to the first only."""

from __future__ import annotations

import pytest

from lance_format.object_store import ObjectNotFoundError, ObjectStore, resolve, shares_readers, with_buckets
from tests.servers import ObjectServer, create_bucket


@pytest.fixture
def stores(s3_server: ObjectServer) -> tuple[ObjectStore, str, str]:
    create_bucket(s3_server.endpoint, "beside")
    own, root = resolve(s3_server.new_root(), s3_server.options)
    other = root.replace("s3://tables", "s3://beside")
    return with_buckets(own, root, [root, other], s3_server.options), root, other


def test_reads_go_where_a_path_says(stores: tuple[ObjectStore, str, str], s3_server: ObjectServer) -> None:
    both, root, other = stores
    both.put(f"{root}/a", b"own")
    resolve(other, s3_server.options)[0].put(f"{other}/a", b"other")
    assert [both.read(f"{place}/a", 10) for place in (root, other)] == [b"own", b"other"]
    assert [both.size(f"{place}/a") for place in (root, other)] == [3, 5]
    assert both.sizes([f"{other}/a", f"{root}/b", f"{root}/a", f"{other}/b"]) == [5, None, 3, None]
    for place in (root, other):
        assert both.list_names(place) == [*both.list_first(place).names] == ["a"]
        assert [info.path for info in both.list_objects(place)] == [info.path for info in both.list_tree(place)]
        assert both.list_directories(place) == []
        reader = both.open_reader(f"{place}/a")
        assert reader.size_bytes in (3, 5)
        reader.close()


def test_changes_go_to_the_first_only(stores: tuple[ObjectStore, str, str]) -> None:
    both, root, other = stores
    both.put_if_absent(f"{root}/a", b"own")
    assert both.delete_exact(f"{root}/a", b"own")
    with pytest.raises(OSError, match=r"s3://beside.* is not in s3://tables"):
        both.put(f"{other}/a", b"other")
    with pytest.raises(ObjectNotFoundError):
        both.read(f"{other}/a", 10)


def test_stores_without_other_buckets(s3_server: ObjectServer) -> None:
    own, root = resolve(s3_server.root, s3_server.options)
    assert with_buckets(own, root, [f"{root}/x"], s3_server.options) is own
    local, path = resolve("/data", None)
    assert with_buckets(local, path, ["/elsewhere", "s3://bucket/x"], None) is local
    assert shares_readers("/a", "/b")
    assert shares_readers("s3://a/b", "gs://c/d")
    assert not shares_readers("/a", "s3://a/b")
