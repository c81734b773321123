"""Changing columns: renaming, casting, allowing or forbidding nulls, and dropping.

Only a cast writes values. Other changes modify just the schema, since data files identify fields by their ids.
"""

from __future__ import annotations

import dataclasses
import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError, NotSupportedError, SchemaMismatchError
from lance_format.expressions.nodes import Column, IsNull
from lance_format.extension_types import EXTENSION_KEYS
from lance_format.file.columns.json_columns import has_json
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.changes.columns.add import AddColumnsTask, WidenedFragments
from lance_format.table.changes.columns.column_source import ColumnSource
from lance_format.table.format.column_names import check_new_names
from lance_format.table.format.field_paths import find_field
from lance_format.table.format.fragment import without_dropped_files
from lance_format.table.fragments.column_parts import holds_any
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.tasks import divide_fragments
from lance_format.table.transaction.operations import Merge, Project
from lance_format.table.versions.planned_change import ChangePlan, run_change
from lance_format.table.versions.table_version import Draft, TableVersion

_KEYS = {"path", "name", "nullable", "data_type", "metadata"}


def drop_columns(table: TableVersion, names: Sequence[str]) -> TableVersion:
    """Drop columns and commit the change; their values stay in the files until these are rewritten.

    Parameters
    ----------
    table : TableVersion
    names : sequence of str
        Names of columns, or dotted paths of fields below structs.

    Raises
    ------
    InvalidInputError
        If there is no such column, or none would be left.
    NotSupportedError
        If files would hold nothing of a struct or a list that stays, so that its nulls would be lost.
    """
    schema = table.manifest.schema
    if isinstance(names, str) or not names:
        raise InvalidInputError(f"columns to drop are {names!r}; a list of column names is needed")
    dropped = {find_field(schema, name)[-1].id for name in names}
    fields = _without(schema.fields, dropped)
    if not fields:
        raise InvalidInputError("all columns would be dropped; a table needs one at least")
    kept = {node.id: node for field in fields for node in field.walk()}
    narrowed = [(node, kept[node.id]) for field in schema.fields for node in field.walk() if node.id in kept]
    _check_witnesses(table, [(before, after) for before, after in narrowed if before != after])
    return table.commit(Project(Schema(fields, schema.metadata), preserves_nullability=True))


def _check_witnesses(table: TableVersion, narrowed: Sequence[tuple[Field, Field]]) -> None:
    """Check that files hold something of the structs and lists that lose fields, as far as they do."""
    if not narrowed:
        return
    seen: set[tuple[tuple[int, ...], ...]] = set()
    for fragment in table.manifest.fragments:
        held = tuple(file.fields for file in fragment.files)
        ids = frozenset(itertools.chain(*held))
        for before, after in narrowed if held not in seen else ():
            if holds_any(before, ids) and not holds_any(after, ids):
                raise NotSupportedError(
                    f"no field of {before.name!r} would be left that has values in fragment {fragment.id}, where these"
                    f" tell which rows of {before.name!r} are null: update another of its fields first, or drop"
                    f" {before.name!r}; nothing was changed"
                )
        seen.add(held)


def alter_columns(table: TableVersion, alterations: Sequence[Mapping[str, Any]]) -> TableVersion:
    """Change columns and commit them; see `plan_alter_columns`."""
    return run_change(table, plan_alter_columns(table, alterations))[0]


