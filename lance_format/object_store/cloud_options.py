"""Options of object stores, in the names of pylance, as obstore takes them.

Names are those of the `object_store` library, with or without the prefix of the cloud, in any case: `aws_region`,
`region`, `AWS_REGION`. Options of other clouds are ignored, since a session may have options of several. Any other name
that is unknown is refused. Values never appear in messages.
"""

from __future__ import annotations

import datetime
import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store.store import ALLOWED_BASE_PATHS

PREFIXES = {"s3": ("aws_",), "gs": ("google_", "gcs_"), "az": ("azure_storage_", "azure_")}
CREDENTIAL_PROVIDER = "credential_provider"
PROVIDER_TOKEN = "credential_provider_token"

_LANCE_RETRIES = ("client_max_retries", "client_retry_timeout")
_IGNORED = frozenset({"download_retry_count", "expires_at_millis", "refresh_offset_millis", ALLOWED_BASE_PATHS})
_CLIENT = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "http1_only",
        "http2_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
_CLIENT_ALIASES = {"request_timeout": "timeout"}
_CONFIG = {
    "s3": (
        "access_key_id secret_access_key session_token token region default_region endpoint endpoint_url"
        " endpoint_url_s3 bucket checksum_algorithm conditional_put container_credentials_relative_uri"
        " container_credentials_full_uri container_authorization_token_file copy_if_not_exists disable_tagging"
        " disable_bulk_delete imdsv1_fallback metadata_endpoint request_payer role_arn role_session_name s3_express"
        " server_side_encryption skip_signature sse_bucket_key_enabled sse_customer_key_base64 sse_kms_key_id"
        " sts_endpoint endpoint_url_sts unsigned_payload virtual_hosted_style_request web_identity_token_file"
    ),
    "gs": (
        "service_account service_account_path service_account_key application_credentials base_url bearer_token bucket"
        " bucket_name skip_signature"
    ),
    "az": (
        "account_name account_key access_key master_key client_id client_secret tenant_id authority_id authority_host"
        " credential_type sas_key sas_token token bearer_token use_emulator use_fabric_endpoint encryption_key endpoint"
        " msi_endpoint identity_endpoint object_id msi_resource_id federated_token_file use_azure_cli skip_signature"
        " container_name disable_tagging fabric_token_service_url fabric_workload_host fabric_session_token"
        " fabric_cluster_identifier"
    ),
}
_NAMES = {provider: frozenset(names.split()) for provider, names in _CONFIG.items()}
_ALIASES = {"s3": {"endpoint_url": "endpoint", "endpoint_url_s3": "endpoint"}, "gs": {}, "az": {}}
_SECRET_MARKS = ("key", "secret", "token", "sas", "password", "credential", "customer")
_NOT_SECRET = ("sse_kms_key_id", "sse_bucket_key_enabled", "token_file", "credential_type", CREDENTIAL_PROVIDER)
_DEFAULT_RETRIES = 10
_DEFAULT_RETRY_SECONDS = 180
_BACKOFF = {
    "init_backoff": datetime.timedelta(milliseconds=200),
    "base": 8.0,
    "max_backoff": datetime.timedelta(seconds=5),
}
"""Pauses between the attempts of a request. The first is the initial one; each of the others is a random time between
the initial one and the last one times the base, up to the maximum. Ten of them take 36 s on average, and less than 13 s
once in a thousand requests: longer than servers usually ask for by `Retry-After`, which the library does not read. Its
own defaults (100 ms, 2, 15 s) take 3 s on average.
"""
_ADDRESSES = ("endpoint", "base_url", "metadata_endpoint")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_URL = re.compile(r"(?i)https?://[^/\s]+")
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


@dataclass(frozen=True, slots=True)
class CloudOptions:
    """Options of a store, divided by what takes them.

    Parameters
    ----------
    config : dict of str to str
        Options of the store proper; names without the prefix of the cloud.
    client : dict of str to str
        Options of the HTTP client.
    retry : dict
        Limits of the retries of a request.
    credential_provider : str, optional
        `module:name` of a callable that returns credentials, or of a class of such objects.
    provider_token : str, optional
        What it is made from: the callable is called with it, and returns the one that returns credentials.
    secrets : tuple of str
        Values that no message may show.
    """

    config: dict[str, str] = field(repr=False)
    client: dict[str, Any] = field(repr=False)
    retry: dict[str, Any]
    credential_provider: str | None
    provider_token: str | None = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def parse(cls, provider: str, options: Mapping[str, str]) -> CloudOptions:
        """Divide options, and refuse unknown ones.

        Parameters
        ----------
        provider : str
            `s3`, `gs` or `az`.
        options : mapping of str to str

        Raises
        ------
        InvalidInputError
            If a name is unknown, is given twice, or its value is malformed.
        NotSupportedError
            If they turn off the conditional puts that commits need.
        """
        config: dict[str, str] = {}
        client: dict[str, Any] = {}
        retries: dict[str, str] = {}
        headers: dict[str, str] = {}
        for name, value in options.items():
            lower = name.lower()
            plain = _without_prefix(provider, lower)
            if lower in (*_IGNORED, CREDENTIAL_PROVIDER, PROVIDER_TOKEN) or _is_of_another(provider, lower):
                continue
            if lower.startswith("headers."):
                headers[lower.removeprefix("headers.")] = value
            elif lower in _LANCE_RETRIES:
                retries[lower] = value
            elif plain in _CLIENT or plain in _CLIENT_ALIASES:
                client[_CLIENT_ALIASES.get(plain, plain)] = value
            elif plain in _NAMES[provider]:
                plain = _ALIASES[provider].get(plain, plain)
                if config.setdefault(plain, value) != value:
                    raise InvalidInputError(f"the storage option {plain!r} is given twice, with different values")
            else:
                raise InvalidInputError(_unknown(provider, lower))
        if headers:
            client["default_headers"] = headers
        made_by, made_from = _find(options, CREDENTIAL_PROVIDER), _find(options, PROVIDER_TOKEN)
        found = cls(config, client, _retry(retries), made_by, made_from, _secrets(options))
        _check(provider, config, client, found.endpoint if provider == "s3" else None)
        return found

    @property
    def endpoint(self) -> str | None:
        """The address of a store that is not the cloud's own: by option or by environment."""
        found = (self.config.get("endpoint"), *(os.environ.get(name) for name in _ENDPOINT_VARIABLES))
        return next((address for address in found if address), None)


