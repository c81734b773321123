"""Columns and struct fields of appended and replaced rows that the table lacks.

A new column is a field at the top level, or below an existing field, which its `parent_id` names.

The rows are written before it is known which version the append follows, and other writers may add columns
concurrently, even the same ones. The form of an append is therefore decided by the commit:

- a merge, which adds the columns and the rows in one version; existing rows have nulls;
- an append, if other writers have added the same columns already.

An update with new columns likewise becomes a merge, or stays an update.

The manifest lists the field ids of each data file. Ids that another writer has taken concurrently are replaced in the
manifest; no file is changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from lance_format.blob_fields import format_of, table_schema
from lance_format.datatypes import TOP_LEVEL_PARENT, Field, Schema
from lance_format.errors import NotSupportedError, RetryableCommitConflictError, SchemaMismatchError
from lance_format.file import is_packed
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations import Append, Merge, Update
from lance_format.version import FileVersion


def plan_new_columns(table: Manifest, data: pa.Schema, file_version: FileVersion) -> tuple[Field, ...]:
    """Return the columns and struct fields that data has and a table lacks, with ids that are free in the table.

    Parameters
    ----------
    table : Manifest
    data : pa.Schema
    file_version : FileVersion
        Version of the files that will hold them.

    Raises
    ------
    SchemaMismatchError
        If a new column is not nullable, although it is null in existing rows, or differs only in case from one of the
        table.
    NotSupportedError
        If one is below a map, a fixed-size list or a packed struct.
    """
    found = list(_find_new(table.schema.fields, list(data), TOP_LEVEL_PARENT, ""))
    ids = iter(range(table.next_field_id, 2**31))
    planned = []
    for parent_id, field in found:
        [column] = Schema.from_arrow(table_schema(pa.schema([field]), file_version)).fields
        planned.append(column.with_ids(ids, parent_id))
    return tuple(planned)


def _find_new(
    known: Sequence[Field], given: Sequence[pa.Field], parent_id: int, path: str
) -> Iterator[tuple[int, pa.Field]]:
    """Yield the new fields among siblings and below them, with the ids of their parents."""
    names = {field.name: field for field in known}
    for field in given:
        if field.name in names:
            yield from _find_new_below(names[field.name], field, f"{path}{field.name}.")
            continue
        if not field.nullable:
            raise SchemaMismatchError(
                f"the new column {path + field.name!r} cannot be null, but is in all rows of the table"
            )
        clash = _find_in_any_case(known, field.name)
        if clash is not None:
            raise SchemaMismatchError(
                f"the new column {path + field.name!r} differs from column {path + clash.name!r} only in case"
            )
        yield parent_id, field


def _find_new_below(known: Field, given: pa.Field, path: str) -> Iterator[tuple[int, pa.Field]]:
    kind = given.type
    if isinstance(kind, pa.BaseExtensionType) or format_of(known) is not None:
        return
    below = [kind.field(index) for index in range(kind.num_fields)]
    if known.logical_type == "struct" and pa.types.is_struct(kind):
        found = list(_find_new(known.children, below, known.id, path))
    else:  # Fitting the data finds other differences.
        pairs = zip(known.children, below, strict=False)
        found = [new for pair in pairs for new in _find_new_below(*pair, path)]
    if found and (kind_of_column := _describe_closed(known)):
        raise NotSupportedError(
            f"column {path[:-1]!r} is {kind_of_column}, and the structs in it cannot get the field {found[0][1].name!r}"
        )
    yield from found


def _describe_closed(field: Field) -> str:
    """Describe a field whose parts must all be in one file, as the reference requires; empty for other fields."""
    if field.logical_type == "map":
        return "a map"
    if field.logical_type.startswith("fixed_size_list:"):
        return "a fixed-size list"
    return "a packed struct" if is_packed(field) else ""


def settle(operation: Append | Update, table: Manifest) -> Append | Update | Merge:
    """Return the form of an append or update on top of a version.

    Parameters
    ----------
    operation : Append or Update
    table : Manifest
        A version that the operation may follow; see `lance_format.table.transaction.conflicts`.

    Raises
    ------
    RetryableCommitConflictError
        If another writer has concurrently added another column of the same name.
    """
    if not operation.new_fields:
        return operation
    columns, added = _settle_columns(operation, table)
    ids = {
        before.id: after.id
        for planned, column in zip(operation.new_fields, columns, strict=True)
        for before, after in zip(planned.walk(), column.walk(), strict=True)
    }
    fragments = [_renumber(fragment, ids) for fragment in operation.added_fragments]
    if isinstance(operation, Update):
        return _settle_update(operation, fragments, ids, table, added)
    if not added:
        return Append(tuple(fragments))
    first = table.max_fragment_id + 1
    return Merge(
        tuple(table.fragments),
        table.schema.with_fields(added),
        preserves_nullability=True,
        new_fragments=tuple(dataclasses.replace(x, id=first + index) for index, x in enumerate(fragments)),
    )


def _settle_update(
    operation: Update, fragments: list[FragmentMetadata], ids: Mapping[int, int], table: Manifest, added: list[Field]
) -> Update | Merge:
    rewritten = frozenset(ids.get(number, number) for number in operation.fields_rewritten)
    update = dataclasses.replace(operation, new_fragments=tuple(fragments), fields_rewritten=rewritten, new_fields=())
    if not added:
        return update
    schema = table.schema.with_fields(added)
    after = update.apply(dataclasses.replace(table, schema=schema))
    return Merge(tuple(after.fragments), schema, preserves_nullability=True, update=update)


def _settle_columns(operation: Append | Update, table: Manifest) -> tuple[list[Field], list[Field]]:
    """For each new column, return the one that another writer has added, else a field with free ids.

    Returns
    -------
    list of Field list of Field
        The columns that no other writer has added.
    """
    written = operation.known_field_ids
    free = max([table.next_field_id - 1, *written]) + 1
    columns, added = [], []
    for planned in operation.new_fields:
        column = _find_in_any_case(_siblings(planned, table.schema), planned.name)
        if column is None:
            num_fields = sum(1 for _ in planned.walk())
            column = planned.with_ids(iter(range(free, free + num_fields)), planned.parent_id)
            added.append(column)
            free += num_fields
        elif not _same_column(planned, column) or not written.isdisjoint(node.id for node in column.walk()):
            raise RetryableCommitConflictError(
                f"another writer has concurrently given the table a column {column.name!r}, which is"
                f" {column.to_arrow_type()} and not the new column {planned.name!r} of these rows,"
                f" {planned.to_arrow_type()}; nothing was changed: run it again on the latest version"
            )
        columns.append(column)
    return columns, added


def _siblings(planned: Field, schema: Schema) -> Sequence[Field]:
    """Return the siblings of a new field in a table."""
    if planned.parent_id == TOP_LEVEL_PARENT:
        return schema.fields
    parent = next((node for node in schema.walk() if node.id == planned.parent_id), None)
    if parent is None:
        raise RetryableCommitConflictError(
            f"another writer has dropped or cast the struct that the new field {planned.name!r} of these rows is of;"
            " nothing was changed: run it again on the latest version"
        )
    return parent.children


def is_settled_as(operation: object, committed: object) -> bool:
    """Return whether a committed operation is a merge that was made from an append or update with new columns."""
    if not isinstance(operation, Append | Update) or not operation.new_fields or not isinstance(committed, Merge):
        return False
    return _file_names(operation.added_fragments) <= _file_names((*committed.fragments, *committed.new_fragments))


def _file_names(fragments: Iterable[FragmentMetadata]) -> set[str]:
    return {file.path for fragment in fragments for file in fragment.files}


def _find_in_any_case(siblings: Sequence[Field], name: str) -> Field | None:
    """Return the sibling of a name, ignoring case, as Spark and SQL in general do."""
    return next((field for field in siblings if field.name.lower() == name.lower()), None)


def _same_column(planned: Field, found: Field) -> bool:
    """Return whether data files with one field also have the other."""
    return (
        (planned.name, planned.logical_type, planned.extension_name, format_of(planned), len(planned.children))
        == (found.name, found.logical_type, found.extension_name, format_of(found), len(found.children))
        and (found.nullable or not planned.nullable)
        and all(_same_column(*pair) for pair in zip(planned.children, found.children, strict=True))
    )


def _renumber(fragment: FragmentMetadata, ids: Mapping[int, int]) -> FragmentMetadata:
    """Replace the field ids in the entries of a fragment's files."""
    files = (
        dataclasses.replace(x, fields=tuple(ids.get(number, number) for number in x.fields)) for x in fragment.files
    )
    return dataclasses.replace(fragment, files=tuple(files))
