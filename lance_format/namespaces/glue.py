"""Namespaces that AWS Glue's Data Catalog keeps: its databases. Tables are entries whose `table_type` is `LANCE`.

The entries are those of the JVM connector and of `lance-namespace-impls`, and all of them see each other's tables.
Glue knows names, places and rights; nobody but Lance's libraries can read the tables by the entries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lance_format.arguments import checked_methods
from lance_format.errors import DatasetExistsError, InvalidInputError, LanceError, NotSupportedError, StorageError
from lance_format.namespaces.contents import NamespaceListing, TablePlace
from lance_format.namespaces.namespace import Namespace, shown
from lance_format.object_store import absolute_uri, resolve
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.maintenance.drop_table import drop_table

T = TypeVar("T")

_SUFFIX = ".lance"
_TYPE = "table_type"
_ENTRY = {_TYPE: "LANCE", "managed_by": "storage"}
_COMMENT, _LOCATION = "comment", "location"
_ABSENT, _EXISTS = "EntityNotFoundException", "AlreadyExistsException"
_RETRIES = 4
_READ_ONLY = frozenset(
    {
        "CatalogId",
        "CreateTime",
        "CreatedBy",
        "DatabaseName",
        "FederatedTable",
        "IsMaterializedView",
        "IsMultiDialectView",
        "IsRegisteredWithLakeFormation",
        "Status",
        "UpdateTime",
        "VersionId",
        "ViewDefinition",
    }
)
"""What Glue tells about a table, and does not take for a new one."""
_REMEDIES = {
    "AccessDeniedException": "grant this user the action, in IAM and in Lake Formation",
    "ExpiredTokenException": "renew the credentials",
    "InvalidSignatureException": "give the right credentials",
    "NoCredentialsError": "give access_key_id and secret_access_key, or those of the environment or a profile",
    "NoRegionError": "give the region, or set AWS_REGION",
    "ProfileNotFound": "give the name of a profile of this machine",
    "UnrecognizedClientException": "give the right credentials",
}


@checked_methods
class GlueNamespace(Namespace):
    """The databases of a Data Catalog and their Lance tables; see `Namespace`. Needs the package boto3.

    Names have two parts, a database and a table, which Glue keeps in lower case. Tables without a location are placed
    at that of their database, or below `root`: `<location of the database>/<table>.lance`.

    Parameters
    ----------
    region : str, optional
        By default that of the environment or of the profile.
    endpoint : str, optional
        URL of the service, by default that of the region.
    catalog_id : str, optional
        Number of the account whose catalog it is, by default that of the credentials.
    access_key_id, secret_access_key, session_token, profile_name : str, optional
        Credentials for Glue, by default those of the environment. No message shows them.
    max_retries : int, optional
        Times that a failed request is tried again, by default 4.
    retry_mode : {"standard", "adaptive", "legacy"}, optional
        How botocore waits in between, by default as standard.
    root : str, optional
        URI below which databases without a location have their tables.
    storage_options : mapping of str to str, optional
        Options of the storage of the tables, whose credentials are its own.

    Raises
    ------
    NotSupportedError
        If boto3 is not installed.
    StorageError
        If there is no region, or no such profile.
    """

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        catalog_id: str | None = None,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        session_token: str | None = None,
        profile_name: str | None = None,
        max_retries: int | None = None,
        retry_mode: str | None = None,
        root: str | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError as error:
            raise NotSupportedError("AWS Glue needs the package boto3: pip install 'pyspark-lance[glue]'") from error
        self._given = {
            "region": region,
            "endpoint": endpoint,
            "catalog_id": catalog_id,
            "access_key_id": access_key_id,
            "secret_access_key": secret_access_key,
            "session_token": session_token,
            "profile_name": profile_name,
            "max_retries": max_retries,
            "retry_mode": retry_mode,
            "root": root,
            "storage_options": storage_options,
        }
        self._failures: tuple[type[Exception], ...] = (BotoCoreError, ClientError)
        self._catalog = {} if catalog_id is None else {"CatalogId": catalog_id}
        self._root = None if root is None else root.rstrip("/")
        self._storage = dict(storage_options or {})

        def connect() -> Any:
            session = boto3.Session(
                region_name=region or os.environ.get("AWS_REGION"),
                aws_access_key_id=access_key_id,
                aws_secret_access_key=secret_access_key,
                aws_session_token=session_token,
                profile_name=profile_name,
            )
            attempts = 1 + (_RETRIES if max_retries is None else max_retries)
            retries = {"mode": retry_mode or "standard", "total_max_attempts": attempts}
            return session.client("glue", endpoint_url=endpoint, config=Config(retries=retries))

        self._client: Any = self._asked("connect", connect)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._given,)

    def __repr__(self) -> str:
        return f"GlueNamespace({self._client.meta.endpoint_url!r})"

    def listing(self, namespace: Sequence[str] = ()) -> NamespaceListing | None:
        """See `Namespace`. Tables of other formats are left out, and those that are only declared are not."""
        if len(namespace) > 1:
            return None
        if not namespace:
            databases = self._pages("list the databases", "get_databases", "DatabaseList")
            return NamespaceListing(tuple(sorted(found["Name"] for found in databases or ())), ())
        tables = self._tables(namespace)
        if tables is None:
            return None
        return NamespaceListing((), tuple(sorted(found["Name"] for found in tables if _is_ours(found))))

    def exists(self, namespace: Sequence[str]) -> bool:
        """See `Namespace`."""
        return not namespace or self._database(namespace) is not None

    def properties(self, namespace: Sequence[str]) -> dict[str, str] | None:
        """See `Namespace`. `comment` and `location` are those of the database."""
        found = self._database(namespace) if namespace else {}
        if found is None:
            return None
        own = {_COMMENT: found.get("Description"), _LOCATION: found.get("LocationUri")}
        return {**found.get("Parameters", {}), **{name: value for name, value in own.items() if value}}

    def create(self, namespace: Sequence[str], properties: Mapping[str, str] | None = None) -> None:
        """See `Namespace`. `comment` and `location` become those of the database."""
        if len(namespace) != 1:
            raise NotSupportedError(f"cannot create the namespace {shown(namespace)}: Glue's have names of one part")
        left = dict(properties or {})
        own = {"Description": left.pop(_COMMENT, None), "LocationUri": left.pop(_LOCATION, None)}
        entry = {"Name": _folded(namespace)[0], "Parameters": left}
        entry |= {name: value for name, value in own.items() if value is not None}
        self._ask(f"create the namespace {shown(namespace)}", "create_database", _EXISTS, DatabaseInput=entry)

    def remove(self, namespace: Sequence[str], *, cascade: bool = False) -> bool:
        """See `Namespace`. The files of tables that go as well stay where they are.

        Raises
        ------
        InvalidInputError
            If there are tables of other formats, or views, which Glue would remove as well.
        """
        action = f"drop the namespace {shown(namespace)}"
        tables = self._tables(namespace) if len(namespace) == 1 else None
        if tables is None:
            raise StorageError(f"cannot {action}: Glue has none of this name")
        if tables and not cascade:
            return False
        others = sorted(found["Name"] for found in tables if not _is_ours(found))
        if others:
            raise InvalidInputError(
                f"cannot {action}: it has entries that are no Lance tables, such as {others[0]!r}, which would be lost;"
                " nothing was removed"
            )
        for found in tables:
            self.deregister([*namespace, found["Name"]])
        self._ask(action, "delete_database", _ABSENT, Name=_folded(namespace)[0])
        return True

    def find(self, table: Sequence[str]) -> TablePlace | None:
        """See `Namespace`. Tables of other formats cannot be used."""
        entry = self._entry(table)
        return None if entry is None else self._place(table, entry)

    def declare(self, table: Sequence[str], location: str | None = None) -> TablePlace:
        """See `Namespace`. By default the place is below that of the database.

        Raises
        ------
        InvalidInputError
            If the name has not two parts, or neither the database nor this object has a place for its tables.
        StorageError
            If there is no such database.
        """
        action = f"declare the table {shown(table)}"
        _check_table(table, action)
        uri = absolute_uri(location or self._default_location(table, action))
        entry = {
            "Name": _folded(table)[-1],
            "TableType": "EXTERNAL_TABLE",
            "Parameters": _ENTRY,
            "StorageDescriptor": {"Location": uri, "Columns": []},
        }
        self._add(table, entry, action)
        return TablePlace(uri, self._storage)

    def deregister(self, table: Sequence[str]) -> bool:
        """See `Namespace`."""
        return self._take_out(table, "forget") is not None

    def drop(self, table: Sequence[str]) -> bool:
        """See `Namespace`. The name goes first, so that no entry stays for a part of a table."""
        place = self._take_out(table, "drop")
        if place is None:
            return False
        store, path = resolve(place.uri, self._storage)
        drop_table(TableDirectory(store, path), ignore_not_found=True)
        return True

    def rename(self, table: Sequence[str], to: Sequence[str]) -> None:
        """See `Namespace`. Glue renames nothing: the table has both names for a moment."""
        action = f"rename the table {shown(table)} to {shown(to)}"
        _check_table(to, action)
        entry = self._entry(table)
        if entry is None:
            raise StorageError(f"cannot {action}: Glue has no table of this name")
        self._place(table, entry)
        left = {name: value for name, value in entry.items() if name not in _READ_ONLY}
        self._add(to, {**left, "Name": _folded(to)[-1]}, action)
        try:
            self._delete(table, action)
        except LanceError:
            self._delete(to, action)
            raise

    def _add(self, table: Sequence[str], entry: Mapping[str, Any], action: str) -> None:
        database, _ = _folded(table)
        made = self._ask(action, "create_table", _EXISTS, DatabaseName=database, TableInput=entry)
        if made is None:
            raise DatasetExistsError(f"cannot {action}: Glue has a table of this name")

    def _delete(self, table: Sequence[str], action: str) -> None:
        database, name = _folded(table)
        self._ask(action, "delete_table", _ABSENT, DatabaseName=database, Name=name)

    def _take_out(self, table: Sequence[str], verb: str) -> TablePlace | None:
        """Delete the entry of a table, and return its place; None if there is none."""
        place = self.find(table)
        if place is not None:
            self._delete(table, f"{verb} the table {shown(table)}")
        return place

    def _place(self, table: Sequence[str], entry: Mapping[str, Any]) -> TablePlace:
        if not _is_ours(entry):
            kind = entry.get("Parameters", {}).get(_TYPE) or entry.get("TableType") or "unknown"
            raise NotSupportedError(f"{shown(table)} is no Lance table: Glue has an entry of this name of type {kind}")
        location = entry.get("StorageDescriptor", {}).get("Location")
        if not location:
            raise StorageError(f"Glue does not say where the table {shown(table)} is")
        return TablePlace(absolute_uri(location), self._storage)

    def _default_location(self, table: Sequence[str], action: str) -> str:
        database, name = _folded(table)
        found = self._database([database])
        if found is None:
            raise StorageError(f"cannot {action}: Glue has no namespace {database}")
        above = found.get("LocationUri", "").rstrip("/") or (self._root and f"{self._root}/{database}")
        if not above:
            raise InvalidInputError(
                f"cannot {action}: the namespace {database} has no location; give the table one, or the catalog a root"
            )
        return f"{above}/{name}{_SUFFIX}"

    def _entry(self, table: Sequence[str]) -> dict[str, Any] | None:
        if len(table) != 2:
            return None
        database, name = _folded(table)
        found = self._ask(f"find the table {shown(table)}", "get_table", _ABSENT, DatabaseName=database, Name=name)
        return None if found is None else found["Table"]

    def _database(self, namespace: Sequence[str]) -> dict[str, Any] | None:
        if len(namespace) != 1:
            return None
        name = _folded(namespace)[0]
        found = self._ask(f"find the namespace {shown(namespace)}", "get_database", _ABSENT, Name=name)
        return None if found is None else found["Database"]

    def _tables(self, namespace: Sequence[str]) -> list[dict[str, Any]] | None:
        name = _folded(namespace)[0]
        return self._pages(f"list the tables of {shown(namespace)}", "get_tables", "TableList", DatabaseName=name)

    def _pages(self, action: str, operation: str, field: str, **given: Any) -> list[dict[str, Any]] | None:
        def read() -> list[dict[str, Any]]:
            pages = self._client.get_paginator(operation).paginate(**self._catalog, **given)
            return [found for page in pages for found in page[field]]

        return self._asked(action, read, _ABSENT)

    def _ask(self, action: str, operation: str, unless: str, **given: Any) -> Any:
        """Ask Glue for something; returns None for one kind of error."""
        return self._asked(action, lambda: getattr(self._client, operation)(**self._catalog, **given), unless)

    def _asked(self, action: str, call: Callable[[], T], unless: str | None = None) -> T | None:
        try:
            return call()
        except self._failures as error:
            code = getattr(error, "response", {}).get("Error", {}).get("Code") or type(error).__name__
            if code == unless:
                return None
            remedy = _REMEDIES.get(code)
            told = f"cannot {action} in AWS Glue: {error}"
            raise StorageError(told + (f"; {remedy}" if remedy else "")) from error


def _is_ours(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("Parameters", {}).get(_TYPE, "")).upper() == _ENTRY[_TYPE]


def _folded(name: Sequence[str]) -> list[str]:
    """Return a name as Glue keeps it."""
    return [part.lower() for part in name]


def _check_table(name: Sequence[str], action: str) -> None:
    if len(name) != 2:
        raise InvalidInputError(f"cannot {action}: names of Glue's tables have two parts, as in db.t")


def _rebuild(given: dict[str, Any]) -> GlueNamespace:
    return GlueNamespace(**given)
