"""Columns that come with appended rows: rows are added that have columns which the table lacks.

The rows are written before it is known which version they land on, and other writers may add columns meanwhile, even
the same ones. So what an append becomes is settled when it lands:

- a merge, which gives the table the columns and the rows in one version; the rows that were there have nulls;
- an append, where others have added the same columns already.

Data files are found by the ids of the fields that they hold, which stand in the manifest. Ids that someone else has
taken meanwhile are replaced there; no file is touched.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import pyarrow as pa

from lance_format.blob_fields import format_of, table_schema
from lance_format.datatypes import TOP_LEVEL_PARENT, Field, Schema
from lance_format.errors import RetryableCommitConflictError, SchemaMismatchError
from lance_format.table.fragment import FragmentMetadata
from lance_format.table.manifest import Manifest
from lance_format.table.operations import Append, Merge
from lance_format.version import FileVersion


def plan_new_columns(table: Manifest, data: pa.Schema, file_version: FileVersion) -> tuple[Field, ...]:
    """Return the columns of data that a table lacks, with ids that are free there.

    Parameters
    ----------
    table : Manifest
    data : pa.Schema
    file_version : FileVersion
        Of the files that are to hold them.

    Raises
    ------
    SchemaMismatchError
        If one cannot be null, as it is in all rows that are there, or differs from a column of the table only in case.
    """
    names = table.schema.names
    new = [field for field in data if field.name not in names]
    for field in new:
        if not field.nullable:
            raise SchemaMismatchError(f"the new column {field.name!r} cannot be null, but is in all rows of the table")
        clash = _find_in_any_case(table.schema, field.name)
        if clash is not None:
            raise SchemaMismatchError(f"the new column {field.name!r} differs from column {clash.name!r} only in case")
    return Schema.from_arrow(table_schema(pa.schema(new), file_version), first_id=table.next_field_id).fields


def settle(operation: Append, table: Manifest) -> Append | Merge:
    """Return what an append is on top of a version.

    Parameters
    ----------
    operation : Append
    table : Manifest
        A version that it may follow; see `lance_format.table.conflicts`.

    Raises
    ------
    RetryableCommitConflictError
        If another writer has added a column of the same name meanwhile that is not the same.
    """
    if not operation.new_fields:
        return operation
    columns = _settle_columns(operation, table)
    ids = {
        before.id: after.id
        for planned, column in zip(operation.new_fields, columns, strict=True)
        for before, after in zip(planned.walk(), column.walk(), strict=True)
    }
    fragments = [_renumber(fragment, ids) for fragment in operation.fragments]
    added = [column for column in columns if column.name not in table.schema.names]
    if not added:
        return Append(tuple(fragments))
    first = table.max_fragment_id + 1
    return Merge(
        tuple(table.fragments),
        Schema((*table.schema.fields, *added), table.schema.metadata),
        preserves_nullability=True,
        new_fragments=tuple(dataclasses.replace(x, id=first + index) for index, x in enumerate(fragments)),
    )


def _settle_columns(operation: Append, table: Manifest) -> list[Field]:
    """Return for each new column the one that others have added meanwhile, or else a field with ids that are free."""
    written = operation.known_field_ids
    free = max([table.next_field_id - 1, *written]) + 1
    columns = []
    for planned in operation.new_fields:
        column = _find_in_any_case(table.schema, planned.name)
        if column is None:
            num_fields = sum(1 for _ in planned.walk())
            column = planned.with_ids(iter(range(free, free + num_fields)), TOP_LEVEL_PARENT)
            free += num_fields
        elif not _same_column(planned, column) or not written.isdisjoint(node.id for node in column.walk()):
            raise RetryableCommitConflictError(
                f"another writer has given the table a column {column.name!r} meanwhile, which is"
                f" {column.to_arrow_type()} and not the new column {planned.name!r} of these rows,"
                f" {planned.to_arrow_type()}; nothing was changed: run it again on the latest version"
            )
        columns.append(column)
    return columns


def is_settled_as(operation: object, committed: object) -> bool:
    """Return whether a committed operation is a merge that was made of an append with new columns."""
    if not isinstance(operation, Append) or not operation.new_fields or not isinstance(committed, Merge):
        return False
    return _file_names(operation.fragments) <= _file_names((*committed.fragments, *committed.new_fragments))


def _file_names(fragments: Iterable[FragmentMetadata]) -> set[str]:
    return {file.path for fragment in fragments for file in fragment.files}


def _find_in_any_case(schema: Schema, name: str) -> Field | None:
    """Return a field that Spark, and SQL in general, take for the same."""
    return next((field for field in schema.fields if field.name.lower() == name.lower()), None)


def _same_column(planned: Field, found: Field) -> bool:
    """Return whether data files that hold one field hold the other as well."""
    return (
        (planned.name, planned.logical_type, planned.extension_name, format_of(planned), len(planned.children))
        == (found.name, found.logical_type, found.extension_name, format_of(found), len(found.children))
        and (found.nullable or not planned.nullable)
        and all(_same_column(*pair) for pair in zip(planned.children, found.children, strict=True))
    )


def _renumber(fragment: FragmentMetadata, ids: Mapping[int, int]) -> FragmentMetadata:
    """Return a fragment whose files hold other fields than they say."""
    files = (
        dataclasses.replace(x, fields=tuple(ids.get(number, number) for number in x.fields)) for x in fragment.files
    )
    return dataclasses.replace(fragment, files=tuple(files))
