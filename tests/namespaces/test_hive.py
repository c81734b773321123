"""Namespaces that a Hive metastore keeps; `test_entries.py` has more."""

from __future__ import annotations

import pickle
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import lance_format
from lance_format import (
    HiveNamespace,
    InvalidInputError,
    NamespaceListing,
    NotSupportedError,
    StorageError,
    TablePlace,
)
from tests.namespaces.keepers import Keeper, hive_keeper, new_database, write
from tests.servers import ObjectServer


@pytest.fixture
def keeper(hive_metastore: str, tmp_path: Path) -> Keeper:
    return hive_keeper(hive_metastore, f"{tmp_path}/")


@pytest.fixture
def namespace(keeper: Keeper) -> HiveNamespace:
    return keeper.namespace


@pytest.fixture
def db(namespace: HiveNamespace) -> Iterator[str]:
    with new_database(namespace) as name:
        yield name


def entry_of(namespace: HiveNamespace, *name: str) -> Any:
    """Return what the metastore has of a table."""
    return namespace._entry(*name).stored


@pytest.mark.parametrize("name", ["a b", "50%41", "a#b?c", "é", "x=1,y"])
def test_odd_places(namespace: HiveNamespace, db: str, tmp_path: Path, name: str) -> None:
    place = namespace.declare([db, "t"], str(tmp_path / name))
    assert namespace.find([db, "t"]) == place
    write(place, 1)
    assert (tmp_path / name / "data").exists()
    other = f"{db}_other"
    namespace.create([other], {"location": f"{tmp_path}/{name}/below"})
    below = namespace.declare([other, "t"])
    assert below.uri == f"{tmp_path}/{name}/below/t.lance"
    assert namespace.find([other, "t"]) == below
    namespace.remove([other], cascade=True)


def test_places(hive_metastore: str, namespace: HiveNamespace, db: str, tmp_path: Path) -> None:
    assert namespace.properties([db])["location"] == f"file:{tmp_path}/{db}"
    namespace = HiveNamespace(hive_metastore)
    assert "default" in namespace.listing().namespaces
    name = f"{db}_placed"
    namespace.create([name])
    assert namespace.declare([name, "t"]).uri.endswith(f"/warehouse/{name}.db/t.lance")
    assert namespace.remove([name], cascade=True)
    with pytest.raises(StorageError, match="cannot drop the namespace default"):
        namespace.remove(["default"])


def test_a_move_to_another_database_leaves_the_files(namespace: HiveNamespace, db: str, tmp_path: Path) -> None:
    other = f"{db}_other"
    namespace.create([other])
    # Where Hive would put a table of its own, and would move it.
    place = namespace.declare([db, "t"], f"{tmp_path}/{db}/t")
    write(place, 1, 2)
    namespace.rename([db, "t"], [other, "u"])
    assert namespace.find([other, "u"]) == place
    assert lance_format.dataset(place.uri).count_rows() == 2
    assert namespace.remove([other], cascade=True)
    assert lance_format.dataset(place.uri).count_rows() == 2


def test_what_others_put_there(keeper: Keeper, namespace: HiveNamespace, db: str, tmp_path: Path) -> None:
    """The entries of the JVM connector, which a metastore takes for tables of its own."""
    write(TablePlace(str(tmp_path / "theirs")), 1, 2)
    keeper.add(db, "theirs", str(tmp_path / "theirs"), {"table_type": "LANCE", "managed_by": "storage"})
    place = namespace.find([db, "theirs"])
    assert lance_format.dataset(place.uri).count_rows() == 2
    namespace.declare([db, "ours"])
    found = entry_of(namespace, db, "ours")
    assert found.tableType == "EXTERNAL_TABLE"
    assert {"table_type": "lance", "managed_by": "storage", "EXTERNAL": "TRUE"}.items() <= found.parameters.items()
    assert found.sd.inputFormat == "com.lancedb.lance.mapred.LanceInputFormat"
    assert found.sd.location == f"file:{tmp_path}/{db}/ours.lance"
    assert found.owner
    namespace.rename([db, "theirs"], [db, "renamed"])
    assert namespace.find([db, "renamed"]) == place
    assert [field.name for field in entry_of(namespace, db, "renamed").sd.cols] == ["id"]
    namespace.drop([db, "renamed"])
    assert not (tmp_path / "theirs").exists()


def test_many_entries(namespace: HiveNamespace, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_format.namespaces.hive._TABLES_AT_ONCE", 3)
    names = [f"t{number}" for number in range(7)]
    for name in names:
        namespace.declare([db, name])
    assert namespace.listing([db]) == NamespaceListing((), tuple(names))


def test_one_of_several_declares_a_name(namespace: HiveNamespace, db: str) -> None:
    def declare(number: int) -> bool:
        return namespace.reserve([db, f"t{number % 5}"])[1]

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(declare, range(20))) == 5


def test_users(hive_metastore: str, namespace: HiveNamespace, db: str) -> None:
    HiveNamespace(hive_metastore, ugi="ann:birds,bees").declare([db, "t"])
    assert entry_of(namespace, db, "t").owner == "ann"
    copy = pickle.loads(pickle.dumps(HiveNamespace(hive_metastore, ugi="ann", storage_options={"key": "s3cret"})))
    assert copy.find([db, "t"]).storage_options == {"key": "s3cret"}
    assert "s3cret" not in repr(copy) + repr(copy.find([db, "t"]))


def test_tables_on_s3(hive_metastore: str, s3_server: ObjectServer, db: str) -> None:
    namespace = HiveNamespace(hive_metastore, storage_options=s3_server.options)
    with pytest.raises(StorageError, match="No FileSystem for scheme"):  # that of the tests cannot reach S3
        namespace.declare([db, "t"], s3_server.new_root())


@pytest.mark.parametrize("uri", ["127.0.0.1:9083", "http://a:1", "thrift://", "thrift://a:b", "thrift://a/b", ""])
def test_malformed_addresses(uri: str) -> None:
    with pytest.raises(InvalidInputError, match="thrift://host:9083 is needed"):
        HiveNamespace(uri)


def test_faults(hive_metastore: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = HiveNamespace("thrift://127.0.0.1:1")
    with pytest.raises(
        StorageError, match=r"cannot list the databases in the Hive metastore thrift://127\.0\.0\.1:1: .*"
    ):
        nobody.listing()
    several = HiveNamespace(f"thrift://127.0.0.1:1, {hive_metastore}")
    assert "default" in several.listing().namespaces
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def hang_up() -> None:
            silent.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        with pytest.raises(StorageError, match="demands neither Kerberos nor TLS"):
            HiveNamespace(f"thrift://127.0.0.1:{silent.getsockname()[1]}").listing()
    from lance_format.namespaces import hive

    hive._interface.cache_clear()
    monkeypatch.setitem(sys.modules, "thriftpy2", None)
    with pytest.raises(NotSupportedError, match="needs the package thriftpy2: pip install 'pyspark-lance"):
        HiveNamespace(hive_metastore)
    monkeypatch.undo()
