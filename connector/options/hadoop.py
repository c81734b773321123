"""Settings of Hadoop's S3A, as options of the storage.

| `fs.s3a.` | storage option |
|---|---|
| `access.key`, `secret.key`, `session.token` | `aws_access_key_id`, `aws_secret_access_key`, `aws_session_token` |
| `endpoint`, `connection.ssl.enabled` | `aws_endpoint`, `allow_http` |
| `endpoint.region` | `aws_region` |
| `path.style.access` | the opposite of `aws_virtual_hosted_style_request` |
| `aws.credentials.provider` of anonymous requests | `aws_skip_signature` |

Settings of a bucket, `fs.s3a.bucket.<name>.…`, come first. Other settings have no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping

_CREDENTIALS = {
    "access.key": "aws_access_key_id",
    "secret.key": "aws_secret_access_key",
    "session.token": "aws_session_token",
}
SETTINGS = (
    *_CREDENTIALS,
    "endpoint",
    "endpoint.region",
    "path.style.access",
    "connection.ssl.enabled",
    "aws.credentials.provider",
)
"""The settings that have a counterpart, after `fs.s3a.`; `Hadoop.java` has the same."""
_CREDENTIAL_MARKS = ("access_key_id", "secret_access_key", "token", "skip_signature", "credential_provider")
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_OWN_HOST = ".amazonaws.com"


def translate(settings: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return storage options for settings of S3A, except where options are given.

    Parameters
    ----------
    settings : mapping of str to str
        By their names after `fs.s3a.`.
    given : mapping of str to str
        Storage options of the user. Credentials among them replace all credentials of Hadoop.

    Returns
    -------
    dict of str to str
        The given ones too.
    """
    found: dict[str, str] = {}
    if not any(mark in name for name in given for mark in _CREDENTIAL_MARKS):
        found.update((option, settings[name]) for name, option in _CREDENTIALS.items() if settings.get(name))
        if _ANONYMOUS in settings.get("aws.credentials.provider", ""):
            found = {"aws_skip_signature": "true"}
    if settings.get("endpoint.region"):
        found["aws_region"] = settings["endpoint.region"]
    if settings.get("path.style.access"):
        is_path_style = settings["path.style.access"].lower() == "true"
        found["aws_virtual_hosted_style_request"] = "false" if is_path_style else "true"
    found.update(_endpoint(settings))
    names = {_plain(name) for name in given}
    return {**{name: value for name, value in found.items() if _plain(name) not in names}, **given}


def _endpoint(settings: Mapping[str, str]) -> dict[str, str]:
    address = settings.get("endpoint", "")
    if not address or address.endswith(_OWN_HOST):  # An endpoint of Amazon's follows from the region.
        return {}
    if "://" not in address:
        is_plain = settings.get("connection.ssl.enabled", "").lower() == "false"
        address = f"{'http' if is_plain else 'https'}://{address}"
    return {"aws_endpoint": address, **({"allow_http": "true"} if address.startswith("http://") else {})}


def _plain(name: str) -> str:
    plain = name.removeprefix("aws_")
    return "endpoint" if plain.startswith("endpoint_url") else plain