@dataclass(frozen=True, slots=True)
class CastColumns:
    """Function from stored columns to columns of other types. Can be pickled.

    Parameters
    ----------
    reads, makes : Schema
        The same columns, before and after.
    """

    reads: Schema
    makes: Schema

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Cast the values.

        Raises
        ------
        SchemaMismatchError
            If one does not fit the new type.
        """
        columns = zip(batch.columns, self.reads.fields, self.makes.fields, strict=True)
        arrays = [_cast_values(array, before, after) for array, before, after in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.makes.to_storage())


@dataclass(frozen=True, slots=True)
class AlterColumnsPlan(ChangePlan[WidenedFragments, None]):
    """Planned change of columns. Made by `plan_alter_columns`.

    Parameters
    ----------
    read_version : int
    uuid : str
    schema : Schema
        Of the table with the changed columns.
    preserves_nullability : bool
        False if a nullable column becomes non-nullable.
    rewrites : bool
        Whether values get another type.
    tasks : tuple of AddColumnsTask
        Tasks that write these values; empty if there are no rows, or only the schema changes.
    """

    read_version: int
    uuid: str
    schema: Schema
    preserves_nullability: bool
    rewrites: bool
    tasks: tuple[AddColumnsTask, ...]

    def operation(self, draft: Draft, results: Sequence[WidenedFragments]) -> Merge | Project:
        """Replace the files of the columns that have other types."""
        if not self.rewrites:
            return Project(self.schema, preserves_nullability=self.preserves_nullability)
        made = {place: fragment for result in results for place, fragment in result.fragments.items()}
        left = {node.id for node in self.schema.walk()}
        fragments = tuple(
            without_dropped_files(made.get(place, old), left)
            for place, old in enumerate(draft.table.manifest.fragments)
        )
        return Merge(fragments, self.schema, preserves_nullability=self.preserves_nullability)

    def outcome(self, results: Sequence[WidenedFragments]) -> None:
        """Return nothing: all rows have the changed columns."""


def plan_alter_columns(
    table: TableVersion, alterations: Sequence[Mapping[str, Any]], split_size_bytes: int | None = None
) -> AlterColumnsPlan:
    """Plan to change columns.

    Parameters
    ----------
    table : TableVersion
    alterations : sequence of mapping
        Each with the `path` of a column (its name, or a dotted path of a field below structs), and its new `name`,
        `nullable`, `data_type` or `metadata`: text to set by key, or None to remove a key.
    split_size_bytes : int, optional
        Approximate number of bytes that a task reads. Fragments are not divided. By default there is one task.

    Raises
    ------
    InvalidInputError
        If a column does not exist, or an alteration is invalid.
    SchemaMismatchError
        If a value does not fit the new type, or a column made non-nullable has nulls.
    """
    if not alterations:
        raise InvalidInputError("nothing to alter: give a path, and a new name, data_type, nullable or metadata")
    schema = table.manifest.schema
    tightened = False
    casts: dict[int, pa.DataType] = {}
    renamed: set[int] = set()
    for alteration in alterations:
        path = _check(alteration, schema)
        field = path[-1]
        if "data_type" in alteration and alteration["data_type"] != field.to_arrow_type():
            _check_cast(table, path, alteration["data_type"])
            casts[field.id] = alteration["data_type"]
        changed = dataclasses.replace(
            field,
            name=alteration.get("name", field.name),
            nullable=alteration.get("nullable", field.nullable),
            metadata=_merged(field.metadata, alteration.get("metadata", {})),
        )
        if field.nullable and not changed.nullable:
            _check_no_nulls(table, tuple(node.name for node in path))
            tightened = True
        if changed.name != field.name:
            check_new_names([changed])
            renamed.add(field.id)
        schema = Schema(_replaced(schema.fields, changed), schema.metadata)
    _check_names(schema.fields, renamed)
    version, identity = table.manifest.version, str(uuid.uuid4())
    if not casts:
        return AlterColumnsPlan(version, identity, schema, not tightened, False, ())
    retyped, groups = _plan_casts(table, schema, casts, split_size_bytes)
    tasks = tuple(
        AddColumnsTask(version, number, identity, source, makes, group)
        for number, (source, makes, group) in enumerate(groups)
    )
    return AlterColumnsPlan(version, identity, retyped, not tightened, True, tasks)


def _check(alteration: Mapping[str, Any], schema: Schema) -> tuple[Field, ...]:
    unknown = alteration.keys() - _KEYS
    if unknown:
        known = "path, name, nullable, data_type and metadata"
        raise InvalidInputError(
            f"Unknown key: {sorted(map(str, unknown))[0]} in {dict(alteration)!r}; there are {known}"
        )
    if "path" not in alteration or len(alteration) == 1:
        raise InvalidInputError(
            "At least one of name, nullable, data_type or metadata must be specified, and a path; there is"
            f" {dict(alteration)!r}"
        )
    if not isinstance(alteration.get("name", ""), str) or not isinstance(alteration.get("nullable", True), bool):
        raise InvalidInputError(f"alteration {dict(alteration)!r}: name is a string, nullable True or False")
    if not isinstance(alteration.get("data_type", pa.null()), pa.DataType):
        raise InvalidInputError(f"alteration {dict(alteration)!r}: data_type is a type of pyarrow")
    entries = alteration.get("metadata", {})
    if not isinstance(entries, Mapping) or not all(isinstance(key, str) for key in entries):
        raise InvalidInputError(f"alteration {dict(alteration)!r}: metadata maps text to text, or to None")
    if not all(value is None or isinstance(value, str) for value in entries.values()):
        raise InvalidInputError(f"alteration {dict(alteration)!r}: metadata maps text to text, or to None")
    return find_field(schema, alteration["path"])


def _merged(metadata: Mapping[bytes, bytes], entries: Mapping[str, str | None]) -> dict[bytes, bytes]:
    """Return metadata with entries set, and those without a value removed."""
    kept = {key: value for key, value in metadata.items() if key.decode(errors="replace") not in entries}
    return kept | {key.encode(): value.encode() for key, value in entries.items() if value is not None}


def _check_cast(table: TableVersion, path: Sequence[Field], wanted: pa.DataType) -> None:
    field = path[-1]
    if any(parent.logical_type != "struct" for parent in path[:-1]):
        raise NotSupportedError(
            f"the type of field {field.name!r} within {path[0].name!r}, a {path[0].logical_type}, cannot be changed;"
            " add a column with the new type instead"
        )
    if has_json(field):
        raise NotSupportedError(f"the type of column {field.name!r} cannot be changed: it is JSON")
    if has_json(Field.from_arrow(pa.field(field.name, wanted))):
        raise NotSupportedError(f"column {field.name!r} cannot be made JSON; add a column of JSON instead")
    ids = {node.id for node in field.walk()}
    indexed = [index.name for index in table.manifest.indices if not ids.isdisjoint(index.fields)]
    if indexed:
        raise InvalidInputError(f"column {field.name!r} has the index {indexed[0]!r}; drop it before changing the type")


def _check_no_nulls(table: TableVersion, path: tuple[str, ...]) -> None:
    num_nulls = LanceScanner(table, ScanOptions(columns=[], filter=IsNull(Column(path)))).count_rows()
    if num_nulls:
        raise SchemaMismatchError(f"column {'.'.join(path)!r} has {num_nulls} nulls, and cannot be made to hold none")


def _check_names(siblings: Sequence[Field], renamed: Set[int]) -> None:
    names = [field.name for field in siblings]
    for field in siblings:
        name = field.name
        if field.id in renamed and (not name or names.count(name) > 1):
            raise InvalidInputError(f"two columns would be called {name!r}" if name else "a column needs a name")
        _check_names(field.children, renamed)


def _replaced(siblings: Sequence[Field], changed: Field) -> tuple[Field, ...]:
    return tuple(
        changed
        if field.id == changed.id
        else dataclasses.replace(field, children=_replaced(field.children, changed))
        if field.children
        else field
        for field in siblings
    )


def _without(siblings: Sequence[Field], dropped: set[int]) -> tuple[Field, ...]:
    kept = []
    for field in siblings:
        children = _without(field.children, dropped)
        if field.id not in dropped and (children or not field.children):
            kept.append(dataclasses.replace(field, children=children))
    return tuple(kept)


def _plan_casts(
    table: TableVersion, schema: Schema, casts: Mapping[int, pa.DataType], split_size_bytes: int | None
) -> tuple[Schema, list[tuple[ColumnSource, Schema, tuple[int, ...]]]]:
    """Return the schema with other types under new field ids, and sources of values, their schemas and fragments.

    Fragments get values of the fields that they have values of; the others are null, and stay without files.
    """
    ids = itertools.count(table.manifest.next_field_id)
    made = {node.id: _retyped(node, casts[node.id], ids) for node in schema.walk() if node.id in casts}
    places: dict[frozenset[int], list[int]] = {}
    for place, fragment in enumerate(table.manifest.fragments):
        places.setdefault(fragment.field_ids, []).append(place)
    planned = []
    for held, positions in places.items():
        wanted = {node.id for node in schema.walk() if node.id in casts and holds_any(node, held)}
        if table.manifest.file_version.has_array_encodings:  # Structs are columns too, and are in one file therefore.
            columns = [field for field in schema.fields if any(node.id in wanted for node in field.walk())]
            leaves = [node for field in columns for node in field.walk() if not node.children]
            wanted.update(node.id for node in leaves if node.id in held)
        reads = Schema(_narrowed(schema.fields, wanted))
        makes = Schema(_exchanged(reads.fields, made))
        source = ColumnSource(reads, makes.to_storage(), CastColumns(reads, makes))
        groups = divide_fragments(table, positions if wanted else [], reads, split_size_bytes)
        planned += [(source, makes, group) for group in groups]
    return Schema(_exchanged(schema.fields, made), schema.metadata), planned


def _retyped(field: Field, arrow_type: pa.DataType, ids: Iterator[int]) -> Field:
    """Return a field of another type with new ids."""
    # The extension type is dropped with its storage type; readers would refuse another storage.
    metadata = {key: value for key, value in field.metadata.items() if key not in EXTENSION_KEYS}
    arrow = pa.field(field.name, arrow_type, field.nullable, metadata=metadata)
    return Field.from_arrow(arrow).with_ids(ids, field.parent_id)


def _exchanged(siblings: Sequence[Field], made: Mapping[int, Field]) -> tuple[Field, ...]:
    """Return fields with others in the place of some, by the ids of these."""
    return tuple(
        made.get(field.id) or dataclasses.replace(field, children=_exchanged(field.children, made))
        for field in siblings
    )


def _narrowed(siblings: Sequence[Field], wanted: Set[int]) -> tuple[Field, ...]:
    """Return the wanted fields, with all fields below them and the structs around them."""
    kept = []
    for field in siblings:
        children = _narrowed(field.children, wanted)
        if field.id in wanted:
            kept.append(field)
        elif children:
            kept.append(dataclasses.replace(field, children=children))
    return tuple(kept)


def _cast_values(array: pa.Array, before: Field, after: Field) -> pa.Array:
    if before.id != after.id:
        try:
            return pc.cast(array, after.to_arrow_type())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatchError(
                f"column {before.name!r} cannot be made {after.to_arrow_type()}: {error}"
            ) from error
    if before == after:
        return array
    children = [
        _cast_values(array.field(index), child, changed)
        for index, (child, changed) in enumerate(zip(before.children, after.children, strict=True))
    ]
    fields = [child.to_storage() for child in after.children]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
