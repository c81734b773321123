"""Credentials of object stores: of a provider that an option names, of a profile of AWS, or of the clouds' chains.

The chains are those of the `object_store` library: environment variables, web identities (of pods), and the metadata
services of containers and instances. It has no profiles of AWS, so these are read here.
"""

from __future__ import annotations

import configparser
import datetime
import functools
import importlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lance_format.errors import InvalidInputError, StorageError

_STATIC = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_CHAIN_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_KEPT = datetime.timedelta(minutes=6)
"""Life time of the keys of a profile, as obstore is told. It asks again five minutes before the end: every minute. Keys
of boto3 live for ten minutes at least."""
_CHAIN_OPTIONS = frozenset(
    {
        "access_key_id",
        "web_identity_token_file",
        "container_credentials_relative_uri",
        "container_credentials_full_uri",
        "skip_signature",
    }
)


def load_provider(name: str, token: str | None = None) -> Any:
    """Return the credential provider of an option.

    It is called on every process that needs credentials, and again before those that it returned expire.

    Parameters
    ----------
    name : str
        `module:name` of a function that returns credentials as obstore's providers do, or of a class of such objects.
    token : str, optional
        What the function or the class makes the provider from.

    Raises
    ------
    InvalidInputError
        If there is none of that name.
    """
    module, found, attribute = name.partition(":")
    if not found or not module or not attribute:
        raise InvalidInputError(f"the storage option credential_provider is {name!r}; it reads module:function")
    try:
        provider = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(
            f"the credential provider {name!r} cannot be imported ({error}); it must be importable on the driver and"
            " on every executor"
        ) from error
    if token is not None and callable(provider):
        made = provider(token)
    else:
        made = provider() if isinstance(provider, type) else provider
    if not callable(made):
        raise InvalidInputError(f"the credential provider {name!r} is not callable")
    return made


def aws_profile(config: Mapping[str, str]) -> tuple[dict[str, str], Any]:
    """Return the options that a profile of AWS adds to those given, and a credential provider if it needs one.

    Parameters
    ----------
    config : mapping of str to str
        Options of the store, without prefixes.

    Returns
    -------
    dict of str to str
        Empty if there are other credentials, or no profile.
    object or None

    Raises
    ------
    StorageError
        If the profile does not exist, or has no keys and boto3, which would find them, is missing.
    """
    if _CHAIN_OPTIONS & config.keys() or any(os.environ.get(name) for name in _CHAIN_VARIABLES):
        return {}, None
    wanted = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    name = wanted or "default"
    found = _profile(name)
    if not found:
        if wanted:
            raise StorageError(f"AWS_PROFILE is {wanted!r}, but the files of ~/.aws have no such profile")
        return {}, None
    keys = {option.removeprefix("aws_"): found[option] for option in _STATIC if option in found}
    has_region = found.get("region") and "region" not in config and not os.environ.get("AWS_REGION")
    added = {"region": found["region"]} if has_region else {}
    if "session_token" in keys:  # They expire, and programs that renew them write the file again.
        return added, _renewed(functools.partial(_read_keys, name))
    if "access_key_id" in keys:
        return {**added, **keys}, None
    return added, _boto3_provider(name) if _names_a_source(found) else None


def _renewed(find: Callable[[], dict[str, str | None]]) -> Callable[[], dict[str, object]]:
    """Return a credential provider that looks keys up every minute, because nothing else tells when they change."""

    def provide() -> dict[str, object]:
        return {**find(), "expires_at": datetime.datetime.now(datetime.UTC) + _KEPT}

    return provide


def _read_keys(name: str) -> dict[str, str | None]:
    """Return the keys in a profile."""
    found = _profile(name)
    absent = [option for option in _STATIC[:2] if option not in found]
    if absent:
        raise StorageError(f"the AWS profile {name!r} has lost its {absent[0]}; log in again, or choose another")
    return {
        "access_key_id": found["aws_access_key_id"],
        "secret_access_key": found["aws_secret_access_key"],
        "token": found.get("aws_session_token"),
    }


def _profile(name: str) -> dict[str, str]:
    keys = _section("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name)
    settings = _section("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}")
    return {**settings, **keys}


def _names_a_source(settings: Mapping[str, str]) -> bool:
    return any(name.startswith(("sso_", "role_arn", "credential_process", "login_session")) for name in settings)


def _boto3_provider(profile: str) -> Any:
    try:
        credentials = importlib.import_module("boto3.session").Session(profile_name=profile).get_credentials()
    except ImportError as error:
        raise StorageError(
            f"the AWS profile {profile!r} takes its credentials from elsewhere (SSO, a role, a process), for which"
            " boto3 is needed: pip install boto3"
        ) from error
    except Exception as error:  # Errors of boto3 have no common root.
        raise StorageError(
            f"the AWS profile {profile!r} gives no credentials ({type(error).__name__}); log in again, or choose"
            " another"
        ) from error
    if credentials is None:
        raise StorageError(f"the AWS profile {profile!r} gives no credentials; log in again, or choose another")

    def freeze() -> dict[str, str | None]:
        keys = credentials.get_frozen_credentials()  # boto3 renews them if their end is near.
        return {"access_key_id": keys.access_key, "secret_access_key": keys.secret_key, "token": keys.token}

    return _renewed(freeze)


def _section(variable: str, default: str, name: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(Path(os.environ.get(variable) or default).expanduser(), encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, RuntimeError):
        return {}
    return dict(parser[name]) if parser.has_section(name) else {}
