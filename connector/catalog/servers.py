"""Who keeps the names and places of a catalog's tables, if no directory does: the kinds, and the settings of each.

A kind is one row of `_KINDS`, whose name is the setting `impl`. All have `parent`, the namespace that is the root of
the catalog, and `storage.…`, options of the storage of their tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from connector.options.storage import STORAGE_PREFIX
from lance_format import GlueNamespace, HiveNamespace, InvalidInputError, Namespace, RestNamespace
from lance_format.lazy_dataclasses import dataclass

_HEADERS = "headers."
_POOL_SIZE = "client.pool-size"
_PARENT, _PARENT_DELIMITER = "parent", "parent_delimiter"


@dataclass(frozen=True, slots=True)
class CatalogServer:
    """A namespace, and the part of it that a catalog shows.

    Parameters
    ----------
    namespace : Namespace
    root : tuple of str
        The name in it of the catalog's root.
    storage : mapping of str to str
        Options of the storage of all tables; those of a table come first.
    """

    namespace: Namespace
    root: tuple[str, ...]
    storage: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of namespaces.

    Parameters
    ----------
    what : str
        What a catalog of this kind is on.
    needed : mapping of str to str
        Settings that must be there, and what each is.
    others : tuple of str
        Settings that may be there; those that end with a dot are the beginnings of names.
    make : callable
        Returns a namespace, given its settings and the options of the storage.
    """

    what: str
    needed: Mapping[str, str]
    others: tuple[str, ...]
    make: Callable[[dict[str, str], dict[str, str]], Namespace]


def connect(catalog: str, settings: Mapping[str, str]) -> CatalogServer:
    """Return the server of a catalog.

    Parameters
    ----------
    catalog : str
    settings : mapping of str to str
        Those of the catalog, by their names after its own in lower case.

    Raises
    ------
    InvalidInputError
        If a setting is missing, wrong or unknown.
    """

    def refused(name: str, why: str) -> InvalidInputError:
        return InvalidInputError(f"spark.sql.catalog.{catalog}.{name} {why}")

    found = dict(settings)
    impl = found.pop("impl")
    kind = _KINDS.get(impl.lower())
    if kind is None:
        raise refused(
            "impl", f"is {impl}; a catalog of Lance tables is one of dir, a directory, or of {', '.join(_KINDS)}"
        )
    storage = _within(STORAGE_PREFIX, found)
    parent, delimiter = found.pop(_PARENT, ""), found.pop(_PARENT_DELIMITER, ".")
    allowed = (*kind.needed, *kind.others)
    for name in found:
        if name not in allowed and not name.startswith(tuple(other for other in allowed if other.endswith("."))):
            named = ", ".join(other if not other.endswith(".") else f"{other}…" for other in (*allowed, _PARENT))
            raise refused(name, f"is set, but a catalog on {kind.what} has {named}, {_PARENT_DELIMITER} and storage.…")
    for name, what in kind.needed.items():
        if name not in found:
            raise refused(name, f"is missing: it is {what}")
    root = tuple(parent.split(delimiter)) if parent else ()
    return CatalogServer(kind.make(found, storage), root, storage)


def _on_rest(settings: dict[str, str], _storage: dict[str, str]) -> Namespace:
    return RestNamespace(headers=_within(_HEADERS, settings), **settings)


def _on_glue(settings: dict[str, str], storage: dict[str, str]) -> Namespace:
    retries = settings.pop("max_retries", None)
    if retries is not None and not retries.isdecimal():
        raise InvalidInputError(f"max_retries is {retries!r}; a whole number is needed")
    given: dict[str, Any] = {**settings, "storage_options": storage}
    return GlueNamespace(max_retries=None if retries is None else int(retries), **given)


def _on_hive(settings: dict[str, str], storage: dict[str, str]) -> Namespace:
    settings.pop(_POOL_SIZE, None)  # Each question has its own connection.
    return HiveNamespace(storage_options=storage, **settings)


def _within(prefix: str, settings: dict[str, str]) -> dict[str, str]:
    """Take the settings out whose names start with a prefix, and return them without it."""
    names = [name for name in settings if name.startswith(prefix)]
    return {name.removeprefix(prefix): settings.pop(name) for name in names}


_KINDS = {
    "rest": _Kind("a server", {"uri": "the address of the server"}, ("delimiter", _HEADERS), _on_rest),
    "glue": _Kind(
        "AWS Glue",
        {},
        (
            "region",
            "endpoint",
            "catalog_id",
            "access_key_id",
            "secret_access_key",
            "session_token",
            "profile_name",
            "max_retries",
            "retry_mode",
            "root",
        ),
        _on_glue,
    ),
    "hive2": _Kind(
        "a Hive metastore",
        {"uri": "the address of the metastore, thrift://host:9083"},
        ("ugi", "root", _POOL_SIZE),
        _on_hive,
    ),
}
