"""Requests of JSON objects to a server, tried again where that is safe."""

from __future__ import annotations

import functools
import json
import os
import re
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lance_format.errors import InvalidInputError, StorageError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    import urllib3

_CONNECT_SECONDS = 10
_READ_SECONDS = 60
_ATTEMPTS = 4
_BACKOFF_SECONDS = 0.2
_LONGEST_WAIT_SECONDS = 20
"""How long a server that is busy can have a client wait, whatever its header Retry-After says."""
_BUSY = (429, 503)
"""Answers of a server that has not done what it was asked."""
_BROKEN = (*_BUSY, 502, 504)
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_VALUE = r"[\t\x20-\x7e\x80-\xff]*"
_SHOWN_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a server.

    Parameters
    ----------
    status : int
        Of HTTP.
    content : object
        The JSON value; the text if it is none.
    """

    status: int
    content: Any

    @property
    def is_success(self) -> bool:
        """True if the server has done what it was asked."""
        return self.status // 100 == 2


class HttpClient:
    """Client of one server. It keeps connections, and opens its own in a forked process.

    Parameters
    ----------
    uri : str
        Beginning of all addresses.
    headers : mapping of str to str
        Sent with every request. No message shows their values.

    Raises
    ------
    InvalidInputError
        If the URI is not one of HTTP, or a header cannot be sent.
    """

    def __init__(self, uri: str, headers: Mapping[str, str]) -> None:
        parts = urllib.parse.urlsplit(uri)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInputError(
                f"the server is {_without_user(parts)!r}; its address begins with http:// or https://"
            )
        if "@" in parts.netloc:
            raise InvalidInputError(
                f"the address of the server {_without_user(parts)} names a user, who would not be sent: give the header"
                " Authorization instead"
            )
        if parts.query or parts.fragment:
            raise InvalidInputError(
                f"the address of the server {_without_user(parts)} goes on with ? or #: leave that out"
            )
        for name, value in headers.items():
            if not re.fullmatch(_HEADER_NAME, name) or not re.fullmatch(_HEADER_VALUE, value):
                raise InvalidInputError(
                    f"the header {name!r} for the server {_without_user(parts)} cannot be sent: its name or value has a"
                    " character that headers do not have, such as the end of a line; the value is not shown"
                )
        self.shown = _without_user(parts)
        self._uri = uri.rstrip("/")
        self._headers = {**headers, "Accept": "application/json"}
        self._pool: Any = None
        self._pid = 0

    def request(
        self, method: str, path: str, query: Mapping[str, str], body: object = None, *, is_repeatable: bool
    ) -> Reply:
        """Send a request.

        Parameters
        ----------
        method : {"GET", "POST"}
        path : str
            Behind the server's URI, quoted.
        query : mapping of str to str
        body : object, optional
            Becomes JSON.
        is_repeatable : bool
            Whether the request may be sent again although the server may have received it.

        Raises
        ------
        StorageError
            If no answer arrives.
        """
        import urllib3  # Only servers need it.

        retries = _patience()(
            _ATTEMPTS,
            read=_ATTEMPTS if is_repeatable else 0,
            redirect=False,  # Another server would get the headers.
            allowed_methods=None,
            status_forcelist=_BROKEN if is_repeatable else _BUSY,
            backoff_factor=_BACKOFF_SECONDS,
            raise_on_status=False,
        )
        url = f"{self._uri}{path}?{urllib.parse.urlencode(query)}"
        given = None if body is None else json.dumps(body).encode()
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            answer = self._connections().request(method, url, body=given, headers=headers, retries=retries)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise StorageError(f"the server {self.shown} does not answer: {_reason(error)}") from None
        return Reply(answer.status, _content(answer.data))

    def _connections(self) -> Any:
        import urllib3

        if self._pid != os.getpid():
            timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS)
            proxy = _proxy(self._uri)
            self._pool = urllib3.ProxyManager(proxy, timeout=timeout) if proxy else urllib3.PoolManager(timeout=timeout)
            self._pid = os.getpid()
        return self._pool


@functools.cache
def _patience() -> type[urllib3.Retry]:
    """Return the class of retries that wait as long as the server asks, within limits."""
    import urllib3

    class Patience(urllib3.Retry):
        def get_retry_after(self, response: Any) -> float | None:
            try:
                wanted = super().get_retry_after(response)
            except urllib3.exceptions.InvalidHeader:
                return None
            return None if wanted is None else min(wanted, _LONGEST_WAIT_SECONDS)

    return Patience


def _proxy(uri: str) -> str | None:
    """Return the proxy that the environment names for a server."""
    parts = urllib.parse.urlsplit(uri)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _content(data: bytes) -> Any:
    text = data.decode(errors="replace")
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text[:_SHOWN_CHARACTERS]


def _reason(error: BaseException) -> str:
    """Return the innermost reason of an error, without addresses of objects."""
    found = getattr(error, "reason", None) or error
    return str(found).rpartition(">: ")[2] or type(found).__name__


def _without_user(parts: urllib.parse.SplitResult) -> str:
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
