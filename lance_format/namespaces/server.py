"""Requests of Lance's REST specification of namespaces, and the errors that servers answer."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from lance_format.errors import DatasetNotFoundError, InvalidInputError, NotSupportedError, StorageError
from lance_format.namespaces.http_client import HttpClient, Reply

_Kind = TypeVar("_Kind")
NAMESPACE_EXISTS, NAMESPACE_NOT_EMPTY, TABLE_EXISTS = 2, 3, 5
"""Codes of errors; servers without them have only the status of HTTP."""
_UNSUPPORTED, _NAMESPACE_NOT_FOUND, _TABLE_NOT_FOUND = 0, 1, 4
_NOT_FOUND = 404
_NO_NAMES = ("", ".", "..")
"""The last two would be steps of a path in addresses."""
_REPEATABLE = ("exists", "describe")
"""Actions that change nothing."""
_LISTS = {"namespaces": "list", "tables": "table/list"}
_REMEDIES = {
    400: "see what it says",
    401: "give the headers that it asks for, such as Authorization, or newer ones",
    403: "ask those who run it for the right",
    429: "it has too much to do; try again later",
    503: "it is not available; try again later",
}
_ELSEWHERE = "check its address, behind which /v1/namespace is expected"


class NamespaceServer:
    """A server, and how it is asked.

    Parameters
    ----------
    uri : str
    headers : mapping of str to str
    delimiter : str
        See `RestNamespace` for all of them.
    """

    def __init__(self, uri: str, headers: Mapping[str, str], delimiter: str) -> None:
        self._http = HttpClient(uri, headers)
        self._delimiter = delimiter

    @property
    def shown(self) -> str:
        """The address, for messages."""
        return self._http.shown

    def post(self, kind: str, name: Sequence[str], action: str, body: Mapping[str, object] | None = None) -> Reply:
        """Ask for an action.

        Parameters
        ----------
        kind : {"namespace", "table"}
        name : sequence of str
        action : str
        body : mapping of str to object, optional
            Its parameters besides the name.

        Raises
        ------
        InvalidInputError
            If the name is none.
        StorageError
            If no answer arrives.
        """
        path = f"/v1/{kind}/{self._joined(name)}/{action}"
        content = {"id": [*name], **(body or {})}
        query = {"delimiter": self._delimiter}
        return self._http.request("POST", path, query, content, is_repeatable=action in _REPEATABLE)

    def names(self, namespace: Sequence[str], what: str, **query: str) -> Iterator[str]:
        """Yield the names in a namespace. Some servers say them with all parts, or with those of inner namespaces.

        Parameters
        ----------
        namespace : sequence of str
        what : {"namespaces", "tables"}
        **query
            Further parameters.

        Raises
        ------
        DatasetNotFoundError
            If there is no such namespace.
        StorageError
            If the server does not answer, or refuses.
        """
        prefix = "".join(part + self._delimiter for part in namespace)
        for name in self._pages(f"/v1/namespace/{self._joined(namespace)}/{_LISTS[what]}", what, query):
            own = name.removeprefix(prefix)
            if self._delimiter not in own:
                yield own

    def _pages(self, path: str, what: str, query: Mapping[str, str]) -> Iterator[str]:
        token: str | None = None
        while True:
            page = {} if token is None else {"page_token": token}
            reply = self._http.request("GET", path, {"delimiter": self._delimiter, **query, **page}, is_repeatable=True)
            if self.is_absent(reply):
                raise DatasetNotFoundError(f"the server {self.shown} has no such namespace")
            found = self.demand(reply, f"list {what}")
            yield from map(str, self.field(found, what, list) or ())
            last, token = token, found.get("page_token")
            if not token or token == last:
                return

    def is_absent(self, reply: Reply) -> bool:
        """Return whether what was asked for is not there; a page of another server says so as well, but not in JSON."""
        if reply.status == _NOT_FOUND:
            return isinstance(reply.content, dict)
        return reply_code(reply) in (_NAMESPACE_NOT_FOUND, _TABLE_NOT_FOUND)

    def demand(self, reply: Reply, what: str) -> dict[str, Any]:
        """Return the content of an answer, which must be a success.

        Parameters
        ----------
        reply : Reply
        what : str
            What was asked for, after "cannot".

        Raises
        ------
        NotSupportedError
            If the server does not do such a thing.
        StorageError
            If it refuses, or is none of namespaces.
        """
        if not reply.is_success:
            self._refuse(reply, what)
        if not isinstance(reply.content, dict):
            raise StorageError(
                f"cannot {what}: the answer of {self.shown} is none of a namespace server; check its address"
            )
        return reply.content

    def field(self, found: Mapping[str, Any], name: str, kind: type[_Kind]) -> _Kind | None:
        """Return a part of an answer. An error does not show it, as it may hold secrets.

        Parameters
        ----------
        found : mapping of str to object
        name : str
        kind : type

        Raises
        ------
        StorageError
            If it is of another type.
        """
        value = found.get(name)
        if value is None or isinstance(value, kind):
            return value
        raise StorageError(
            f"the answer of the server {self.shown} has {name!r}, which is of the type {type(value).__name__} and"
            f" not {kind.__name__}; ask those who run it"
        )

    def check(self, name: Sequence[str]) -> None:
        """Refuse a name that cannot be a part of an address.

        Raises
        ------
        InvalidInputError
            If a part of it is empty, `.` or `..`, or has the delimiter.
        """
        wrong = next((part for part in name if part in _NO_NAMES or self._delimiter in part), None)
        if wrong is not None:
            raise InvalidInputError(
                f"{wrong!r} cannot be a part of a name on the server {self.shown}: parts are not empty, . or ..,"
                f" and have no {self._delimiter}"
            )

    def _joined(self, name: Sequence[str]) -> str:
        """Return a name as a part of an address."""
        self.check(name)
        return urllib.parse.quote(self._delimiter.join(name) or self._delimiter, safe="")

    def _refuse(self, reply: Reply, what: str) -> NoReturn:
        content = reply.content
        said = content.get("error") or content.get("message") or content if isinstance(content, dict) else content
        text = f"cannot {what}: the server {self.shown} answers {reply.status}, {str(said)[:500]!r}"
        if reply_code(reply) == _UNSUPPORTED or re.search("(?i)not (implemented|supported)", str(said)):
            raise NotSupportedError(f"{text}; nothing was changed")
        is_elsewhere = reply.status == _NOT_FOUND and not isinstance(content, dict)
        remedy = _ELSEWHERE if is_elsewhere else _REMEDIES.get(reply.status)
        raise StorageError(f"{text}{f'; {remedy}' if remedy else ''}")


def reply_code(reply: Reply) -> int | None:
    """Return the error code of the specification, if there is one."""
    found = reply.content.get("code") if isinstance(reply.content, dict) and not reply.is_success else None
    return found if isinstance(found, int) else None
