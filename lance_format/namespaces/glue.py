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
from lance_format.namespaces.contents import TablePlace
from lance_format.namespaces.entries import SUFFIX, Entry, EntryNamespace, folded
from lance_format.namespaces.namespace import shown
from lance_format.object_store import absolute_uri

T = TypeVar("T")

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
class GlueNamespace(EntryNamespace):
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
        super().__init__("Glue", storage_options)
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

    def properties(self, namespace: Sequence[str]) -> dict[str, str] | None:
        """See `Namespace`. `comment` and `location` are those of the database."""
        found = self._database_of(namespace) if namespace else {}
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
        entry = {"Name": folded(namespace)[0], "Parameters": left}
        entry |= {name: value for name, value in own.items() if value is not None}
        self._ask(f"create the namespace {shown(namespace)}", "create_database", _EXISTS, DatabaseInput=entry)

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
        self._check_table(table, action)
        database, name = folded(table)
        uri = absolute_uri(location or self._default_location(database, name, action))
        entry = {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": _ENTRY,
            "StorageDescriptor": {"Location": uri, "Columns": []},
        }
        self._add(database, entry, action)
        return TablePlace(uri, self._storage)

    def rename(self, table: Sequence[str], to: Sequence[str]) -> None:
        """See `Namespace`. Glue renames nothing: the table has both names for a moment."""
        action = f"rename the table {shown(table)} to {shown(to)}"
        entry = self._to_rename(table, to, action)
        left = {name: value for name, value in entry.stored.items() if name not in _READ_ONLY}
        (database, name), (other, new_name) = folded(table), folded(to)
        self._add(other, {**left, "Name": new_name}, action)
        try:
            self._delete_entry(database, name, action)
        except LanceError:
            self._delete_entry(other, new_name, action)
            raise

    def _add(self, database: str, entry: Mapping[str, Any], action: str) -> None:
        made = self._ask(action, "create_table", _EXISTS, DatabaseName=database, TableInput=entry)
        if made is None:
            raise DatasetExistsError(f"cannot {action}: Glue has a table of this name")

    def _default_location(self, database: str, name: str, action: str) -> str:
        found = self._database(database)
        if found is None:
            raise StorageError(f"cannot {action}: Glue has no namespace {database}")
        above = found.get("LocationUri", "").rstrip("/") or (self._root and f"{self._root}/{database}")
        if not above:
            raise InvalidInputError(
                f"cannot {action}: the namespace {database} has no location; give the table one, or the catalog a root"
            )
        return f"{above}/{name}{SUFFIX}"

    def _databases(self) -> list[str]:
        databases = self._pages("list the databases", "get_databases", "DatabaseList")
        return [found["Name"] for found in databases or ()]

    def _database(self, name: str) -> Any:
        found = self._ask(f"find the namespace {name}", "get_database", _ABSENT, Name=name)
        return None if found is None else found["Database"]

    def _entries(self, database: str) -> list[Entry] | None:
        tables = self._pages(f"list the tables of {database}", "get_tables", "TableList", DatabaseName=database)
        return None if tables is None else [_entry_from(table) for table in tables]

    def _entry(self, database: str, name: str) -> Entry | None:
        found = self._ask(f"find the table {database}.{name}", "get_table", _ABSENT, DatabaseName=database, Name=name)
        return None if found is None else _entry_from(found["Table"])

    def _delete_entry(self, database: str, name: str, action: str) -> bool:
        return self._ask(action, "delete_table", _ABSENT, DatabaseName=database, Name=name) is not None

    def _delete_database(self, name: str, action: str) -> None:
        self._ask(action, "delete_database", _ABSENT, Name=name)

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


def _entry_from(table: Mapping[str, Any]) -> Entry:
    kind = table.get("Parameters", {}).get(_TYPE) or table.get("TableType") or "unknown"
    return Entry(table["Name"], kind, table.get("StorageDescriptor", {}).get("Location"), table)


def _rebuild(given: dict[str, Any]) -> GlueNamespace:
    return GlueNamespace(**given)
