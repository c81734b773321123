"""The columns of a stream or feed in versions whose columns differ: renamed, missing, or of another type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from connector.types.arrays import Origin, has_items
from connector.types.batches import to_spark
from connector.types.column_names import find_name
from connector.types.row_columns import ROW_FIELDS
from connector.types.schemas import to_exchange_schema
from lance_format import ChangeLog, LanceDataset, LanceField, SchemaMismatchError, VersionNotFoundError
from lance_format.expressions import Expression, columns_of, nodes, parse
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class ReadColumns:
    """Columns to read from any version of a table.

    A version has a column under the name of the field with its id there. Casts change ids, and the id of a dropped
    column may be given to another. An overwrite that replaces the columns numbers them from 0 again: across it columns
    are found by their names. A column that a version lacks is null. The same applies to fields below structs.

    Parameters
    ----------
    schema : StructType
        The columns that Spark expects.
    fields : tuple of LanceField
        All columns of the version that the names are of.
    types : tuple of pyarrow.DataType
        Their types.
    version : int
        That version.
    filter : str, optional
        The rows to read, in terms of that version.
    tested : mapping of str to pyarrow.DataType
        The types of the columns that the filter reads.
    """

    schema: StructType
    fields: tuple[LanceField, ...]
    types: tuple[pa.DataType, ...]
    version: int
    filter: str | None
    tested: Mapping[str, pa.DataType]

    @classmethod
    def of(cls, dataset: LanceDataset, schema: StructType, predicate: str | None = None) -> ReadColumns:
        """Return columns by their names in a version.

        Parameters
        ----------
        dataset : LanceDataset
            Shows the version.
        schema : StructType
            The columns that Spark expects.
        predicate : str, optional
            The rows to read, in terms of that version.
        """
        own = dataset.schema
        tested = {name: own.field(name).type for name in _filter_columns(predicate, own.names)}
        fields = tuple(dataset.lance_schema.fields())
        return cls(schema, fields, tuple(own.types), dataset.version, predicate, tested)

    def names_in(self, dataset: LanceDataset, log: ChangeLog) -> dict[str, Origin]:
        """Return where a version has each column of the table, without columns that the version lacks.

        Most often, the columns and files of the two versions tell. Only if not, the versions in between are opened.

        Parameters
        ----------
        dataset : LanceDataset
            Shows the version.
        log : ChangeLog
        """
        stored, types = tuple(dataset.lance_schema.fields()), self.types
        first, last = sorted((dataset.version, self.version))
        ids = frozenset(_ids(self.fields))
        same = {number: number for number in ids}
        by_name, by_id = _find(self.fields, types, stored, None), _find(self.fields, types, stored, same)
        is_same = stored == self.fields or (by_name == by_id and ids <= _ids(stored))
        if is_same and (last == dataset.version or log.fields.keeps(first, last, ids)):
            return by_id
        try:
            former = log.fields.former_ids(first, last)
        except VersionNotFoundError:  # which alone tells what ids stood for
            return by_name
        if last == dataset.version:
            former = {old: new for new, old in former.items()}
        return _find(self.fields, types, stored, former)

    def dropped(self, version: int, log: ChangeLog) -> frozenset[int]:
        """Return the ids that fields, which a version lacks, have in the version before it.

        Parameters
        ----------
        version : int
        log : ChangeLog

        Raises
        ------
        VersionNotFoundError
            If a version is not there that is needed to tell.
        """
        if not log.may_drop_columns(version):
            return frozenset()
        before = log.open(version - 1)
        had, has = self.names_in(before, log), self.names_in(log.open(version), log)
        stored = {own.name(): own for own in before.lance_schema.fields()}
        kinds = {field.name(): kind for field, kind in zip(self.fields, self.types, strict=True)}
        return frozenset(_lost(kinds, had, has, stored))

    def stored(self, names: Mapping[str, Origin]) -> dict[str, Origin]:
        """Return where a version has the columns that Spark expects, without columns that the version lacks.

        Parameters
        ----------
        names : mapping of str to Origin
            See `names_in`.
        """
        found = {}
        for name in self.schema.names:
            if name in names:
                found[name] = names[name]
            elif name in ROW_FIELDS and all(field.name() != name for field in self.fields):
                found[name] = Origin(name)
        return found

    def fit_filter(self, dataset: LanceDataset, names: Mapping[str, Origin]) -> str | Expression | None:
        """Return the filter in terms of a version's columns; a column that it lacks is null.

        Parameters
        ----------
        dataset : LanceDataset
            Shows the version.
        names : mapping of str to Origin
            See `names_in`.
        """
        schema = dataset.schema
        if self.filter is None or all(
            names.get(name) == Origin(name) and schema.field(name).type == kind for name, kind in self.tested.items()
        ):
            return self.filter
        return self._replace_columns(parse(self.filter), schema, names)

    def _replace_columns(self, node: Expression, schema: pa.Schema, names: Mapping[str, Origin]) -> Expression:
        """Replace the columns of an expression by the fields of a version, cast to the types of the stream."""
        if not isinstance(node, nodes.Column):
            return node.with_children([self._replace_columns(child, schema, names) for child in node.children])
        name = find_name(node.path[0], list(self.tested), case_sensitive=False)
        if name is None:  # a row column
            return node
        wanted = _type_at(self.tested[name], node.path[1:])
        if wanted is None:
            return node
        path = _path_in(names, (name, *node.path[1:]))
        found = None if path is None else _type_at(schema.field(path[0]).type, path[1:])
        if path is None or found is None:
            return nodes.Literal(pa.scalar(None, wanted))
        column = nodes.Column(path)
        return column if found == wanted or pa.types.is_nested(wanted) else nodes.Cast(column, wanted)

    def requested(self, stored: Mapping[str, Origin]) -> pa.Schema:
        """Return the columns to ask a scanner of a version for.

        Parameters
        ----------
        stored : mapping of str to Origin
            See `stored`.
        """
        exchanged = to_exchange_schema(self.schema)
        return pa.schema([_as_stored(exchanged.field(name), own) for name, own in stored.items()])

    def fit(self, batch: pa.RecordBatch, stored: Mapping[str, Origin]) -> pa.RecordBatch:
        """Convert a batch of a version to what Spark expects.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        stored : mapping of str to Origin
            See `stored`.

        Raises
        ------
        NotSupportedError
            If a value does not fit the type.
        SchemaMismatchError
            If a column must not be null, and is.
        """
        for field in self.schema:
            if batch.num_rows and not field.nullable and field.name not in stored:
                raise SchemaMismatchError(
                    f"rows of a version before {self.version} lack the column {field.name!r}, which must not be null:"
                    f" let it be null, as by ALTER TABLE … ALTER COLUMN {field.name} DROP NOT NULL; restart the stream"
                )
        return to_spark(batch, to_exchange_schema(self.schema), stored)


def _ids(fields: Iterable[LanceField]) -> set[int]:
    """Return the ids of fields and of those below them."""
    return {number for field in fields for number in (field.id(), *_ids(field.children()))}


def _find(
    fields: Sequence[LanceField],
    types: Iterable[pa.DataType],
    stored: Sequence[LanceField],
    ids: Mapping[int, int] | None,
) -> dict[str, Origin]:
    """Find fields of some types among those of a version, by the ids that they have there, or else by their names."""
    by_id, by_name = {own.id(): own for own in stored}, {own.name(): own for own in stored}
    found = {}
    for field, kind in zip(fields, types, strict=True):
        own = by_name.get(field.name()) if ids is None else by_id.get(ids.get(field.id(), -1))
        if own is not None:
            found[field.name()] = Origin(own.name(), _find_below(field, kind, own, ids))
    return found


def _find_below(
    field: LanceField, kind: pa.DataType, own: LanceField, ids: Mapping[int, int] | None
) -> dict[str, Origin] | None:
    """Find the fields below one; None if all have their own names. Items, keys and values are found by their places."""
    children, stored = field.children(), own.children()
    if pa.types.is_struct(kind):
        names = [child.name() for child in children]
        found = _find(children, (child.type for child in kind), stored, ids) if children and stored else None
    else:
        if pa.types.is_map(kind) and children and stored:
            children, stored = children[0].children(), stored[0].children()
        inner = _inner_types(kind)
        names = list(inner)
        if not len(names) == len(children) == len(stored):
            return None
        places = zip(inner.items(), children, stored, strict=True)
        found = {name: Origin(name, _find_below(child, type_, other, ids)) for (name, type_), child, other in places}
    return None if found == {name: Origin(name) for name in names} else found


def _lost(
    kinds: Mapping[str, pa.DataType],
    had: Mapping[str, Origin] | None,
    has: Mapping[str, Origin] | None,
    stored: Mapping[str, LanceField],
) -> Iterator[int]:
    """Yield the ids of the fields of a version that have an origin in `had` and none in `has`."""
    for name, kind in kinds.items():
        before, after = (Origin(name) if known is None else known.get(name) for known in (had, has))
        own = None if before is None else stored.get(before.name)
        if before is None or own is None:
            continue
        if after is None:
            yield from _ids([own])
        elif before.below != after.below:
            is_struct = pa.types.is_struct(kind)
            inner = {child.name: child.type for child in kind} if is_struct else _inner_types(kind)
            children = own.children()[0].children() if pa.types.is_map(kind) else own.children()
            names = [child.name() for child in children] if is_struct else list(inner)
            yield from _lost(inner, before.below, after.below, dict(zip(names, children, strict=True)))


def _inner_types(kind: pa.DataType) -> dict[str, pa.DataType]:
    """Return the types of the items of lists, or of the keys and values of maps, by the names that `Origin` has."""
    if pa.types.is_map(kind):
        return {"key": kind.key_type, "value": kind.item_type}
    return {"element": kind.value_type} if has_items(kind) else {}


def _as_stored(field: pa.Field, origin: Origin) -> pa.Field:
    """Return a field with the names that a version has for it and for those below it, as far as it has them."""
    if origin.below is None or not pa.types.is_struct(field.type):
        return field.with_name(origin.name)
    children = [_as_stored(child, origin.below[child.name]) for child in field.type if child.name in origin.below]
    # A struct of no field cannot be asked for: all fields are, by a type that names none.
    return pa.field(origin.name, pa.struct(children) if children else pa.null())


def _path_in(origins: Mapping[str, Origin] | None, path: Sequence[str]) -> tuple[str, ...] | None:
    """Return the path of a field in a version, or None if it lacks the field."""
    found = []
    for name in path:
        origin = Origin(name) if origins is None else origins.get(name)
        if origin is None:
            return None
        found.append(origin.name)
        origins = origin.below
    return tuple(found)


def _filter_columns(predicate: str | None, names: Sequence[str]) -> list[str]:
    """Return those of a table's columns that a filter reads."""
    paths = () if predicate is None else columns_of(parse(predicate))
    found = [find_name(path[0], list(names), case_sensitive=False) for path in paths]
    return [name for name in dict.fromkeys(found) if name is not None]


def _type_at(arrow_type: pa.DataType, path: Sequence[str]) -> pa.DataType | None:
    """Return the type of a field below structs, or None if there is none."""
    for name in path:
        if not pa.types.is_struct(arrow_type) or arrow_type.get_field_index(name) < 0:
            return None
        arrow_type = arrow_type.field(name).type
    return arrow_type
