"""Namespaces that a server keeps, by Lance's REST specification of namespaces (`lance.org/format/namespace/rest`).

The server knows names, places and rights; tables are read and written where they are. A table can be declared before
it is written: the server has its name and place then, and there are no rows.
"""

from __future__ import annotations

import contextlib
import re
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

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
from lance_format.namespaces.http_client import HttpClient, Reply
from lance_format.namespaces.vending import expiry_of, storage_of
from lance_format.object_store import absolute_uri

_Kind = TypeVar("_Kind")
DELIMITER = "$"
_NO_NAMES = ("", ".", "..")
"""The last two would be steps of a path in addresses."""
_UNSUPPORTED = 0
_NAMESPACE_NOT_FOUND, _NAMESPACE_EXISTS, _NAMESPACE_NOT_EMPTY = 1, 2, 3
_TABLE_NOT_FOUND, _TABLE_EXISTS = 4, 5
"""Codes of errors; servers without them have only the status of HTTP."""
_NOT_FOUND = 404
_REMEDIES = {
    400: "see what it says",
    401: "give the headers that it asks for, such as Authorization, or newer ones",
    403: "ask those who run it for the right",
    429: "it has too much to do; try again later",
    503: "it is not available; try again later",
}
_ELSEWHERE = "check its address, behind which /v1/namespace is expected"


