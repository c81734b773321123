"""Renewal of the credentials that a namespace server lends, in the processes that use them.

A process starts with credentials that another one received. Shortly before they expire it asks the server for the next.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable
from typing import Any

from lance_format.errors import StorageError
from lance_format.namespaces.rest import RestNamespace
from lance_format.namespaces.vending import credentials_of, expiry_of

_SPARE_SECONDS = 300
"""Credentials that expire sooner are renewed, or for which less than half of the time is left that they had."""
_LEAST_SECONDS = 5
"""Credentials that expire sooner are not worth a request."""


def renewing(token: str) -> Callable[[], dict[str, object]]:
    """Return a credential provider for obstore.

    Parameters
    ----------
    token : str
        JSON, as `lance_format.namespaces.vending.storage_of` writes it.
    """
    known: dict[str, Any] = json.loads(token)
    server = RestNamespace(known["uri"], headers=known["headers"], delimiter=known["delimiter"])
    known["spare"] = _spare(known["expires"])

    def provide() -> dict[str, object]:
        if _seconds_to(known["expires"]) <= known["spare"]:
            _renew_or_keep(known, server)
        expires_at = datetime.datetime.fromtimestamp(known["expires"] / 1000, datetime.UTC)
        return {**known["credentials"], "expires_at": expires_at}

    return provide


def _renew_or_keep(known: dict[str, Any], server: RestNamespace) -> None:
    """Renew credentials. If the server fails, they are kept for half of the time that they are still valid."""
    try:
        _renew(known, server)
    except StorageError:
        left = _seconds_to(known["expires"])
        if left < _LEAST_SECONDS:
            raise
        known["spare"] = left / 2


def _renew(known: dict[str, Any], server: RestNamespace) -> None:
    given = server.lend(known["table"])
    credentials, expires = credentials_of(known["provider"], given), expiry_of(given)
    if not credentials or expires is None:
        raise StorageError(
            f"{server!r} has lent credentials for the table {'.'.join(known['table'])}, which expire, and lends no"
            " others: run the query again"
        )
    known["credentials"], known["expires"] = credentials, expires
    known["spare"] = _spare(known["expires"])


def _spare(expires: int) -> float:
    return min(_SPARE_SECONDS, _seconds_to(expires) / 2)


def _seconds_to(expires: int) -> float:
    return max(0.0, expires / 1000 - time.time())
