"""Places in object stores: the schemes of URIs, and what each part of a URI means."""

from __future__ import annotations

import re
import urllib.parse

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

PROVIDERS = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "az": "az", "abfs": "az", "abfss": "az"}
"""The provider of each scheme."""

_CANONICAL = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_AZURE_HOST = re.compile(
    r"([a-z0-9]{1,63})\.(?:dfs|blob)\.(core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net))"
)
_ONELAKE_HOST = re.compile(r"onelake\.(?:dfs|blob)\.fabric\.microsoft\.com")


@dataclass(frozen=True, slots=True)
class CloudPlace:
    """A place in an object store.

    Parameters
    ----------
    provider : str
        `s3`, `gs` or `az`.
    bucket : str
        The bucket, or the container.
    prefix : str
        URI of the bucket, without a final slash. Paths in the store begin with it.
    key : str
        The part of the path after the bucket, decoded; empty for the whole bucket.
    account : str, optional
        The account of an Azure URI that names one.
    host : str, optional
        The host of an Azure URI that names one.
    """

    provider: str
    bucket: str
    prefix: str
    key: str
    account: str | None = None
    host: str | None = None

    @property
    def path(self) -> str:
        """The path in the store."""
        return f"{self.prefix}/{self.key}" if self.key else self.prefix


def provider_of(uri: str) -> str | None:
    """Return the provider of a URI: `s3`, `gs` or `az`, and None for other storages."""
    return PROVIDERS.get(uri.partition("://")[0].lower()) if "://" in uri else None


def parse_place(scheme: str, uri: str) -> CloudPlace:
    """Parse the URI of an object store.

    Percent signs encode characters, as in pylance. Spellings of one place become one.

    Parameters
    ----------
    scheme : str
        A key of `PROVIDERS`.
    uri : str

    Raises
    ------
    InvalidInputError
        If the URI names no bucket, or a host that is not Azure's.
    """
    rest = uri.partition(":")[2]
    if not rest.startswith("//"):
        raise InvalidInputError(f"{uri} names no bucket; a path in an object store reads {scheme}://bucket/table")
    authority, _, path = rest[2:].partition("/")
    if "?" in uri or "#" in uri:
        raise InvalidInputError(f"{uri} has a query or a fragment, which objects do not have; write ? as %3F, # as %23")
    scheme = _CANONICAL.get(scheme, scheme)
    key = _normalize(uri, decode_path(uri, path))
    if "@" in authority:
        return _parse_azure(scheme, uri, authority, key)
    if scheme == "abfss":
        scheme = "az"  # Without an account in the URI the options name it.
    if not _BUCKET.fullmatch(authority):
        raise InvalidInputError(f"{uri} names no bucket; a path in an object store reads {scheme}://bucket/table")
    return CloudPlace(PROVIDERS[scheme], authority, f"{scheme}://{authority}", key)


def decode_path(uri: str, path: str) -> str:
    """Return the path of a URI with the characters that its percent signs encode.

    Raises
    ------
    InvalidInputError
        If they encode bytes that are no text, or a null character.
    """
    try:
        decoded = urllib.parse.unquote(path, errors="strict")
    except UnicodeDecodeError:
        decoded = "\0"
    if "\0" in decoded:
        raise InvalidInputError(f"{uri} is not a path: its codes, as %41, are not those of a text in UTF-8")
    return decoded


def _parse_azure(scheme: str, uri: str, authority: str, key: str) -> CloudPlace:
    container, _, host = authority.partition("@")
    found = _AZURE_HOST.fullmatch(host.lower())
    if PROVIDERS[scheme] != "az" or not _BUCKET.fullmatch(container):
        raise InvalidInputError(f"{scheme} URIs have no user before the bucket: only the bucket and a path")
    if not found and not _ONELAKE_HOST.fullmatch(host.lower()):
        raise InvalidInputError(
            f"{uri} names the host {host!r}; a path in Azure reads"
            " abfss://container@account.dfs.core.windows.net/table, or az://container/table with the option"
            " azure_storage_account_name"
        )
    prefix = f"abfss://{container}@{host.lower()}"
    return CloudPlace("az", container, prefix, key, found[1] if found else "onelake", host.lower())


def _normalize(uri: str, path: str) -> str:
    """Return a path without empty parts at its ends, and with `.` and `..` resolved, which no key may have."""
    parts: list[str] = []
    for part in path.strip("/").split("/"):
        if part == "..":
            if not parts:
                raise InvalidInputError(f"{uri} leads out of the bucket")
            parts.pop()
        elif part == "" and path.strip("/"):
            raise InvalidInputError(f"{uri} has an empty part, '//', which object stores cannot hold; leave it out")
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)
