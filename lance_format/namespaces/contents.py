"""What namespaces hold, wherever they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamespaceListing:
    """Content of a namespace, in order.

    Parameters
    ----------
    namespaces, tables : tuple of str
        Names. Those of tables lack the suffix of their directories.
    """

    namespaces: tuple[str, ...]
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TablePlace:
    """The place of the table of a name, and how to reach it.

    Parameters
    ----------
    uri : str
        Of its directory.
    storage_options : mapping of str to str
        Options of the storage. They may hold secrets.
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
