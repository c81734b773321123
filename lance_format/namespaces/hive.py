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
from lance_format.namespaces.contents import NamespaceListing, TablePlace
from lance_format.namespaces.namespace import Namespace, shown
from lance_format.object_store import absolute_uri, resolve
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.maintenance.drop_table import drop_table

_SUFFIX = ".lance"
_TYPE, _LANCE = "table_type", "lance"
_ENTRY = {_TYPE: _LANCE, "managed_by": "storage", "EXTERNAL": "TRUE"}
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
class HiveNamespace(Namespace):
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
        self._interface = _interface()
        self._uri = uri
        self._addresses = [_address(one.strip()) for one in uri.split(",")]
        self._ugi = ugi
        self._root = None if root is None else root.rstrip("/")
        self._storage = dict(storage_options or {})

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._uri, self._ugi, self._root, self._storage)

    def __repr__(self) -> str:
        return f"HiveNamespace({self._uri!r})"

    def listing(self, namespace: Sequence[str] = ()) -> NamespaceListing | None:
        """See `Namespace`. Tables of other formats are left out, and those that are only declared are not."""
        if not namespace:
            databases = self._ask("list the databases", lambda client: client.get_all_databases())
            return NamespaceListing(tuple(sorted(databases)), ())
        entries = self._entries(namespace)
        if entries is None:
            return None
        return NamespaceListing((), tuple(sorted(entry.tableName for entry in entries if _is_ours(entry))))

    def exists(self, namespace: Sequence[str]) -> bool:
        """See `Namespace`."""
        return not namespace or self._database(namespace) is not None

    def properties(self, namespace: Sequence[str]) -> dict[str, str] | None:
        """See `Namespace`. `comment`, `location` and `owner` are those of the database."""
        if not namespace:
            return {}
        found = self._database(namespace)
        if found is None:
            return None
        own = {_COMMENT: found.description, _LOCATION: found.locationUri, _OWNER: found.ownerName}
        return {**(found.parameters or {}), **{name: value for name, value in own.items() if value}}

    def create(self, namespace: Sequence[str], properties: Mapping[str, str] | None = None) -> None:
        """See `Namespace`. `comment`, `location` and `owner` become those of the database."""
        action = f"create the namespace {shown(namespace)}"
        if len(namespace) != 1:
            raise NotSupportedError(f"cannot {action}: those of a Hive metastore have names of one part")
        (name,), left = _folded(namespace), dict(properties or {})
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

    def remove(self, namespace: Sequence[str], *, cascade: bool = False) -> bool:
        """See `Namespace`. The files of tables that go as well stay where they are.

        Raises
        ------
        InvalidInputError
            If there are tables of other formats, or views.
        """
        action = f"drop the namespace {shown(namespace)}"
        entries = self._entries(namespace)
        if entries is None:
            raise StorageError(f"cannot {action}: the Hive metastore has none of this name")
        if entries and not cascade:
            return False
        others = sorted(entry.tableName for entry in entries if not _is_ours(entry))
        if others:
            raise InvalidInputError(
                f"cannot {action}: it has entries that are no Lance tables, such as {others[0]!r}, which would be lost;"
                " nothing was removed"
            )
        for entry in entries:
            self.deregister([*namespace, entry.tableName])
        (name,) = _folded(namespace)
        self._ask(action, lambda client: client.drop_database(name, False, False))
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
            If the name has not two parts.
        StorageError
            If there is no such database.
        """
        action = f"declare the table {shown(table)}"
        _check_table(table, action)
        database, name = _folded(table)
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
        """See `Namespace`.

        Raises
        ------
        DatasetExistsError
            If there is a table of the new name.
        """
        action = f"rename the table {shown(table)} to {shown(to)}"
        _check_table(to, action)
        entry = self._entry(table)
        if entry is None:
            raise StorageError(f"cannot {action}: the Hive metastore has no table of this name")
        self._place(table, entry)
        database, name = _folded(table)
        entry.dbName, entry.tableName = _folded(to)
        entry.parameters = {**entry.parameters, **_ENTRY}
        refused = self._interface.InvalidOperationException
        try:
            self._ask(action, lambda client: client.alter_table(database, name, entry), refused)
        except refused as error:
            if self._entry(to) is not None:
                raise DatasetExistsError(f"cannot {action}: the Hive metastore has a table of this name") from error
            raise StorageError(f"cannot {action} in the Hive metastore: {error.message}") from error

    def _take_out(self, table: Sequence[str], verb: str) -> TablePlace | None:
        """Delete the entry of a table, and return its place; None if there is none."""
        place = self.find(table)
        if place is None:
            return None
        database, name = _folded(table)
        absent = self._interface.NoSuchObjectException
        try:
            self._ask(
                f"{verb} the table {shown(table)}",
                lambda client: client.drop_table(database, name, False),
                absent,
            )
        except absent:  # Another program has just done so.
            return None
        return place

    def _place(self, table: Sequence[str], entry: Any) -> TablePlace:
        if not _is_ours(entry):
            kind = (entry.parameters or {}).get(_TYPE) or entry.tableType or "unknown"
            raise NotSupportedError(
                f"{shown(table)} is no Lance table: the Hive metastore has an entry of this name of type {kind}"
            )
        if entry.sd is None or not entry.sd.location:
            raise StorageError(f"the Hive metastore does not say where the table {shown(table)} is")
        return TablePlace(absolute_uri(_told(entry.sd.location)), self._storage)

    def _default_location(self, database: str, name: str, action: str) -> str:
        found = self._database([database])
        if found is None:
            raise StorageError(f"cannot {action}: the Hive metastore has no namespace {database}")
        return f"{_told(found.locationUri).rstrip('/')}/{name}{_SUFFIX}"

    def _entry(self, table: Sequence[str]) -> Any:
        """Return the entry of a table; None if there is none."""
        if len(table) != 2:
            return None
        request, absent = self._interface.GetTableRequest(*_folded(table)), self._interface.NoSuchObjectException
        try:
            found = self._ask(f"find the table {shown(table)}", lambda client: client.get_table_req(request), absent)
        except absent:
            return None
        return found.table

    def _database(self, namespace: Sequence[str]) -> Any:
        """Return a database; None if there is none."""
        if len(namespace) != 1:
            return None
        (name,), absent = _folded(namespace), self._interface.NoSuchObjectException
        try:
            return self._ask(f"find the namespace {shown(namespace)}", lambda client: client.get_database(name), absent)
        except absent:
            return None

    def _entries(self, namespace: Sequence[str]) -> list[Any] | None:
        """Return all entries of a database; None if there is no such database."""
        if self._database(namespace) is None:
            return None
        (database,), entries = _folded(namespace), []

        def read(client: Any) -> None:
            names = client.get_all_tables(database)
            for start in range(0, len(names), _TABLES_AT_ONCE):
                request = self._interface.GetTablesRequest(database, names[start : start + _TABLES_AT_ONCE])
                entries.extend(client.get_table_objects_by_name_req(request).tables)

        self._ask(f"list the tables of {shown(namespace)}", read)
        return entries

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


def _is_ours(entry: Any) -> bool:
    return str((entry.parameters or {}).get(_TYPE, "")).lower() == _LANCE


def _told(location: str) -> str:
    """Return the place that a metastore means: in its URIs of files, `%` is a character like any other."""
    path = location.removeprefix("file:")
    return location if path == location else "/" + path.lstrip("/")


def _folded(name: Sequence[str]) -> list[str]:
    """Return a name as the metastore keeps it."""
    return [part.lower() for part in name]


def _check_table(name: Sequence[str], action: str) -> None:
    if len(name) != 2:
        raise InvalidInputError(f"cannot {action}: names of tables of a Hive metastore have two parts, as in db.t")


def _rebuild(uri: str, ugi: str | None, root: str | None, storage: dict[str, str]) -> HiveNamespace:
    return HiveNamespace(uri, ugi=ugi, root=root, storage_options=storage)
