"""Namespaces that a server keeps, by Lance's REST specification of namespaces (`lance.org/format/namespace/rest`).

The server knows names, places and rights; tables are read and written where they are.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.errors import (
    DatasetExistsError,
    DatasetNotFoundError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    StorageError,
)
from lance_format.namespaces.contents import NamespaceListing, TablePlace
from lance_format.namespaces.namespace import Namespace, shown
from lance_format.namespaces.server import (
    NAMESPACE_EXISTS,
    NAMESPACE_NOT_EMPTY,
    TABLE_EXISTS,
    NamespaceServer,
    reply_code,
)
from lance_format.namespaces.vending import expiry_of, storage_of
from lance_format.object_store import absolute_uri

DELIMITER = "$"


@checked_methods
class RestNamespace(Namespace):
    """The namespaces and tables of a server; see `Namespace`.

    Parameters
    ----------
    uri : str
        Address of the server, to which `/v1/…` is added.
    headers : mapping of str to str, optional
        Sent with every request, such as `Authorization` and `x-api-key`. No message shows them.
    delimiter : str
        Stands between the parts of names in addresses, so that no part may contain it.

    Raises
    ------
    InvalidInputError
        If the address is not one of HTTP, or the delimiter is empty.
    """

    def __init__(self, uri: str, *, headers: Mapping[str, str] | None = None, delimiter: str = DELIMITER) -> None:
        if not delimiter:
            raise InvalidInputError("the delimiter of names is empty; by default it is $")
        self._uri = uri
        self._headers = dict(headers or {})
        self._delimiter = delimiter
        self._server = NamespaceServer(uri, self._headers, delimiter)
        self._vended: dict[tuple[str, ...], tuple[str, dict[str, str], float]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._uri, self._headers, self._delimiter)

    def __repr__(self) -> str:
        return f"RestNamespace({self._server.shown!r})"

    def listing(self, namespace: Sequence[str] = ()) -> NamespaceListing | None:
        """See `Namespace`. Tables that are only declared are not among them."""
        try:
            namespaces = sorted(self._server.names(namespace, "namespaces"))
            tables = sorted(self._server.names(namespace, "tables", include_declared="false"))
        except DatasetNotFoundError:
            return None
        if not namespaces and not tables and not self.exists(namespace):
            return None
        return NamespaceListing(tuple(namespaces), tuple(tables))

    def exists(self, namespace: Sequence[str]) -> bool:
        """See `Namespace`."""
        if not namespace:
            return True
        reply = self._server.post("namespace", namespace, "exists")
        if self._server.is_absent(reply):
            return False
        self._server.demand(reply, f"find the namespace {shown(namespace)}")
        return True

    def properties(self, namespace: Sequence[str]) -> dict[str, str] | None:
        """See `Namespace`."""
        reply = self._server.post("namespace", namespace, "describe")
        if self._server.is_absent(reply):
            return None
        found = self._server.demand(reply, f"describe the namespace {shown(namespace)}")
        return _texts(self._server.field(found, "properties", dict))

    def create(self, namespace: Sequence[str], properties: Mapping[str, str] | None = None) -> None:
        """See `Namespace`. The server keeps the properties."""
        body = {"mode": "Create", "properties": dict(properties or {})}
        reply = self._server.post("namespace", namespace, "create", body)
        if reply_code(reply) != NAMESPACE_EXISTS:
            self._server.demand(reply, f"create the namespace {shown(namespace)}")

    def remove(self, namespace: Sequence[str], *, cascade: bool = False) -> bool:
        """See `Namespace`."""
        body = {"mode": "Fail", "behavior": "Cascade" if cascade else "Restrict"}
        reply = self._server.post("namespace", namespace, "drop", body)
        if reply_code(reply) == NAMESPACE_NOT_EMPTY and not cascade:
            return False
        if cascade and not (reply.is_success or self._server.is_absent(reply)):  # Not all servers can.
            self._clear(namespace)
            return self.remove(namespace)
        self._server.demand(reply, f"drop the namespace {shown(namespace)}")
        return True

    def _clear(self, namespace: Sequence[str]) -> None:
        """Drop what is in a namespace."""
        tables, inner = [*self._server.names(namespace, "tables")], [*self._server.names(namespace, "namespaces")]
        for name in tables:
            self.drop([*namespace, name])
        for name in inner:
            self.remove([*namespace, name], cascade=True)

    def find(self, table: Sequence[str]) -> TablePlace | None:
        """See `Namespace`. Credentials that expire are renewed by the process that uses them."""
        found = self._describe(table)
        return None if found is None else self._place(table, found)

    def lend(self, table: Sequence[str]) -> dict[str, str]:
        """Return the options of the storage, and the credentials, that the server lends for a table.

        Raises
        ------
        DatasetNotFoundError
            If the server has no such table.
        StorageError
            If the server does not answer, or refuses.
        """
        found = self._describe(table)
        if found is None:
            raise DatasetNotFoundError(f"the server {self._server.shown} has no table {shown(table)}")
        return _texts(self._server.field(found, "storage_options", dict))

    def _describe(self, table: Sequence[str]) -> dict[str, Any] | None:
        reply = self._server.post("table", table, "describe", {"vend_credentials": True})
        return None if self._server.is_absent(reply) else self._server.demand(reply, f"find the table {shown(table)}")

    def declare(self, table: Sequence[str], location: str | None = None) -> TablePlace:
        """See `Namespace`. By default the server chooses the place."""
        placed = {} if location is None else {"location": location}
        reply = self._server.post("table", table, "declare", {"vend_credentials": True, **placed})
        if reply_code(reply) == TABLE_EXISTS:
            raise DatasetExistsError(
                f"cannot declare the table {shown(table)}: the server {self._server.shown} has one"
            )
        found = self._server.demand(reply, f"declare the table {shown(table)}")
        try:
            return self._place(table, found)
        except LanceError:
            with contextlib.suppress(LanceError):
                self.deregister(table)
            raise

    def deregister(self, table: Sequence[str]) -> bool:
        """See `Namespace`; raises `StorageError` if the server has the table still."""
        return self._take_out(table, "deregister")

    def drop(self, table: Sequence[str]) -> bool:
        """See `Namespace`; the server deletes the files. Raises `StorageError` if the server has the table still."""
        return self._take_out(table, "drop")

    def _take_out(self, table: Sequence[str], action: str) -> bool:
        """Have a table deregistered or dropped.

        pylance's server finds tables of the root in its directory, whatever it has been told about them.
        """
        reply = self._server.post("table", table, action)
        was_there = not self._server.is_absent(reply)
        if was_there:
            self._server.demand(reply, f"{action} the table {shown(table)}")
        found = self._describe(table)
        if found is not None:
            raise StorageError(
                f"cannot {action} the table {shown(table)}: the server {self._server.shown} answers {reply.status},"
                f" and has it still; delete the files at {found.get('location')}, in SQL by DROP TABLE … PURGE of this"
                " path"
            )
        return was_there

    def rename(self, table: Sequence[str], to: Sequence[str]) -> None:
        """See `Namespace`."""
        self._server.check(to)
        body = {"new_table_name": to[-1], "new_namespace_id": [*to[:-1]]}
        reply = self._server.post("table", table, "rename", body)
        self._server.demand(reply, f"rename the table {shown(table)} to {shown(to)}")

    def _place(self, table: Sequence[str], found: Mapping[str, Any]) -> TablePlace:
        if found.get("managed_versioning"):
            raise NotSupportedError(
                f"the versions of the table {shown(table)} are kept by the server {self._server.shown}, and not with"
                " the table; other clients of the server read and write it"
            )
        location = self._server.field(found, "table_uri", str) or self._server.field(found, "location", str)
        if not location:
            raise StorageError(f"the server {self._server.shown} does not say where the table {shown(table)} is")
        uri, given = absolute_uri(location), _texts(self._server.field(found, "storage_options", dict))
        source = {"uri": self._uri, "headers": self._headers, "delimiter": self._delimiter, "table": [*table]}
        return TablePlace(uri, storage_of(location, self._held(tuple(table), uri, given), source))

    def _held(self, table: tuple[str, ...], uri: str, given: dict[str, str]) -> dict[str, str]:
        """Return credentials that were received before while half of their time is left: stores are kept by them."""
        known_uri, known, until = self._vended.get(table, ("", {}, 0.0))
        if known_uri == uri and time.time() < until and known.keys() == given.keys():
            return known
        expires = expiry_of(given)
        if expires is not None:
            now = time.time()
            self._vended[table] = (uri, given, now + (expires / 1000 - now) / 2)
        return given


def _texts(found: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (found or {}).items() if value is not None}


def _rebuild(uri: str, headers: dict[str, str], delimiter: str) -> RestNamespace:
    return RestNamespace(uri, headers=headers, delimiter=delimiter)
