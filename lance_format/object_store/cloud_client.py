"""Clients of object stores: one per bucket and options, shared by all tables of a process.

obstore runs its requests on own threads, which a fork does not copy: a child would wait for them forever. A forked
child is therefore refused a client if its parent had one.
"""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

from lance_format.errors import InvalidInputError, NotSupportedError, StorageError
from lance_format.object_store.cloud_credentials import aws_profile, load_provider
from lance_format.object_store.cloud_errors import Redaction
from lance_format.object_store.cloud_options import CloudOptions
from lance_format.object_store.cloud_places import CloudPlace
from lance_format.object_store.first_contact import FirstContact

_STORES = {"s3": "S3Store", "gs": "GCSStore", "az": "AzureStore"}
_DEFAULT_CLIENT = {"timeout": "120 s", "connect_timeout": "10 s"}
_REGION_HEADER = "x-amz-bucket-region"
_REGION_SECONDS = 5
_LACKING = {
    "Missing SecretAccessKey": "aws_access_key_id is given without aws_secret_access_key",
    "Missing AccessKeyId": "aws_secret_access_key is given without aws_access_key_id",
    "Account must be specified": "azure_storage_account_name is missing; give it, or a path that reads"
    " abfss://container@account.dfs.core.windows.net/table",
}
"""What obstore says of options that are missing, and what to do."""
_EXPRESS_SUFFIX = "--x-s3"


class _Forks:
    """The process that uses obstore, if any."""

    used_by: int | None = None
    is_broken = False

    @classmethod
    def note_child(cls) -> None:
        cls.is_broken = cls.used_by is not None


os.register_at_fork(after_in_child=_Forks.note_child)


def load_obstore(name: str = "obstore") -> Any:
    """Import obstore, which takes 20 ms, or a module of it.

    Raises
    ------
    NotSupportedError
        If it is not installed.
    StorageError
        If this process was forked from one that uses it.
    """
    if _Forks.is_broken:
        raise StorageError(
            "this process was forked from one that had used an object store, whose threads a fork does not copy; start"
            ' processes by multiprocessing.get_context("spawn"), or use object stores in the children only'
        )
    _Forks.used_by = os.getpid()
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotSupportedError(f"object stores need the package obstore: pip install obstore ({error})") from error


def make_client(place: CloudPlace, options: CloudOptions) -> tuple[Any, FirstContact]:
    """Return an obstore client of a bucket, and what to check before its first request.

    Parameters
    ----------
    place : CloudPlace
    options : CloudOptions

    Raises
    ------
    InvalidInputError
        If an option is malformed or contradicts the URI.
    NotSupportedError
        If obstore is not installed.
    """
    stores = load_obstore("obstore.store")
    config = {**options.config, **(_azure_config(place, options) if place.provider == "az" else {})}
    if not is_ordered(place):
        config["s3_express"] = "true"
    made_by = options.credential_provider
    provider = None if made_by is None else load_provider(made_by, options.provider_token)
    if place.provider == "s3" and provider is None:
        added, provider = aws_profile(config)
        config.update(added)
    if place.provider == "s3" and "region" not in config and not _has_region(options):
        config["region"] = _find_region(place.bucket)
    given = {} if provider is None else {"credential_provider": provider}
    contact = FirstContact.of(place, options, config, provider is not None)
    try:
        client = getattr(stores, _STORES[place.provider])(
            place.bucket,
            config=config,
            client_options={**_DEFAULT_CLIENT, **_client_of_environment(place), **options.client},
            retry_config=options.retry,
            **given,
        )
        return client, contact
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            values = [*options.secrets, *options.config.values(), *map(str, options.client.values())]
            text = Redaction(values).apply(str(error)).partition("\n\nDebug source")[0]
            text = next((remedy for mark, remedy in _LACKING.items() if mark in text), text)
            raise InvalidInputError(f"the storage options of {place.prefix} are not valid: {text}") from None
        raise


def _client_of_environment(place: CloudPlace) -> dict[str, str]:
    """Return the options of the HTTP client that environment variables set; obstore reads those of the store."""
    allow_http = os.environ.get("AWS_ALLOW_HTTP") if place.provider == "s3" else None
    return {} if allow_http is None else {"allow_http": allow_http}


def _azure_config(place: CloudPlace, options: CloudOptions) -> dict[str, str]:
    if place.account is None:
        return {}
    if options.config.get("account_name", place.account) != place.account:
        raise InvalidInputError(f"{place.prefix} names the account {place.account!r}, and the options another one")
    config = {"account_name": place.account}
    if place.account == "onelake":
        config["use_fabric_endpoint"] = "true"
    elif place.host is not None and not place.host.endswith(".windows.net") and "endpoint" not in options.config:
        config["endpoint"] = f"https://{place.host.replace('.dfs.', '.blob.', 1)}"
    return config


def _has_region(options: CloudOptions) -> bool:
    """Return whether a region is known, or means nothing."""
    if any(os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION")):
        return True
    return "default_region" in options.config or options.endpoint is not None


_regions: dict[str, str] = {}
_regions_lock = threading.Lock()


def _find_region(bucket: str, address: str = "https://{}.s3.amazonaws.com") -> str:
    """Ask AWS for the region of a bucket, which every reply to a request without credentials names."""
    import urllib.error  # Other storages do without them.
    import urllib.request

    with _regions_lock:
        if bucket not in _regions:
            request = urllib.request.Request(address.format(bucket), method="HEAD")
            try:
                with urllib.request.urlopen(request, timeout=_REGION_SECONDS) as reply:
                    _regions[bucket] = reply.headers.get(_REGION_HEADER) or "us-east-1"
            except urllib.error.HTTPError as error:
                with error:
                    _regions[bucket] = error.headers.get(_REGION_HEADER) or "us-east-1"
            except (OSError, ValueError):
                return "us-east-1"
        return _regions[bucket]


def is_ordered(place: CloudPlace) -> bool:
    """Return whether listings of a bucket are in the order of the keys; those of directory buckets are not."""
    return not (place.provider == "s3" and place.bucket.endswith(_EXPRESS_SUFFIX))