@checked_methods
class RestNamespace:
    """The namespaces and tables of a server. Names are sequences of parts: `["db", "t"]` is the table `t` in `db`.

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
        self._http = HttpClient(uri, self._headers)
        self._vended: dict[tuple[str, ...], tuple[str, dict[str, str], float]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._uri, self._headers, self._delimiter)

    def __repr__(self) -> str:
        return f"RestNamespace({self._http.shown!r})"

    def listing(self, namespace: Sequence[str] = ()) -> NamespaceListing | None:
        """Return the namespaces and tables in a namespace, by default the root; None if there is no such namespace.

        Tables that are only declared are not among them.

        Raises
        ------
        StorageError
            If the server does not answer, or refuses.
        """
        parent = self._joined(namespace)
        try:
            namespaces = sorted(self._own(self._pages(f"namespace/{parent}/list", "namespaces"), namespace))
            found = self._pages(f"namespace/{parent}/table/list", "tables", include_declared="false")
            tables = sorted(self._own(found, namespace))
        except DatasetNotFoundError:
            return None
        if not namespaces and not tables and not self.exists(namespace):
            return None
        return NamespaceListing(tuple(namespaces), tuple(tables))

    def exists(self, namespace: Sequence[str]) -> bool:
        """Return whether there is a namespace. The root always is.

        Raises
        ------
        StorageError
            If the server does not answer, or refuses.
        """
        if not namespace:
            return True
        reply = self._post(f"namespace/{self._joined(namespace)}/exists", {"id": [*namespace]})
        if self._is_absent(reply):
            return False
        self._demand(reply, f"find the namespace {_shown(namespace)}")
        return True

    def properties(self, namespace: Sequence[str]) -> dict[str, str] | None:
        """Return what the server keeps about a namespace; None if there is no such namespace.

        Raises
        ------
        StorageError
            If the server does not answer, or refuses.
        """
        reply = self._post(f"namespace/{self._joined(namespace)}/describe", {"id": [*namespace]})
        if self._is_absent(reply):
            return None
        found = self._demand(reply, f"describe the namespace {_shown(namespace)}")
        return _texts(self._field(found, "properties", dict))

    def create(self, namespace: Sequence[str], properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace. If there is one of this name, nothing happens.

        Parameters
        ----------
        namespace : sequence of str
        properties : mapping of str to str, optional
            Kept by the server.

        Raises
        ------
        StorageError
            If the server does not answer, or refuses.
        """
        body = {"id": [*namespace], "mode": "Create", "properties": dict(properties or {})}
        reply = self._post(f"namespace/{self._joined(namespace)}/create", body, is_repeatable=False)
        if _code(reply) != _NAMESPACE_EXISTS:
            self._demand(reply, f"create the namespace {_shown(namespace)}")

    def remove(self, namespace: Sequence[str], *, cascade: bool = False) -> bool:
        """Remove a namespace.

        Parameters
        ----------
        namespace : sequence of str
        cascade : bool
            Whether its tables and namespaces go as well.

        Returns
        -------
        bool
            Whether it was removed. Without `cascade`, it is not removed unless it is empty.

        Raises
        ------
        StorageError
            If the server does not answer, or refuses.
        """
        body = {"id": [*namespace], "mode": "Fail", "behavior": "Cascade" if cascade else "Restrict"}
        reply = self._post(f"namespace/{self._joined(namespace)}/drop", body, is_repeatable=False)
        if _code(reply) == _NAMESPACE_NOT_EMPTY and not cascade:
            return False
        if cascade and not (reply.is_success or self._is_absent(reply)):  # Not all servers can.
            self._clear(namespace)
            return self.remove(namespace)
        self._demand(reply, f"drop the namespace {_shown(namespace)}")
        return True

    def _clear(self, namespace: Sequence[str]) -> None:
        """Drop what is in a namespace."""
        parent = self._joined(namespace)
        tables = [*self._own(self._pages(f"namespace/{parent}/table/list", "tables"), namespace)]
        inner = [*self._own(self._pages(f"namespace/{parent}/list", "namespaces"), namespace)]
        for name in tables:
            self.drop([*namespace, name])
        for name in inner:
            self.remove([*namespace, name], cascade=True)

    def find(self, table: Sequence[str]) -> TablePlace | None:
        """Return where a table is, written or only declared; None if the server has none of that name.

        Credentials that expire are renewed by the process that uses them.

        Raises
        ------
        NotSupportedError
            If the server, and not the table, keeps the table's versions.
        StorageError
            If the server does not answer, or refuses.
        """
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
            raise DatasetNotFoundError(f"the server {self._http.shown} has no table {_shown(table)}")
        return _texts(self._field(found, "storage_options", dict))

    def _describe(self, table: Sequence[str]) -> dict[str, Any] | None:
        reply = self._post(f"table/{self._joined(table)}/describe", {"id": [*table], "vend_credentials": True})
        return None if self._is_absent(reply) else self._demand(reply, f"find the table {_shown(table)}")

    def declare(self, table: Sequence[str], location: str | None = None) -> TablePlace:
        """Give a table that is to be written a name and a place.

        Parameters
        ----------
        table : sequence of str
        location : str, optional
            URI of the place, by default one that the server chooses.

        Raises
        ------
        DatasetExistsError
            If there is a table of that name, written or only declared.
        NotSupportedError
            If the server, and not the table, would keep the table's versions.
        StorageError
            If the server does not answer, or refuses.
        """
        body: dict[str, object] = {"id": [*table], "vend_credentials": True}
        if location is not None:
            body["location"] = location
        reply = self._post(f"table/{self._joined(table)}/declare", body, is_repeatable=False)
        if _code(reply) == _TABLE_EXISTS:
            raise DatasetExistsError(f"cannot declare the table {_shown(table)}: the server {self._http.shown} has one")
        found = self._demand(reply, f"declare the table {_shown(table)}")
        try:
            return self._place(table, found)
        except LanceError:
            with contextlib.suppress(LanceError):
                self.deregister(table)
            raise

    def reserve(self, table: Sequence[str], location: str | None = None) -> tuple[TablePlace, bool]:
        """Return the place of a table, which is declared if there is none of the name, and whether it was.

        Parameters
        ----------
        table : sequence of str
        location : str, optional
            URI of the place, by default that of the table, or one that the server chooses.

        Raises
        ------
        InvalidInputError
            If there is a table of that name at another place.
        NotSupportedError
            If the server, and not the table, keeps the table's versions.
        StorageError
            If the server does not answer, or refuses.
        """
        known = self.find(table)
        if known is None:
            try:
                return self.declare(table, location), True
            except DatasetExistsError:  # Another program has just declared it.
                known = self.find(table)
        if known is None or (location is not None and absolute_uri(location) != known.uri):
            where = "being created or dropped by another program" if known is None else f"at {known.uri} already"
            raise InvalidInputError(f"the table {_shown(table)} is {where}; nothing was changed")
        return known, False

    def deregister(self, table: Sequence[str]) -> bool:
        """Take a table out of the lists of the server, and leave its files where they are.

        Returns
        -------
        bool
            Whether there was one.

        Raises
        ------
        StorageError
            If the server does not answer, refuses, or has the table still.
        """
        return self._take_out(table, "deregister")

    def drop(self, table: Sequence[str]) -> bool:
        """Have the server delete a table with its files.

        Returns
        -------
        bool
            Whether there was one.

        Raises
        ------
        StorageError
            If the server does not answer, refuses, or has the table still.
        """
        return self._take_out(table, "drop")

    def _take_out(self, table: Sequence[str], action: str) -> bool:
        """Have a table deregistered or dropped.

        pylance's server finds tables of the root in its directory, whatever it has been told about them.
        """
        reply = self._post(f"table/{self._joined(table)}/{action}", {"id": [*table]}, is_repeatable=False)
        was_there = not self._is_absent(reply)
        if was_there:
            self._demand(reply, f"{action} the table {_shown(table)}")
        found = self._describe(table)
        if found is not None:
            raise StorageError(
                f"cannot {action} the table {_shown(table)}: the server {self._http.shown} answers {reply.status}, and"
                f" has it still; delete the files at {found.get('location')}, in SQL by DROP TABLE … PURGE of this path"
            )
        return was_there

    def rename(self, table: Sequence[str], to: Sequence[str]) -> None:
        """Give a table another name, or another namespace.

        Raises
        ------
        NotSupportedError
            If the server does not rename tables.
        StorageError
            If the server does not answer, or refuses.
        """
        self._joined(to)
        body = {"id": [*table], "new_table_name": to[-1], "new_namespace_id": [*to[:-1]]}
        reply = self._post(f"table/{self._joined(table)}/rename", body, is_repeatable=False)
        self._demand(reply, f"rename the table {_shown(table)} to {_shown(to)}")

    def _place(self, table: Sequence[str], found: Mapping[str, Any]) -> TablePlace:
        if found.get("managed_versioning"):
            raise NotSupportedError(
                f"the versions of the table {_shown(table)} are kept by the server {self._http.shown}, and not with the"
                " table; other clients of the server read and write it"
            )
        location = self._field(found, "table_uri", str) or self._field(found, "location", str)
        if not location:
            raise StorageError(f"the server {self._http.shown} does not say where the table {_shown(table)} is")
        uri, given = absolute_uri(location), _texts(self._field(found, "storage_options", dict))
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

    def _own(self, names: Iterator[str], namespace: Sequence[str]) -> Iterator[str]:
        """Yield names in a namespace; some servers say them with all parts, or with those of inner namespaces."""
        prefix = "".join(part + self._delimiter for part in namespace)
        for name in names:
            own = name.removeprefix(prefix)
            if self._delimiter not in own:
                yield own

    def _pages(self, path: str, what: str, **query: str) -> Iterator[str]:
        token: str | None = None
        while True:
            page = {} if token is None else {"page_token": token}
            reply = self._http.request(
                "GET", f"/v1/{path}", {"delimiter": self._delimiter, **query, **page}, is_repeatable=True
            )
            if self._is_absent(reply):
                raise DatasetNotFoundError(f"the server {self._http.shown} has no such namespace")
            found = self._demand(reply, f"list {what}")
            yield from map(str, self._field(found, what, list) or ())
            last, token = token, found.get("page_token")
            if not token or token == last:
                return

    def _post(self, path: str, body: object, *, is_repeatable: bool = True) -> Reply:
        return self._http.request(
            "POST", f"/v1/{path}", {"delimiter": self._delimiter}, body, is_repeatable=is_repeatable
        )

    def _joined(self, name: Sequence[str]) -> str:
        """Return a name as a part of an address."""
        wrong = next((part for part in name if part in _NO_NAMES or self._delimiter in part), None)
        if wrong is not None:
            raise InvalidInputError(
                f"{wrong!r} cannot be a part of a name on the server {self._http.shown}: parts are not empty, . or ..,"
                f" and have no {self._delimiter}"
            )
        return urllib.parse.quote(self._delimiter.join(name) or self._delimiter, safe="")

    def _is_absent(self, reply: Reply) -> bool:
        """Return whether what was asked for is not there; a page of another server says so as well, but not in JSON."""
        if reply.status == _NOT_FOUND:
            return isinstance(reply.content, dict)
        return _code(reply) in (_NAMESPACE_NOT_FOUND, _TABLE_NOT_FOUND)

    def _demand(self, reply: Reply, what: str) -> dict[str, Any]:
        """Return the content of an answer, which must be a success."""
        if not reply.is_success:
            self._refuse(reply, what)
        if not isinstance(reply.content, dict):
            raise StorageError(
                f"cannot {what}: the answer of {self._http.shown} is none of a namespace server; check its address"
            )
        return reply.content

    def _field(self, found: Mapping[str, Any], name: str, kind: type[_Kind]) -> _Kind | None:
        """Return a part of an answer. An error does not show it, as it may hold secrets."""
        value = found.get(name)
        if value is None or isinstance(value, kind):
            return value
        raise StorageError(
            f"the answer of the server {self._http.shown} has {name!r}, which is of the type {type(value).__name__} and"
            f" not {kind.__name__}; ask those who run it"
        )

    def _refuse(self, reply: Reply, what: str) -> NoReturn:
        content = reply.content
        said = content.get("error") or content.get("message") or content if isinstance(content, dict) else content
        text = f"cannot {what}: the server {self._http.shown} answers {reply.status}, {str(said)[:500]!r}"
        if _code(reply) == _UNSUPPORTED or re.search("(?i)not (implemented|supported)", str(said)):
            raise NotSupportedError(f"{text}; nothing was changed")
        is_elsewhere = reply.status == _NOT_FOUND and not isinstance(content, dict)
        remedy = _ELSEWHERE if is_elsewhere else _REMEDIES.get(reply.status)
        raise StorageError(f"{text}{f'; {remedy}' if remedy else ''}")


def _code(reply: Reply) -> int | None:
    """Return the error code of the specification, if there is one."""
    found = reply.content.get("code") if isinstance(reply.content, dict) and not reply.is_success else None
    return found if isinstance(found, int) else None


def _texts(found: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (found or {}).items() if value is not None}


def _shown(name: Sequence[str]) -> str:
    return ".".join(name) or "/"


def _rebuild(uri: str, headers: dict[str, str], delimiter: str) -> RestNamespace:
    return RestNamespace(uri, headers=headers, delimiter=delimiter)
