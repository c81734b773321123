"""Namespaces that a Hive metastore keeps."""

from __future__ import annotations

import itertools
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
    DatasetExistsError,
    HiveNamespace,
    InvalidInputError,
    NamespaceListing,
    NotSupportedError,
    StorageError,
    TablePlace,
)
from tests.servers import ObjectServer

_NUMBERS = itertools.count()


@pytest.fixture
def namespace(hive_metastore: str, tmp_path: Path) -> HiveNamespace:
    return HiveNamespace(hive_metastore, root=f"{tmp_path}/")


@pytest.fixture
def db(namespace: HiveNamespace) -> Iterator[str]:
    """Yield the name of a database."""
    name = f"db{next(_NUMBERS)}"
    namespace.create([name])
    yield name
    for table in (namespace.listing([name]) or NamespaceListing((), ())).tables:
        namespace.deregister([name, table])


def write(place: TablePlace, *values: int) -> None:
    lance_format.write_dataset({"id": [*values]}, place.uri, storage_options=place.storage_options)


def entry_of(namespace: HiveNamespace, *name: str) -> Any:
    """Return what the metastore has of a table."""
    return namespace._entry(*name).stored


def add_entry(namespace: HiveNamespace, db: str, name: str, location: str, parameters: dict[str, str]) -> None:
    """Add a table as others do."""
    types = namespace._interface
    place = types.StorageDescriptor(location=location, cols=[types.FieldSchema("id", "bigint", "")], parameters={})
    place.serdeInfo = types.SerDeInfo(parameters={})
    entry = types.Table(dbName=db, tableName=name, tableType="EXTERNAL_TABLE", parameters=parameters, sd=place)
    namespace._ask("add an entry", lambda client: client.create_table(entry))


def drop_entry(namespace: HiveNamespace, db: str, name: str) -> None:
    namespace._ask("drop an entry", lambda client: client.drop_table(db, name, False))


def test_namespaces(namespace: HiveNamespace, db: str, tmp_path: Path) -> None:
    given = {"comment": "mine", "location": f"file:{tmp_path}/a", "owner": "me", "team": "x"}
    name = f"{db}_other"
    namespace.create([name], given)
    namespace.create([name], {"owner": "you"})
    assert namespace.properties([name]) == given
    assert namespace.properties([db])["location"] == f"file:{tmp_path}/{db}"
    assert {db, name, "default"} <= set(namespace.listing().namespaces)
    assert namespace.listing([db]) == NamespaceListing((), ())
    assert namespace.exists([])
    assert namespace.exists([name.upper()])
    assert namespace.properties([]) == {}
    for absent in (["none"], [db, "inner"]):
        assert not namespace.exists(absent)
        assert namespace.properties(absent) is None
        assert namespace.listing(absent) is None
        with pytest.raises(StorageError, match="the Hive metastore has none of this name"):
            namespace.remove(absent)
    with pytest.raises(NotSupportedError, match="names of one part"):
        namespace.create([db, "inner"])
    assert namespace.remove([name])
    assert not namespace.exists([name])


def test_tables(namespace: HiveNamespace, db: str, tmp_path: Path) -> None:
    assert namespace.find([db, "t"]) is None
    place = namespace.declare([db, "T"])
    assert place.uri == f"{tmp_path}/{db}/t.lance"
    assert namespace.find([db, "t"]) == namespace.find([db.upper(), "T"]) == place
    with pytest.raises(DatasetExistsError, match=rf"declare the table {db}\.t"):
        namespace.declare([db, "t"])
    assert namespace.reserve([db, "t"]) == (place, False)
    with pytest.raises(InvalidInputError, match=r"the table db.*\.t is at .* already"):
        namespace.reserve([db, "t"], "/elsewhere")
    write(place, 1, 2)
    write(namespace.declare([db, "u"], str(tmp_path / "placed")), 3)
    assert namespace.listing([db]) == NamespaceListing((), ("t", "u"))
    assert not namespace.remove([db])
    namespace.rename([db, "t"], [db, "v"])
    assert namespace.find([db, "v"]) == place
    assert namespace.find([db, "t"]) is None
    with pytest.raises(DatasetExistsError, match="rename the table"):
        namespace.rename([db, "v"], [db, "u"])
    with pytest.raises(StorageError, match="no table of this name"):
        namespace.rename([db, "t"], [db, "x"])
    with pytest.raises(StorageError, match="cannot rename the table"):
        namespace.rename([db, "v"], ["none", "v"])
    assert namespace.find([db, "v"]) == place
    assert namespace.deregister([db, "v"])
    assert not namespace.deregister([db, "v"])
    assert lance_format.dataset(place.uri).count_rows() == 2
    assert namespace.drop([db, "u"])
    assert not namespace.drop([db, "u"])
    assert not (tmp_path / "placed").exists()
    namespace.declare([db, "declared"])
    assert namespace.drop([db, "declared"])


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


def test_names_of_other_lengths(namespace: HiveNamespace, db: str) -> None:
    for name in (["t"], [db, "a", "t"]):
        assert namespace.find(name) is None
        with pytest.raises(InvalidInputError, match="have two parts"):
            namespace.declare(name)
    with pytest.raises(StorageError, match="the Hive metastore has no namespace none"):
        namespace.declare(["none", "t"])
    with pytest.raises(StorageError, match=r"cannot declare the table none\.t in the Hive metastore"):
        namespace.declare(["none", "t"], "/t")


def test_places(hive_metastore: str, db: str) -> None:
    namespace = HiveNamespace(hive_metastore)
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


def test_entries_of_others(namespace: HiveNamespace, db: str, tmp_path: Path) -> None:
    add_entry(namespace, db, "ice", f"{tmp_path}/ice", {"table_type": "ICEBERG", "EXTERNAL": "TRUE"})
    add_entry(namespace, db, "csv", f"{tmp_path}/csv", {"EXTERNAL": "TRUE"})
    place = namespace.declare([db, "t"])
    write(place, 1)
    assert namespace.listing([db]) == NamespaceListing((), ("t",))
    for act in (namespace.find, namespace.deregister, namespace.drop, lambda name: namespace.rename(name, [db, "x"])):
        with pytest.raises(
            NotSupportedError, match="is no Lance table: the Hive metastore has an entry of this name of type ICEBERG"
        ):
            act([db, "ice"])
    with pytest.raises(DatasetExistsError):
        namespace.declare([db, "csv"])
    assert not namespace.remove([db])
    with pytest.raises(InvalidInputError, match="entries that are no Lance tables, such as 'csv'"):
        namespace.remove([db], cascade=True)
    assert namespace.find([db, "t"]) == place
    for name in ("ice", "csv"):
        drop_entry(namespace, db, name)
    assert namespace.remove([db], cascade=True)
    assert lance_format.dataset(place.uri).count_rows() == 1  # Only its name is gone.


def test_what_others_put_there(namespace: HiveNamespace, db: str, tmp_path: Path) -> None:
    """The entries of the JVM connector, which a metastore takes for tables of its own."""
    write(TablePlace(str(tmp_path / "theirs")), 1, 2)
    add_entry(namespace, db, "theirs", str(tmp_path / "theirs"), {"table_type": "LANCE", "managed_by": "storage"})
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
