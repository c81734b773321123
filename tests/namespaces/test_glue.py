"""Namespaces that AWS Glue keeps, on moto's server."""

from __future__ import annotations

import itertools
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

import lance_format
from lance_format import (
    DatasetExistsError,
    GlueNamespace,
    InvalidInputError,
    NamespaceListing,
    NotSupportedError,
    StorageError,
    TablePlace,
)
from tests.servers import ObjectServer

_NUMBERS = itertools.count()
_ACCESS = {"region": "us-east-1", "access_key_id": "key", "secret_access_key": "s3cret"}


@pytest.fixture
def glue(s3_server: ObjectServer) -> Any:
    """Return a client of Glue."""
    return boto3.client(
        "glue",
        endpoint_url=s3_server.endpoint,
        region_name=_ACCESS["region"],
        aws_access_key_id="key",
        aws_secret_access_key="s3cret",
    )


@pytest.fixture
def namespace(s3_server: ObjectServer, tmp_path: Path) -> GlueNamespace:
    return GlueNamespace(endpoint=s3_server.endpoint, root=f"{tmp_path}/", **_ACCESS)


@pytest.fixture
def db(namespace: GlueNamespace) -> Iterator[str]:
    """Yield the name of a database."""
    name = f"db{next(_NUMBERS)}"
    namespace.create([name])
    yield name
    for table in (namespace.listing([name]) or NamespaceListing((), ())).tables:
        namespace.deregister([name, table])


def write(place: TablePlace, *values: int) -> None:
    lance_format.write_dataset({"id": [*values]}, place.uri, storage_options=place.storage_options)


def test_namespaces(namespace: GlueNamespace, db: str) -> None:
    given = {"comment": "mine", "location": "s3://tables/a", "owner": "me"}
    name = f"{db}_other"
    namespace.create([name], given)
    namespace.create([name], {"owner": "you"})
    assert namespace.properties([name]) == given
    assert {db, name} <= set(namespace.listing().namespaces)
    assert namespace.listing([db]) == NamespaceListing((), ())
    assert namespace.exists([])
    assert namespace.exists([name])
    assert namespace.properties([]) == {}
    for absent in (["none"], [db, "inner"]):
        assert not namespace.exists(absent)
        assert namespace.properties(absent) is None
        assert namespace.listing(absent) is None
        with pytest.raises(StorageError, match="Glue has none of this name"):
            namespace.remove(absent)
    with pytest.raises(NotSupportedError, match="names of one part"):
        namespace.create([db, "inner"])
    assert namespace.remove([name])
    assert not namespace.exists([name])


def test_tables(namespace: GlueNamespace, db: str, tmp_path: Path) -> None:
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
    assert namespace.deregister([db, "v"])
    assert not namespace.deregister([db, "v"])
    assert lance_format.dataset(place.uri).count_rows() == 2
    assert namespace.drop([db, "u"])
    assert not namespace.drop([db, "u"])
    assert not (tmp_path / "placed").exists()
    namespace.declare([db, "declared"])
    assert namespace.drop([db, "declared"])


def test_names_of_other_lengths(namespace: GlueNamespace, db: str) -> None:
    for name in (["t"], [db, "a", "t"]):
        assert namespace.find(name) is None
        with pytest.raises(InvalidInputError, match="have two parts"):
            namespace.declare(name)
    with pytest.raises(StorageError, match="Glue has no namespace none"):
        namespace.declare(["none", "t"])
    with pytest.raises(StorageError, match=r"cannot declare the table none\.t in AWS Glue"):
        namespace.declare(["none", "t"], "/t")


def test_places(s3_server: ObjectServer, db: str) -> None:
    namespace = GlueNamespace(endpoint=s3_server.endpoint, **_ACCESS)
    with pytest.raises(InvalidInputError, match="has no location; give the table one, or the catalog a root"):
        namespace.declare([db, "t"])
    name = f"{db}_placed"
    namespace.create([name], {"location": f"{s3_server.root}/placed/"})
    assert namespace.declare([name, "t"]).uri == f"{s3_server.root}/placed/t.lance"
    assert namespace.remove([name], cascade=True)


def test_tables_on_s3(s3_server: ObjectServer, db: str) -> None:
    namespace = GlueNamespace(
        endpoint=s3_server.endpoint, root=s3_server.new_root(), storage_options=s3_server.options, **_ACCESS
    )
    write(namespace.declare([db, "t"]), 1, 2)
    found = pickle.loads(pickle.dumps(namespace)).find([db, "t"])
    assert lance_format.dataset(found.uri, storage_options=found.storage_options).count_rows() == 2
    assert "s3cret" not in repr(namespace) + repr(found)
    assert namespace.drop([db, "t"])
    with pytest.raises(lance_format.DatasetNotFoundError):
        lance_format.dataset(found.uri, storage_options=found.storage_options)


