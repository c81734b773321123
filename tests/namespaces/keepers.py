"""Catalogs whose entries name Lance tables beside others, and how others add and delete entries there."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3

import lance_format
from lance_format import GlueNamespace, HiveNamespace, NamespaceListing, TablePlace
from lance_format.namespaces.entries import EntryNamespace
from tests.servers import ObjectServer

GLUE_ACCESS = {"region": "us-east-1", "access_key_id": "key", "secret_access_key": "s3cret"}
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Keeper:
    """A catalog.

    Parameters
    ----------
    namespace : EntryNamespace
    name : str
        As messages call it.
    add : callable
        Adds an entry, given its database, name, location and parameters.
    drop : callable
        Deletes an entry, given its database and name.
    """

    namespace: EntryNamespace
    name: str
    add: Callable[[str, str, str, dict[str, str]], None]
    drop: Callable[[str, str], None]


def glue_client(server: ObjectServer) -> Any:
    return boto3.client(
        "glue",
        endpoint_url=server.endpoint,
        region_name=GLUE_ACCESS["region"],
        aws_access_key_id=GLUE_ACCESS["access_key_id"],
        aws_secret_access_key=GLUE_ACCESS["secret_access_key"],
    )


def glue_keeper(server: ObjectServer, root: str) -> Keeper:
    client = glue_client(server)

    def add(db: str, name: str, location: str, parameters: dict[str, str]) -> None:
        entry = {"Name": name, "Parameters": parameters, "StorageDescriptor": {"Location": location}}
        client.create_table(DatabaseName=db, TableInput=entry)

    def drop(db: str, name: str) -> None:
        client.delete_table(DatabaseName=db, Name=name)

    return Keeper(GlueNamespace(endpoint=server.endpoint, root=root, **GLUE_ACCESS), "Glue", add, drop)


def hive_keeper(uri: str, root: str) -> Keeper:
    namespace = HiveNamespace(uri, root=root)

    def add(db: str, name: str, location: str, parameters: dict[str, str]) -> None:
        types = namespace._interface
        place = types.StorageDescriptor(location=location, cols=[types.FieldSchema("id", "bigint", "")], parameters={})
        place.serdeInfo = types.SerDeInfo(parameters={})
        entry = types.Table(dbName=db, tableName=name, tableType="EXTERNAL_TABLE", parameters=parameters, sd=place)
        namespace._ask("add an entry", lambda client: client.create_table(entry))

    def drop(db: str, name: str) -> None:
        namespace._ask("drop an entry", lambda client: client.drop_table(db, name, False))

    return Keeper(namespace, "the Hive metastore", add, drop)


@contextlib.contextmanager
def new_database(namespace: EntryNamespace) -> Iterator[str]:
    """Yield the name of a database."""
    name = f"db{next(_NUMBERS)}"
    namespace.create([name])
    yield name
    for table in (namespace.listing([name]) or NamespaceListing((), ())).tables:
        namespace.deregister([name, table])


def write(place: TablePlace, *values: int) -> None:
    lance_format.write_dataset({"id": [*values]}, place.uri, storage_options=place.storage_options)
