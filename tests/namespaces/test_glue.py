"""Namespaces that AWS Glue keeps, on moto's server; `test_entries.py` has more."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lance_format
from lance_format import (
    GlueNamespace,
    InvalidInputError,
    NamespaceListing,
    NotSupportedError,
    StorageError,
    TablePlace,
)
from tests.namespaces.keepers import GLUE_ACCESS, glue_client, new_database, write
from tests.servers import ObjectServer


@pytest.fixture
def glue(s3_server: ObjectServer) -> Any:
    """Return a client of Glue."""
    return glue_client(s3_server)


@pytest.fixture
def namespace(s3_server: ObjectServer, tmp_path: Path) -> GlueNamespace:
    return GlueNamespace(endpoint=s3_server.endpoint, root=f"{tmp_path}/", **GLUE_ACCESS)


@pytest.fixture
def db(namespace: GlueNamespace) -> Iterator[str]:
    with new_database(namespace) as name:
        yield name


def test_places(s3_server: ObjectServer, db: str) -> None:
    namespace = GlueNamespace(endpoint=s3_server.endpoint, **GLUE_ACCESS)
    with pytest.raises(InvalidInputError, match="has no location; give the table one, or the catalog a root"):
        namespace.declare([db, "t"])
    name = f"{db}_placed"
    namespace.create([name], {"location": f"{s3_server.root}/placed/"})
    assert namespace.declare([name, "t"]).uri == f"{s3_server.root}/placed/t.lance"
    assert namespace.remove([name], cascade=True)


def test_tables_on_s3(s3_server: ObjectServer, db: str) -> None:
    namespace = GlueNamespace(
        endpoint=s3_server.endpoint, root=s3_server.new_root(), storage_options=s3_server.options, **GLUE_ACCESS
    )
    write(namespace.declare([db, "t"]), 1, 2)
    found = pickle.loads(pickle.dumps(namespace)).find([db, "t"])
    assert lance_format.dataset(found.uri, storage_options=found.storage_options).count_rows() == 2
    assert "s3cret" not in repr(namespace) + repr(found)
    assert namespace.drop([db, "t"])
    with pytest.raises(lance_format.DatasetNotFoundError):
        lance_format.dataset(found.uri, storage_options=found.storage_options)


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
    nobody = GlueNamespace(endpoint="http://127.0.0.1:1", max_retries=0, **GLUE_ACCESS)
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
