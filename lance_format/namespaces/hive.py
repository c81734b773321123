"""Namespaces that a Hive metastore keeps: its databases. Tables are external ones whose `table_type` is `lance`.

The entries are those of the JVM connector and of `lance-namespace-impls`, and all of them see each other's tables.
The metastore knows names, places and owners; Hive cannot read the tables.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lance_format.arguments import checked_methods
from lance_format.errors import DatasetExistsError, InvalidInputError, NotSupportedError, StorageError
from lance_format.namespaces.contents import TablePlace
from lance_format.namespaces.entries import LANCE, SUFFIX, Entry, EntryNamespace, folded
from lance_format.namespaces.namespace import shown
from lance_format.object_store import absolute_uri

_TYPE = "table_type"
_ENTRY = {_TYPE: LANCE, "managed_by": "storage", "EXTERNAL": "TRUE"}
"""Without the last one, a metastore takes a table for its own, and deletes or moves its files."""
_FORMAT = "com.lancedb.lance.mapred.Lance"
_COMMENT, _LOCATION, _OWNER = "comment", "location", "owner"
_PORT = 9083
_CONNECT_SECONDS, _ANSWER_SECONDS = 10, 120
_TABLES_AT_ONCE = 500
_LOST = "; check the address, and that it demands neither Kerberos nor TLS, which are not supported"
_USER = 1
"""`PrincipalType.USER`."""


@checked_methods
class HiveNamespace(EntryNamespace):
    """The databases of a Hive metastore and their Lance tables; see `Namespace`. Needs the package thriftpy2.

    Names have two parts, a database and a table, which the metastore keeps in lower case. Tables without a location are
    placed at that of their database: `<location of the database>/<table>.lance`. A metastore creates the directory of
    a new table, so that it must reach its storage.

    Parameters
    ----------
    uri : str
        Address of the metastore, `thrift://host:9083`, or several with commas between them: the first that answers is
        asked.
    ugi : str, optional
        User and groups on whose behalf to ask, as `user:group1,group2`. By default the metastore is not told.
    root : str, optional
        URI below which new databases without a location have theirs: `<root>/<database>`. By default the metastore
        places them.
    storage_options : mapping of str to str, optional
        Options of the storage of the tables.

    Raises
    ------
    NotSupportedError
        If thriftpy2 is not installed.
    InvalidInputError
        If an address is malformed.
    """

    def __init__(
        self,
        uri: str,
        *,
        ugi: str | None = None,
        root: str | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__("the Hive metastore", storage_options)
        self._interface = _interface()
        self._uri = uri
        self._addresses = [_address(one.strip()) for one in uri.split(",")]
        self._ugi = ugi
        self._root = None if root is None else root.rstrip("/")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._uri, self._ugi, self._root, self._storage)

    def __repr__(self) -> str:
        return f"HiveNamespace({self._uri!r})"

    def properties(self, namespace: Sequence[str]) -> dict[str, str] | None:
        """See `Namespace`. `comment`, `location` and `owner` are those of the database."""
        if not namespace:
            return {}
        found = self._database_of(namespace)
        if found is None:
            return None
        own = {_COMMENT: found.description, _LOCATION: found.locationUri, _OWNER: found.ownerName}
        return {**(found.parameters or {}), **{name: value for name, value in own.items() if value}}

    def create(self, namespace: Sequence[str], properties: Mapping[str, str] | None = None) -> None:
        """See `Namespace`. `comment`, `location` and `owner` become those of the database."""
        action = f"create the namespace {shown(namespace)}"
        if len(namespace) != 1:
            raise NotSupportedError(f"cannot {action}: those of a Hive metastore have names of one part")
        (name,), left = folded(namespace), dict(properties or {})
        entry = self._interface.Database(
            name=name,
            description=left.pop(_COMMENT, None),
            locationUri=left.pop(_LOCATION, None) or (self._root and f"{self._root}/{name}"),
            ownerName=left.pop(_OWNER, None) or self._user(),
            ownerType=_USER,
            parameters=left,
        )
        with contextlib.suppress(self._interface.AlreadyExistsException):
            self._ask(action, lambda client: client.create_database(entry), self._interface.AlreadyExistsException)

    def declare(self, table: Sequence[str], location: str | None = None) -> TablePlace:
        """See `Namespace`. By default the place is below that of the database.

        Raises
        ------
        InvalidInputError
            If the name has not two parts.
        StorageError
            If there is no such database.
        """
        action = f"declare the table {shown(table)}"
        self._check_table(table, action)
        database, name = folded(table)
        uri = absolute_uri(location or self._default_location(database, name, action))
        interface = self._interface
        entry = interface.Table(
            dbName=database,
            tableName=name,
            owner=self._user(),
            tableType="EXTERNAL_TABLE",
            parameters=_ENTRY,
            partitionKeys=[],
            sd=interface.StorageDescriptor(
                location=uri,
                cols=[],
                inputFormat=f"{_FORMAT}InputFormat",
                outputFormat=f"{_FORMAT}OutputFormat",
                serdeInfo=interface.SerDeInfo(serializationLib=f"{_FORMAT}SerDe", parameters={}),
                bucketCols=[],
                sortCols=[],
                parameters={},
            ),
        )
        try:
            self._ask(action, lambda client: client.create_table(entry), interface.AlreadyExistsException)
        except interface.AlreadyExistsException as error:
            raise DatasetExistsError(f"cannot {action}: the Hive metastore has a table of this name") from error
        return TablePlace(uri, self._storage)

    def rename(self, table: Sequence[str], to: Sequence[str]) -> None:
        """See `Namespace`.

        Raises
        ------
        DatasetExistsError
            If there is a table of the new name.
        """
        action = f"rename the table {shown(table)} to {shown(to)}"
        entry = self._to_rename(table, to, action).stored
        database, name = folded(table)
        entry.dbName, entry.tableName = folded(to)
        entry.parameters = {**entry.parameters, **_ENTRY}
        refused = self._interface.InvalidOperationException
        try:
            self._ask(action, lambda client: client.alter_table(database, name, entry), refused)
        except refused as error:
            if self._entry_of(to) is not None:
                raise DatasetExistsError(f"cannot {action}: the Hive metastore has a table of this name") from error
            raise StorageError(f"cannot {action} in the Hive metastore: {error.message}") from error

    def _default_location(self, database: str, name: str, action: str) -> str:
        found = self._database(database)
        if found is None:
            raise StorageError(f"cannot {action}: the Hive metastore has no namespace {database}")
        return f"{_told(found.locationUri).rstrip('/')}/{name}{SUFFIX}"

    def _databases(self) -> list[str]:
        databases: list[str] = self._ask("list the databases", lambda client: client.get_all_databases())
        return databases

    def _database(self, name: str) -> Any:
        absent = self._interface.NoSuchObjectException
        try:
            return self._ask(f"find the namespace {name}", lambda client: client.get_database(name), absent)
        except absent:
            return None

    def _entries(self, database: str) -> list[Entry] | None:
        if self._database(database) is None:
            return None

        def read(client: Any) -> list[Entry]:
            names, tables = client.get_all_tables(database), []
            for start in range(0, len(names), _TABLES_AT_ONCE):
                request = self._interface.GetTablesRequest(database, names[start : start + _TABLES_AT_ONCE])
                tables += client.get_table_objects_by_name_req(request).tables
            return [_entry_from(table) for table in tables]

        entries: list[Entry] = self._ask(f"list the tables of {database}", read)
        return entries

    def _entry(self, database: str, name: str) -> Entry | None:
        request, absent = self._interface.GetTableRequest(database, name), self._interface.NoSuchObjectException
        try:
            found = self._ask(f"find the table {database}.{name}", lambda client: client.get_table_req(request), absent)
        except absent:
            return None
        return _entry_from(found.table)

    def _delete_entry(self, database: str, name: str, action: str) -> bool:
        absent = self._interface.NoSuchObjectException
        try:
            self._ask(action, lambda client: client.drop_table(database, name, False), absent)
        except absent:
            return False
        return True

    def _delete_database(self, name: str, action: str) -> None:
        self._ask(action, lambda client: client.drop_database(name, False, False))

    def _user(self) -> str | None:
        """Return the owner of new entries, if this process has a name."""
        if self._ugi:
            return self._ugi.partition(":")[0]
        with contextlib.suppress(KeyError, OSError):
            return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        return None

    def _ask(self, action: str, call: Callable[[Any], Any], *passed: type[Exception]) -> Any:
        """Ask the metastore for something; some of its exceptions are passed on."""
        from thriftpy2.thrift import TException
        from thriftpy2.transport import TTransportException

        try:
            with self._connected() as client:
                return call(client)
        except passed:
            raise
        except (TException, OSError) as error:
            told = getattr(error, "message", None) or str(error) or type(error).__name__
            is_lost = isinstance(error, TTransportException | OSError)
            raise StorageError(
                f"cannot {action} in the Hive metastore {self._uri}: {told}" + (_LOST if is_lost else "")
            ) from error

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        """Connect to the first metastore that answers; a client serves one thread, and no longer than an action."""
        from thriftpy2.protocol import TBinaryProtocolFactory
        from thriftpy2.thrift import TClient
        from thriftpy2.transport import TBufferedTransportFactory, TSocket, TTransportException

        timeouts = {"connect_timeout": _CONNECT_SECONDS * 1000, "socket_timeout": _ANSWER_SECONDS * 1000}
        for number, address in enumerate(self._addresses, 1):
            transport = TBufferedTransportFactory().get_transport(TSocket(*address, **timeouts))
            try:
                transport.open()
                break
            except (TTransportException, OSError):
                if number == len(self._addresses):
                    raise
        client = TClient(self._interface.ThriftHiveMetastore, TBinaryProtocolFactory().get_protocol(transport))
        try:
            if self._ugi:
                user, _, groups = self._ugi.partition(":")
                client.set_ugi(user, [group for group in groups.split(",") if group])
            yield client
        finally:
            client.close()


@functools.cache
def _interface() -> Any:
    """Return the types of a metastore's interface."""
    try:
        import thriftpy2
    except ImportError as error:
        raise NotSupportedError(
            "a Hive metastore needs the package thriftpy2: pip install 'pyspark-lance[hive]'"
        ) from error
    return thriftpy2.load(str(Path(__file__).with_name("hive_metastore.thrift")), "hive_metastore_thrift")


def _address(uri: str) -> tuple[str, int]:
    try:
        parts = urlsplit(uri)
        if parts.scheme == "thrift" and parts.hostname and not parts.path.strip("/"):
            return parts.hostname, parts.port or _PORT
    except ValueError:
        pass
    raise InvalidInputError(f"the address of the Hive metastore is {uri!r}; thrift://host:{_PORT} is needed")


def _entry_from(table: Any) -> Entry:
    kind = (table.parameters or {}).get(_TYPE) or table.tableType or "unknown"
    location = None if table.sd is None or not table.sd.location else _told(table.sd.location)
    return Entry(table.tableName, kind, location, table)


def _told(location: str) -> str:
    """Return the place that a metastore means: in its URIs of files, `%` is a character like any other."""
    path = location.removeprefix("file:")
    return location if path == location else "/" + path.lstrip("/")


def _rebuild(uri: str, ugi: str | None, root: str | None, storage: dict[str, str]) -> HiveNamespace:
    return HiveNamespace(uri, ugi=ugi, root=root, storage_options=storage)
