"""Actions of a catalog that its Java classes have Python do.

Each action takes options (names in lower case), which name the table or directory, and a JSON object with its other
arguments. It returns a JSON object.

============== ============================ ==========================================================================
action         takes                        does
============== ============================ ==========================================================================
`list`                                      `exists`, `namespaces` and `tables` of a directory
`make`                                      creates a namespace
`remove`       `cascade`                    removes one; `removed` is false if it is not empty
`find`         `by_path`                    `state`: `table`, `dropped` or `absent`
`describe`                                  `properties` of the version that the options name
`create`       `mode`, `properties`, schema creates a table without rows, or replaces one
`drop`         `purge`                      drops a table
`rename`       `to`                         renames a table
`alter`        `changes`                    alters a table; see `connector.catalog.alterations`
`evolve`       `changes`                    checks that a write of rows can add columns
`truncate`                                  deletes all rows
`indices`                                   `indices`, of each the `name`, `type` and `fields`
`procedures`                                `procedures` as declared; see `connector.procedures.registry`
`call`         `procedure`, `arguments`     runs a procedure; returns `schema` and `rows`
============== ============================ ==========================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.types import StructType

from connector.catalog.alterations import alter, check_new_columns
from connector.catalog.properties import describe_properties, split_properties
from connector.metadata.reading import refuse_writing
from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at, open_committed, open_snapshot
from connector.procedures.registry import call, declare
from connector.protocol import ACTION, DETAILS, SERVER
from connector.write.empty_table import write_empty
from lance_format import DatasetNotFoundError, LanceDataset, NamespaceDirectory, VersionNotFoundError


def act(given: Mapping[str, str], schema: StructType | None) -> dict[str, Any]:
    """Do the action that the option `__lance.action` names; see above.

    Parameters
    ----------
    given : mapping of str to str
        Options by their names in lower case.
    schema : StructType, optional
        Columns of a table to be created.
    """
    action, details = given[ACTION], json.loads(given.get(DETAILS, "{}"))
    if SERVER in given:
        from connector.catalog.server_actions import act_on_server  # Other catalogs need no client.

        return act_on_server(action, given, details)
    return _ACTIONS[action](given, details, schema)


def _list(given: Mapping[str, str], _details: Any, _schema: Any) -> dict[str, Any]:
    found = _namespace(given).listing()
    if found is None:
        return {"exists": False, "namespaces": [], "tables": []}
    return {"exists": True, "namespaces": found.namespaces, "tables": found.tables}


def _make(given: Mapping[str, str], _details: Any, _schema: Any) -> dict[str, Any]:
    _namespace(given).create()
    return {}


def _remove(given: Mapping[str, str], details: Any, _schema: Any) -> dict[str, Any]:
    return {"removed": _namespace(given).remove(cascade=details["cascade"])}


def _namespace(given: Mapping[str, str]) -> NamespaceDirectory:
    options = LanceOptions.parse(given)
    return NamespaceDirectory(options.path, options.storage)


def _find(given: Mapping[str, str], details: Any, _schema: Any) -> dict[str, Any]:
    options = LanceOptions.parse(given)
    if not _has_table(options):
        return {"state": "absent"}
    is_dropped = not details["by_path"] and NamespaceDirectory.is_dropped(options.path, options.storage)
    return {"state": "dropped" if is_dropped else "table"}


def _has_table(options: LanceOptions) -> bool:
    """Return whether there is the table that options name, dropped or not, and its branch if they name one."""
    try:
        open_at(options, branch_uri(options))
    except (DatasetNotFoundError, VersionNotFoundError):
        return False
    return True


def _describe(given: Mapping[str, str], _details: Any, _schema: Any) -> dict[str, Any]:
    return {"properties": describe_properties(open_snapshot(LanceOptions.parse(given)))}


def _create(given: Mapping[str, str], details: Any, schema: StructType | None) -> dict[str, Any]:
    named, config = split_properties(details["properties"])
    options = LanceOptions.parse({**given, **named})
    write_empty(options, schema or StructType(), details["mode"], config)
    return {}


def _drop(given: Mapping[str, str], details: Any, _schema: Any) -> dict[str, Any]:
    drop = LanceDataset.drop if details["purge"] else NamespaceDirectory.mark_dropped
    drop(given["path"], LanceOptions.parse(given).storage)
    return {}


def _rename(given: Mapping[str, str], details: Any, _schema: Any) -> dict[str, Any]:
    NamespaceDirectory.rename_table(given["path"], details["to"], LanceOptions.parse(given).storage)
    return {}


def _alter(given: Mapping[str, str], details: Any, _schema: Any) -> dict[str, Any]:
    options = LanceOptions.parse(given)
    alter(open_committed(options, branch_uri(options)), details["changes"])
    return {}


def _evolve(given: Mapping[str, str], details: Any, _schema: Any) -> dict[str, Any]:
    options = LanceOptions.parse(given)
    check_new_columns(open_committed(options, branch_uri(options)), details["changes"])
    return {}


def _truncate(given: Mapping[str, str], _details: Any, _schema: Any) -> dict[str, Any]:
    options = LanceOptions.parse(given)
    refuse_writing(options)
    open_at(options, branch_uri(options)).truncate_table()
    return {}


def _indices(given: Mapping[str, str], _details: Any, _schema: Any) -> dict[str, Any]:
    options = LanceOptions.parse(given)
    refuse_writing(options)
    parts = open_at(options, branch_uri(options)).list_indices()
    return {"indices": [{key: part[key] for key in ("name", "type", "fields")} for part in parts]}


def _procedures(_given: Mapping[str, str], _details: Any, _schema: Any) -> dict[str, Any]:
    return {"procedures": declare()}


def _call(given: Mapping[str, str], details: Any, _schema: Any) -> dict[str, Any]:
    return call(LanceOptions.parse(given), details["procedure"], details["arguments"])


_ACTIONS: dict[str, Callable[[Mapping[str, str], Any, StructType | None], dict[str, Any]]] = {
    "list": _list,
    "make": _make,
    "remove": _remove,
    "find": _find,
    "describe": _describe,
    "create": _create,
    "drop": _drop,
    "rename": _rename,
    "alter": _alter,
    "evolve": _evolve,
    "truncate": _truncate,
    "indices": _indices,
    "procedures": _procedures,
    "call": _call,
}
