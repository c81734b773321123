"""Actions of a catalog whose names and places a server keeps; its option `__lance.server` says which.

They take `id`, the parts of the name of a table or namespace in the catalog, and otherwise what those of directories
take. See `connector.catalog.actions`; what is not here is done to the table itself, at its place.

============== ============================ ==========================================================================
action         takes                        does
============== ============================ ==========================================================================
`locate`                                    `path` and `storage` of a table; nothing if there is none
`declare`      `location`                   the same of a table to be created, or replaced, and `is_new`; `occupied` if
                                            another table is where it would be, and then the name is given up
`abandon`                                   gives up a table that was only declared
`exists`                                    `exists`: whether there is a namespace
`about`                                     `properties` of a namespace; nothing if there is none
============== ============================ ==========================================================================
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from connector.catalog.servers import CatalogServer, connect
from connector.options.storage import write_storage
from connector.protocol import SERVER
from lance_format import DatasetNotFoundError, LanceDataset, TablePlace, dataset


@functools.lru_cache(maxsize=16)
def _connected(server: str) -> CatalogServer:
    """Return a server, which keeps its connections and the credentials that it was lent."""
    found = json.loads(server)
    return connect(found["catalog"], found["settings"])


def act_on_server(action: str, given: Mapping[str, str], details: Any) -> dict[str, Any]:
    """Do an action; see above.

    Parameters
    ----------
    action : str
    given : mapping of str to str
        Options by their names in lower case.
    details : object
        The arguments.
    """
    server = _connected(given[SERVER])
    named = {name: [*server.root, *details[name]] for name in ("id", "to") if name in details}
    return _ACTIONS[action](server, {**details, **named})


def _exists(server: CatalogServer, details: Any) -> dict[str, Any]:
    return {"exists": server.namespace.exists(details["id"])}


def _list(server: CatalogServer, details: Any) -> dict[str, Any]:
    found = server.namespace.listing(details["id"])
    if found is None:
        return {"exists": False, "namespaces": [], "tables": []}
    return {"exists": True, "namespaces": found.namespaces, "tables": found.tables}


def _make(server: CatalogServer, details: Any) -> dict[str, Any]:
    server.namespace.create(details["id"], details["properties"])
    return {}


def _about(server: CatalogServer, details: Any) -> dict[str, Any]:
    found = server.namespace.properties(details["id"])
    return {} if found is None else {"properties": found}


def _remove(server: CatalogServer, details: Any) -> dict[str, Any]:
    return {"removed": server.namespace.remove(details["id"], cascade=details["cascade"])}


def _locate(server: CatalogServer, details: Any) -> dict[str, Any]:
    return _answer(server.namespace.find(details["id"]))


def _declare(server: CatalogServer, details: Any) -> dict[str, Any]:
    """A table that is there is replaced, and one that was only declared gets its rows."""
    place, is_new = server.namespace.reserve(details["id"], details["location"])
    with contextlib.ExitStack() as given_up:
        if is_new:
            given_up.callback(server.namespace.deregister, details["id"])
            if _open(server, place) is not None:
                return {"occupied": place.uri}
        given_up.pop_all()
    return {**_answer(place), "is_new": is_new}


def _answer(place: TablePlace | None) -> dict[str, Any]:
    return {} if place is None else {"path": place.uri, "storage": write_storage(place.storage_options)}


def _abandon(server: CatalogServer, details: Any) -> dict[str, Any]:
    """The write may have made a table although it failed, or another program one: it stays."""
    place = server.namespace.find(details["id"])
    if place is not None and _open(server, place) is None:
        server.namespace.deregister(details["id"])
    return {}


def _open(server: CatalogServer, place: TablePlace) -> LanceDataset | None:
    try:
        return dataset(place.uri, storage_options={**server.storage, **place.storage_options})
    except DatasetNotFoundError:
        return None


def _drop(server: CatalogServer, details: Any) -> dict[str, Any]:
    (server.namespace.drop if details["purge"] else server.namespace.deregister)(details["id"])
    return {}


def _rename(server: CatalogServer, details: Any) -> dict[str, Any]:
    server.namespace.rename(details["id"], details["to"])
    return {}


_ACTIONS: dict[str, Callable[[CatalogServer, Any], dict[str, Any]]] = {
    "exists": _exists,
    "list": _list,
    "make": _make,
    "about": _about,
    "remove": _remove,
    "locate": _locate,
    "declare": _declare,
    "abandon": _abandon,
    "drop": _drop,
    "rename": _rename,
}
