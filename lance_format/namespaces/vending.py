"""Credentials that a namespace server lends for a table, as options of its storage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lance_format.object_store.cloud_options import CREDENTIAL_PROVIDER, PREFIXES, PROVIDER_TOKEN, known_options
from lance_format.object_store.cloud_places import provider_of

EXPIRY = "expires_at_millis"
_LAST_EXPIRY = 253_402_300_799_000
"""The end of the year 9999, the last that `datetime` knows. Some servers say the largest integer instead of never."""
RENEWAL = "lance_format.namespaces.renewal:renewing"
_NAMES = {
    "s3": {
        "access_key_id": "access_key_id",
        "secret_access_key": "secret_access_key",
        "session_token": "token",
        "token": "token",
    },
    "gs": {"storage_token": "token", "bearer_token": "token", "token": "token"},
    "az": {
        "sas_token": "sas_token",
        "sas_key": "sas_token",
        "account_key": "access_key",
        "access_key": "access_key",
        "bearer_token": "token",
        "token": "token",
    },
}
"""Names of credentials without the prefixes of their cloud, and those that obstore's providers return."""
_OPTIONS = {
    "s3": {
        "access_key_id": "aws_access_key_id",
        "secret_access_key": "aws_secret_access_key",
        "token": "aws_session_token",
    },
    "gs": {"token": "google_bearer_token"},
    "az": {
        "sas_token": "azure_storage_sas_token",
        "access_key": "azure_storage_account_key",
        "token": "azure_storage_bearer_token",
    },
}
"""Storage options for these."""


def storage_of(location: str, given: Mapping[str, str], source: Mapping[str, Any]) -> dict[str, str]:
    """Return storage options for those that a server gave with a table.

    Parameters
    ----------
    location : str
        URI of the table.
    given : mapping of str to str
        Options of the server. Those that no store takes are left out, and a credential provider: it is code of this
        program, which no server chooses.
    source : mapping of str to object
        How to ask for the next credentials: arguments of `RestNamespace`, and the parts of the `table`'s name.
    """
    provider = provider_of(location)
    if provider is None:
        return {}
    others = {name: given[name] for name in given if not _is_credential(provider, name)}
    known = known_options(provider, others)
    options = {name: known[name] for name in known if name.lower() not in (CREDENTIAL_PROVIDER, PROVIDER_TOKEN)}
    credentials, expires = credentials_of(provider, given), expiry_of(given)
    if expires is None:
        return {**options, **{_OPTIONS[provider][name]: value for name, value in credentials.items()}}
    options.pop(EXPIRY, None)
    token = {**source, "provider": provider, "credentials": credentials, "expires": expires}
    return {**options, CREDENTIAL_PROVIDER: RENEWAL, PROVIDER_TOKEN: json.dumps(token, sort_keys=True)}


def credentials_of(provider: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials among options, as obstore's providers return them.

    Parameters
    ----------
    provider : {"s3", "gs", "az"}
    given : mapping of str to str
    """
    names = _NAMES[provider]
    return {names[_plain(provider, name)]: given[name] for name in given if _is_credential(provider, name)}


def expiry_of(given: Mapping[str, str]) -> int | None:
    """Return when credentials expire, in milliseconds since 1970; None if they do not.

    Parameters
    ----------
    given : mapping of str to str
        Options of the server.
    """
    found = given.get(EXPIRY, "")
    return min(int(found), _LAST_EXPIRY) if re.fullmatch("[0-9]{1,20}", found) else None


def _is_credential(provider: str, name: str) -> bool:
    return _plain(provider, name) in _NAMES[provider]


def _plain(provider: str, name: str) -> str:
    """Return the name of an option without the prefixes of its cloud."""
    lower = name.lower()
    for prefix in (*PREFIXES[provider], *(("storage_",) if provider == "gs" else ())):
        lower = lower.removeprefix(prefix)
    return lower
