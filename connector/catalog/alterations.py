"""ALTER TABLE: the changes of one statement, all of one kind, make one version.

A change is a mapping of `kind`, `name` and `value`:

========== ========================= ===================================================
kind       name                      value
========== ========================= ===================================================
`property` of a property             its value, or null to remove it
`add`      names of the path         a schema of one column, as JSON
`drop`     names of the path         null
`name`     names of the path         the new name
`nullable` names of the path         whether nulls are allowed
`type`     names of the path         a schema of one column that has the type, as JSON
`comment`  names of the path         the comment
`default`  names of the path         the SQL of the new default value, or an empty string for none
`key`      names of columns          null: they become the primary key, in their order
========== ========================= ===================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from connector.active_session import active_session
from connector.catalog.properties import check_changeable
from connector.catalog.type_changes import change_type, child, entries_of_renamed
from connector.jobs.running import run
from connector.types.column_names import quoted
from connector.types.field_metadata import declare_primary_key
from connector.types.new_columns import read_column, read_new_columns
from connector.write.default_values import DefaultValues, default_entries
from lance_format import InvalidInputError, LanceDataset, NotSupportedError

Changes = Sequence[dict[str, Any]]
_COMMENT = "comment"


def alter(dataset: LanceDataset, changes: Changes) -> None:
    """Apply the changes of a statement in one version.

    Parameters
    ----------
    dataset : LanceDataset
    changes : sequence of mappings
        See above.

    Raises
    ------
    InvalidInputError
        If the changes are of several kinds, which would take several versions, or do not fit the table.
    """
    kinds = {_KINDS[change["kind"]] for change in changes}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"this statement changes {' and '.join(sorted(kinds))} at once, which would be several versions; nothing"
            " was changed: write one statement for each"
        )
    for kind in kinds:
        _check_parents(dataset, changes)
        _ALTERATIONS[kind](dataset, changes)


def check_new_columns(dataset: LanceDataset, changes: Changes) -> None:
    """Check that a table can have the columns of rows to be written.

    Parameters
    ----------
    dataset : LanceDataset
    changes : sequence of mappings
        See above; of the kind `add`.

    Raises
    ------
    InvalidInputError, NotSupportedError
        If one does not fit the table.
    """
    _check_parents(dataset, changes)
    dataset.with_new_columns(read_new_columns(changes))


def _check_parents(dataset: LanceDataset, changes: Changes) -> None:
    """Refuse to change fields below lists and maps: files store the values of those in one piece."""
    schema = dataset.schema
    for change in changes:
        if change["kind"] in ("property", "key"):
            continue
        fields: pa.Schema | pa.StructType = schema
        for name in change["name"][:-1]:
            parent = child(fields, name)
            if parent is None:
                break
            if not pa.types.is_struct(parent.type):
                raise NotSupportedError(
                    f"{_path(change)!r} is below an array or a map, where no field can be altered; nothing was changed:"
                    " CREATE OR REPLACE TABLE … AS SELECT, which may read the table itself, gives it other fields"
                )
            fields = parent.type


def _alter_properties(dataset: LanceDataset, changes: Changes) -> None:
    values = {change["name"]: change["value"] for change in changes}
    check_changeable(values)
    config = dataset.config()
    changed = {name: value for name, value in values.items() if config.get(name) != value}
    if changed:
        dataset.update_config(changed)


def _add_columns(dataset: LanceDataset, changes: Changes) -> None:
    columns = read_new_columns(changes)
    values = DefaultValues.first(columns)
    if values is None:
        dataset.add_columns(columns)
        return
    plan = dataset.plan_add_columns(values, read_columns=[], reader_schema=columns)
    run(active_session(), dataset, plan, description=f"add columns {', '.join(columns.names)}")


def _drop_columns(dataset: LanceDataset, changes: Changes) -> None:
    dataset.drop_columns([_path(change) for change in changes])


def _alter_columns(dataset: LanceDataset, changes: Changes) -> None:
    alterations: dict[str, dict[str, Any]] = {}
    schema = dataset.schema
    for change in changes:
        kind, value = change["kind"], change["value"]
        alteration = alterations.setdefault(_path(change), {"path": _path(change)})
        if kind == "type":
            alteration |= change_type(schema, change["name"], read_column(value))
        else:
            alteration[kind] = value
        if kind == "name":
            alteration["metadata"] = entries_of_renamed(schema, change["name"])
    plan = dataset.plan_alter_columns(*alterations.values())
    run(active_session(), dataset, plan, description=f"alter columns {', '.join(alterations)}")


def _alter_comments(dataset: LanceDataset, changes: Changes) -> None:
    dataset.update_field_metadata({_path(change): {_COMMENT: change["value"]} for change in changes})


def _alter_defaults(dataset: LanceDataset, changes: Changes) -> None:
    schema = dataset.schema
    entries = {_path(change): default_entries(schema, change["name"], change["value"]) for change in changes}
    dataset.update_field_metadata(entries)


def _declare_key(dataset: LanceDataset, changes: Changes) -> None:
    if len(changes) > 1:
        raise InvalidInputError("a table has one primary key; nothing was changed")
    (names,) = (change["name"] for change in changes)
    declare_primary_key(dataset, names)


def _path(change: dict[str, Any]) -> str:
    """Return the path of a column, with backticks where a name needs them."""
    return ".".join(quoted(name) if "." in name or "`" in name else name for name in change["name"])


_KINDS = {
    "property": "properties",
    "add": "new columns",
    "drop": "dropped columns",
    "name": "columns",
    "nullable": "columns",
    "type": "columns",
    _COMMENT: "comments",
    "default": "default values",
    "key": "the primary key",
}
"""Changes that one version can hold together have one kind."""
_ALTERATIONS: dict[str, Callable[[LanceDataset, Changes], None]] = {
    "properties": _alter_properties,
    "new columns": _add_columns,
    "dropped columns": _drop_columns,
    "columns": _alter_columns,
    "comments": _alter_comments,
    "default values": _alter_defaults,
    "the primary key": _declare_key,
}