def known_options(provider: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that a store takes, without those that are unknown.

    Parameters
    ----------
    provider : {"s3", "gs", "az"}
    options : mapping of str to str
    """
    return {name: value for name, value in options.items() if _is_known(provider, name.lower())}


def _is_known(provider: str, name: str) -> bool:
    plain = _without_prefix(provider, name)
    return (
        name in (*_IGNORED, *_LANCE_RETRIES, CREDENTIAL_PROVIDER, PROVIDER_TOKEN)
        or name.startswith("headers.")
        or plain in _CLIENT
        or plain in _CLIENT_ALIASES
        or plain in _NAMES[provider]
    )


def flag(value: str | None) -> bool:
    """Return whether an option is set to true."""
    return value is not None and str(value).strip().lower() in ("true", "1", "yes", "on", "t", "y")


def _without_prefix(provider: str, name: str) -> str:
    for prefix in PREFIXES[provider]:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name.removeprefix("storage_") if provider == "az" else name


def _is_of_another(provider: str, name: str) -> bool:
    return any(name.startswith(prefix) for other, found in PREFIXES.items() if other != provider for prefix in found)


def _unknown(provider: str, name: str) -> str:
    prefix = PREFIXES[provider][0]
    known = {*_CLIENT, *_LANCE_RETRIES, CREDENTIAL_PROVIDER, *(f"{prefix}{known}" for known in _NAMES[provider])}
    close = difflib.get_close_matches(name, [*known, *_NAMES[provider]], n=1, cutoff=0.7)
    hint = f"did you mean {close[0]!r}?" if close else "docs/object_stores.md lists those that exist"
    return f"unknown storage option {name!r}: {hint}"


def _check(provider: str, config: Mapping[str, str], client: Mapping[str, Any], endpoint: str | None) -> None:
    texts = {f"{PREFIXES[provider][0]}{name}": value for name, value in config.items() if name != "service_account_key"}
    texts |= {f"headers.{name}": value for name, value in client.get("default_headers", {}).items()}
    for name, value in texts.items():
        if _CONTROL.search(value):
            raise InvalidInputError(
                f"the storage option {name} has a line break or another control character; remove it"
            )
    if config.get("conditional_put", "").strip().lower() == "disabled":
        raise NotSupportedError(
            "aws_conditional_put is disabled, but commits need it: two writers would replace each other's versions;"
            " leave the option out, or use a store that supports If-None-Match"
        )
    permits_http = flag(client.get("allow_http") or os.environ.get("AWS_ALLOW_HTTP"))
    addresses = {name: config[name] for name in _ADDRESSES if name in config} | (
        {"endpoint": endpoint} if endpoint else {}
    )
    for name, address in addresses.items():
        shown = address.partition("?")[0].rpartition("@")[2]
        if not _URL.match(address):
            raise InvalidInputError(
                f"the storage option {PREFIXES[provider][0]}{name} is {shown!r}; it must begin with https://, or with"
                " http:// if allow_http is true"
            )
        if name != "metadata_endpoint" and address.lower().startswith("http://") and not permits_http:
            raise InvalidInputError(
                f"the endpoint {shown} is not encrypted; set the storage option allow_http to true to permit that, or"
                " use https://"
            )


def _retry(given: Mapping[str, str]) -> dict[str, Any]:
    def number(name: str, default: int, parse: Callable[[str], int]) -> int:
        try:
            found = parse(str(given.get(name, default)))
        except ValueError:
            found = -1
        if found < 0:
            raise InvalidInputError(f"the storage option {name!r} must be a whole number from 0 on")
        return found

    return {
        "backoff": _BACKOFF,
        "max_retries": number("client_max_retries", _DEFAULT_RETRIES, int),
        "retry_timeout": datetime.timedelta(seconds=number("client_retry_timeout", _DEFAULT_RETRY_SECONDS, int)),
    }


def _find(options: Mapping[str, str], wanted: str) -> str | None:
    return next((value for name, value in options.items() if name.lower() == wanted), None)


def _secrets(options: Mapping[str, str]) -> tuple[str, ...]:
    found = []
    for name, value in options.items():
        lower = name.lower()
        is_secret = any(mark in lower for mark in _SECRET_MARKS) and not lower.endswith(_NOT_SECRET)
        if is_secret or lower.startswith("headers."):
            found.append(str(value))
    return tuple(found)
