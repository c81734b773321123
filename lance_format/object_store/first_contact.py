"""Checks before the first request of a store: mistakes that never heal, for which its retries would take minutes.

A misspelt address or account has no server, and a machine without credentials has no metadata service that would issue
some. Behind an HTTP proxy nothing is checked, because only the proxy knows what can be reached.
"""

from __future__ import annotations

import os
import socket
import time
import urllib.parse
from collections.abc import Mapping

from lance_format.errors import StorageError
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store.cloud_errors import NO_CREDENTIALS
from lance_format.object_store.cloud_options import PREFIXES, CloudOptions
from lance_format.object_store.cloud_places import CloudPlace

_PAUSES = (0.5, 1.0, 0.0)
"""Seconds after each failed attempt: names may be unknown for a moment."""
_CONNECT_SECONDS = 10.0
_METADATA_SECONDS = 2.0
_METADATA = "http://169.254.169.254"
_METADATA_OF_GOOGLE = "http://metadata.google.internal"
_NO_SOURCE = {
    "s3": {"region", "default_region", "endpoint", "metadata_endpoint", "bucket", "virtual_hosted_style_request"},
    "gs": {"base_url", "bucket", "bucket_name"},
    "az": {"account_name", "endpoint", "container_name", "authority_host", "authority_id", "msi_endpoint"},
}
"""Options that say nothing of credentials; with any other one the metadata service may not be needed."""
_SOURCES = {
    "s3": ("AWS_ACCESS", "AWS_SECRET", "AWS_WEB_IDENTITY", "AWS_CONTAINER", "AWS_SKIP_SIGNATURE", "AWS_PROFILE"),
    "gs": ("GOOGLE_",),
    "az": ("AZURE_", "IDENTITY_", "MSI_"),
}
"""Beginnings of the names of environment variables that may give credentials."""


@dataclass(frozen=True, slots=True)
class FirstContact:
    """Addresses that a store needs.

    Parameters
    ----------
    prefix : str
        URI of the bucket.
    address : str, optional
        URL of the store; None if it is not checked.
    chosen_by : str
        Names the setting that chose the address.
    metadata : str, optional
        URL of the metadata service, if nothing else could give credentials.
    provider : str
        `s3`, `gs` or `az`.
    """

    prefix: str
    address: str | None
    chosen_by: str
    metadata: str | None
    provider: str

    @classmethod
    def of(
        cls, place: CloudPlace, options: CloudOptions, config: Mapping[str, str], has_provider: bool
    ) -> FirstContact:
        """Return what a store needs.

        Parameters
        ----------
        place : CloudPlace
        options : CloudOptions
        config : mapping of str to str
            The options of the store, completed.
        has_provider : bool
            Whether a credential provider gives the credentials.
        """
        from urllib.request import getproxies  # Importing it takes 40 ms, which tables on disks avoid.

        has_proxy = "proxy_url" in options.client or bool(getproxies())
        address, chosen_by = (None, "") if has_proxy else _address(place, options, config)
        needs_metadata = not has_proxy and not has_provider and not _has_source(place.provider, config)
        metadata = _metadata(place.provider, config) if needs_metadata else None
        return cls(place.prefix, address, chosen_by, metadata, place.provider)

    def check(self) -> None:
        """Raise `StorageError` if one of the addresses has no server."""
        if self.address is not None:
            reason = _try_to_connect(self.address, _CONNECT_SECONDS)
            if reason:
                host = urllib.parse.urlsplit(self.address).netloc.rpartition("@")[2]
                raise StorageError(
                    f"cannot reach {self.prefix}: the store does not answer at {host} ({reason}); check its address,"
                    f" which is that of {self.chosen_by}, and the network"
                )
        if self.metadata is None or not _try_to_connect(self.metadata, _METADATA_SECONDS):
            return
        if self.metadata != _METADATA_OF_GOOGLE or not _is_google_without_its_name():
            raise StorageError(f"cannot reach {self.prefix}: {NO_CREDENTIALS[self.provider]}")


def _address(place: CloudPlace, options: CloudOptions, config: Mapping[str, str]) -> tuple[str | None, str]:
    prefix = PREFIXES[place.provider][0]
    if place.provider == "s3":
        region = config.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if options.endpoint is not None:
            return options.endpoint, f"the storage option {prefix}endpoint"
        if region is None or region.startswith("cn-") or "s3_express" in config:
            return None, ""
        return f"https://s3.{region}.amazonaws.com", f"the region {region!r} (storage option {prefix}region)"
    if place.provider == "gs":
        return config.get("base_url"), f"the storage option {prefix}base_url"
    if "endpoint" in config:
        return config["endpoint"], f"the storage option {prefix}endpoint"
    account = config.get("account_name")
    if account is None or account == "onelake" or "use_emulator" in config or "use_fabric_endpoint" in config:
        return None, ""
    return f"https://{account}.blob.core.windows.net", f"the account {account!r}"


def _has_source(provider: str, config: Mapping[str, str]) -> bool:
    """Return whether credentials may be found without the metadata service."""
    if config.keys() - _NO_SOURCE[provider]:
        return True
    gcloud = os.path.expanduser("~/.config/gcloud/application_default_credentials.json")  # noqa: PTH111
    if provider == "gs" and os.path.exists(gcloud):  # noqa: PTH110
        return True
    return any(name.upper().startswith(_SOURCES[provider]) for name, value in os.environ.items() if value)


def _metadata(provider: str, config: Mapping[str, str]) -> str:
    if provider == "s3":
        return config.get("metadata_endpoint") or os.environ.get("AWS_METADATA_ENDPOINT") or _METADATA
    if provider == "az":
        return config.get("msi_endpoint") or _METADATA
    host = os.environ.get("GCE_METADATA_HOST")
    return f"http://{host}" if host else _METADATA_OF_GOOGLE


def _is_google_without_its_name() -> bool:
    """Return whether the metadata service of Google answers at its address, on a machine with names of its own."""
    import urllib.request

    try:
        with urllib.request.urlopen(_METADATA, timeout=_METADATA_SECONDS) as reply:
            return str(reply.headers.get("Metadata-Flavor")) == "Google"
    except (OSError, ValueError):
        return False


def _try_to_connect(url: str, seconds: float) -> str:
    """Connect to the server of a URL; return why that fails, or an empty string."""
    parts = urllib.parse.urlsplit(url)
    reason = ""
    for pause in _PAUSES:
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            socket.create_connection((parts.hostname or "", port), timeout=seconds).close()
        except TimeoutError:
            return f"no answer within {seconds:g} s"
        except socket.gaierror:
            reason = "no such host"
        except (OSError, ValueError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
        else:
            return ""
        time.sleep(pause)
    return reason.lower()