def test_entries_of_others(namespace: GlueNamespace, db: str, glue: Any, tmp_path: Path) -> None:
    for name, parameters in (("ice", {"table_type": "ICEBERG"}), ("csv", {})):
        entry = {"Name": name, "Parameters": parameters, "StorageDescriptor": {"Location": "s3://tables/x"}}
        glue.create_table(DatabaseName=db, TableInput=entry)
    place = namespace.declare([db, "t"])
    write(place, 1)
    assert namespace.listing([db]) == NamespaceListing((), ("t",))
    for act in (namespace.find, namespace.deregister, namespace.drop, lambda name: namespace.rename(name, [db, "x"])):
        with pytest.raises(
            NotSupportedError, match="is no Lance table: Glue has an entry of this name of type ICEBERG"
        ):
            act([db, "ice"])
    with pytest.raises(DatasetExistsError):
        namespace.declare([db, "csv"])
    assert not namespace.remove([db])
    with pytest.raises(InvalidInputError, match="entries that are no Lance tables, such as 'csv'"):
        namespace.remove([db], cascade=True)
    assert namespace.find([db, "t"]) == place
    for name in ("ice", "csv"):
        glue.delete_table(DatabaseName=db, Name=name)
    assert namespace.remove([db], cascade=True)
    assert lance_format.dataset(place.uri).count_rows() == 1  # Only its name is gone.


def test_a_rename_that_fails_leaves_one_name(
    namespace: GlueNamespace, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = namespace.declare([db, "t"])
    delete = GlueNamespace._delete_entry

    def fail(self: GlueNamespace, database: str, name: str, action: str) -> bool:
        if name == "t":
            raise StorageError("no")
        return delete(self, database, name, action)

    monkeypatch.setattr(GlueNamespace, "_delete_entry", fail)
    with pytest.raises(StorageError, match="no"):
        namespace.rename([db, "t"], [db, "u"])
    assert namespace.find([db, "t"]) == place
    assert namespace.find([db, "u"]) is None
    monkeypatch.undo()


def test_many_entries(namespace: GlueNamespace, db: str) -> None:
    names = [f"t{number:03}" for number in range(120)]
    for name in names:
        namespace.declare([db, name])
    assert namespace.listing([db]) == NamespaceListing((), tuple(names))


def test_faults(s3_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = GlueNamespace(endpoint="http://127.0.0.1:1", max_retries=0, **_ACCESS)
    with pytest.raises(StorageError, match="cannot list the databases in AWS Glue: Could not connect"):
        nobody.listing()
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    with pytest.raises(StorageError, match=r"You must specify a region\.; give the region, or set AWS_REGION"):
        GlueNamespace()
    with pytest.raises(StorageError, match="give the name of a profile of this machine"):
        GlueNamespace(profile_name="none")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert "eu-west-1" in repr(GlueNamespace())
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(NotSupportedError, match="AWS Glue needs the package boto3: pip install 'pyspark-lance"):
        GlueNamespace()


def test_what_others_put_there(namespace: GlueNamespace, db: str, glue: Any, tmp_path: Path) -> None:
    """The entries of the JVM connector, and of the reference's implementation of namespaces."""
    write(TablePlace(str(tmp_path / "theirs")), 1, 2)
    entry = {
        "Name": "theirs",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"table_type": "lance", "managed_by": "storage", "empty_table": "true"},
        "StorageDescriptor": {
            "Location": str(tmp_path / "theirs"),
            "Columns": [{"Name": "__placeholder_id", "Type": "bigint"}],
        },
    }
    glue.create_table(DatabaseName=db, TableInput=entry)
    place = namespace.find([db, "theirs"])
    assert lance_format.dataset(place.uri).count_rows() == 2
    namespace.declare([db, "ours"])
    found = glue.get_table(DatabaseName=db, Name="ours")["Table"]
    assert found["TableType"] == "EXTERNAL_TABLE"
    assert found["Parameters"] == {"table_type": "LANCE", "managed_by": "storage"}
    assert found["StorageDescriptor"]["Location"] == f"{tmp_path}/{db}/ours.lance"
    namespace.rename([db, "theirs"], [db, "renamed"])
    assert glue.get_table(DatabaseName=db, Name="renamed")["Table"]["Parameters"] == entry["Parameters"]
