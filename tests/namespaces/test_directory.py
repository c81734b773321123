"""Namespaces of tables, in directories and in object stores, and what pylance lists there."""

from __future__ import annotations

from pathlib import Path

import lance
import lance.namespace
import lance_namespace
import pytest

import lance_format
from lance_format import InvalidInputError, NamespaceDirectory, NotSupportedError, StorageError
from lance_format.namespaces.contents import NamespaceListing
from lance_format.object_store import resolve
from tests.servers import ObjectServer

Place = tuple[str, dict[str, str]]


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a root that does not exist, and the options of its storage."""
    if request.param == "local":
        return str(tmp_path / "root"), {}
    server: ObjectServer = request.getfixturevalue("s3_server")
    return server.new_root(), dict(server.options)


def write(place: Place, name: str) -> str:
    uri = f"{place[0]}/{name}.lance"
    lance_format.write_dataset({"id": [1, 2]}, uri, storage_options=place[1])
    return uri


def pylance_tables(place: Place, **properties: str) -> list[str]:
    storage = {f"storage.{name}": value for name, value in place[1].items()}
    listing = lance.namespace.DirectoryNamespace(root=place[0], **properties, **storage)
    return sorted(listing.list_tables(lance_namespace.ListTablesRequest(id=[])).tables)


@pytest.mark.slow
def test_a_namespace_without_tables(place: Place) -> None:
    root, options = place
    namespace = NamespaceDirectory(f"{root}/ns", options)
    assert namespace.listing() is None
    namespace.create()
    namespace.create()
    assert namespace.listing() == NamespaceListing((), ())
    assert NamespaceDirectory(root, options).listing() == NamespaceListing(("ns",), ())
    assert namespace.remove()
    assert namespace.listing() is None


def test_tables_and_namespaces(place: Place) -> None:
    root, options = place
    for name in ("b", "a", "ns/c", "_others/d", "x$y/e"):
        write(place, name)
    assert NamespaceDirectory(root, options).listing() == NamespaceListing(("ns",), ("a", "b"))
    assert pylance_tables(place, manifest_enabled="false") == ["a", "b"]
    assert pylance_tables((f"{root}/ns", options), manifest_enabled="false") == ["c"]


def test_tables_of_pylance(place: Place) -> None:
    root, options = place
    rows = lance_format.dataset(write(place, "ours"), storage_options=options).to_table()
    lance.write_dataset(rows, f"{root}/theirs.lance", storage_options=options)
    assert NamespaceDirectory(root, options).listing() == NamespaceListing((), ("ours", "theirs"))


def test_a_dropped_table_is_not_listed(place: Place) -> None:
    uri, options = write(place, "t"), place[1]
    assert not NamespaceDirectory.is_dropped(uri, options)
    NamespaceDirectory.mark_dropped(uri, options)
    assert NamespaceDirectory.is_dropped(uri, options)
    assert NamespaceDirectory(*place).listing() == NamespaceListing((), ())
    assert pylance_tables(place, manifest_enabled="false") == []
    assert lance_format.dataset(uri, storage_options=options).count_rows() == 2


def test_removal(place: Place) -> None:
    root, options = place
    namespace = NamespaceDirectory(f"{root}/ns", options)
    namespace.create()
    write(place, "ns/t")
    NamespaceDirectory(f"{root}/ns/inner", options).create()
    write(place, "ns/inner/u")
    assert not namespace.remove()
    store, path = resolve(f"{root}/ns", options)
    store.put(f"{path}/zz.txt", b"mine")
    with pytest.raises(InvalidInputError, match=r"zz\.txt is neither a table nor a namespace"):
        namespace.remove(cascade=True)
    assert store.read(f"{path}/zz.txt", 10) == b"mine"
    store.delete(f"{path}/zz.txt")
    assert namespace.remove(cascade=True)
    assert namespace.listing() is None
    assert not list(store.list_tree(path))


def test_renaming(place: Place) -> None:
    uri, options = write(place, "t"), place[1]
    to = f"{place[0]}/u.lance"
    if options:
        with pytest.raises(NotSupportedError, match="an object store cannot move objects at once; nothing was changed"):
            NamespaceDirectory.rename_table(uri, to, options)
        assert lance_format.dataset(uri, storage_options=options).count_rows() == 2
        return
    NamespaceDirectory.rename_table(uri, to)
    assert lance_format.dataset(to).count_rows() == 2
    with pytest.raises(StorageError, match=r"t\.lance"):
        NamespaceDirectory.rename_table(uri, to)


def test_links_are_listed_and_never_followed_by_a_removal(tmp_path: Path) -> None:
    outside = write((str(tmp_path), {}), "outside")
    namespace = NamespaceDirectory(tmp_path / "ns")
    namespace.create()
    (tmp_path / "ns" / "link.lance").symlink_to(outside)
    assert namespace.listing() == NamespaceListing((), ("link",))
    with pytest.raises(InvalidInputError, match=r"link\.lance is neither"):
        namespace.remove(cascade=True)
    assert lance_format.dataset(outside).count_rows() == 2
