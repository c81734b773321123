"""Projections: the columns that a scan returns, and the stored fields that it reads for them.

Columns are stored fields, fields below them (`a.b`), SQL expressions over them, and row columns
(`lance_format.table.fragments.row_columns`). Filters see the same names.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.datatypes import Field, Schema
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.expressions import BoundExpression, Expression, as_expression, evaluate, filter_mask
from lance_format.expressions.nodes import Column, FieldPath
from lance_format.extension_types import retype
from lance_format.file import is_packed, prune
from lance_format.file.columns.json_columns import has_json, to_text, with_text
from lance_format.file.container.locating import locate
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.fragments.open_files import empty_columns_batch
from lance_format.table.fragments.row_columns import ROW_COLUMNS, LiveRows, row_column

Columns: TypeAlias = Sequence[str] | Mapping[str, str] | pa.Schema
Filter: TypeAlias = str | pc.Expression | Expression

_KEPT = 32


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result.

    Parameters
    ----------
    name : str
    value : BoundExpression
    part : Field, optional
        The stored column without unselected struct fields; None if all are selected.
    """

    name: str
    value: BoundExpression
    part: Field | None = None

    def stored(self, columns: Mapping[str, Field]) -> Field | None:
        """Return the stored field of the output, given the columns; None if it is computed, or a row column."""
        if self.part is not None:
            return self.part
        expression = self.value.expression
        if not isinstance(expression, Column):
            return None
        found = columns.get(expression.path[0])
        for name in expression.path[1:]:
            fields = () if found is None else found.children
            found = next((field for field in fields if field.name == name), None)
        return found

    @property
    def copied(self) -> str | None:
        """The top-level column of the output; None if it is computed."""
        expression = self.value.expression
        return expression.path[0] if isinstance(expression, Column) and len(expression.path) == 1 else None

    @property
    def paths(self) -> frozenset[FieldPath]:
        """The columns, and fields below them, to read."""
        return frozenset(self.value.columns if self.part is None else _leaves(self.part))


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of the values of an output.

    Parameters
    ----------
    column : str, optional
        The column that it copies.
    converted : Field, optional
        The stored field that it copies, if its values are returned in another form or type.
    visible : pa.Field
        The returned field.
    """

    column: str | None
    converted: Field | None
    visible: pa.Field


@dataclass(frozen=True, slots=True)
class Projection:
    """Columns of the result of a scan; see `plan_projection`.

    Parameters
    ----------
    outputs : tuple of Output
    filter : BoundExpression, optional
    source : Schema
        The stored columns that outputs and filter need.
    output_source, filter_source : Schema
        The stored columns of the outputs, and of the filter. Parts of a column may be in both.
    row_columns : tuple of str
        The row columns that outputs need.
    filter_row_columns : tuple of str
        The row columns that the filter needs.
    schema : pa.Schema
    origins : tuple of Origin
        Of each output.
    """

    outputs: tuple[Output, ...]
    filter: BoundExpression | None
    source: Schema
    output_source: Schema
    filter_source: Schema
    row_columns: tuple[str, ...]
    filter_row_columns: tuple[str, ...]
    schema: pa.Schema
    origins: tuple[Origin, ...]

    def complete(self, batch: pa.RecordBatch, *rows: LiveRows) -> pa.RecordBatch:
        """Add the row columns that outputs need to the stored ones; the rows are those of one or several fragments."""
        return _with_row_columns(batch, self.row_columns, rows)

    def tested(self, batch: pa.RecordBatch, *rows: LiveRows) -> pa.RecordBatch:
        """Add the row columns that the filter needs to the columns of `filter_source`; see `complete`."""
        return _with_row_columns(batch, self.filter_row_columns, rows)

    def mask(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Evaluate the filter over rows with all columns that it needs."""
        assert self.filter is not None
        return filter_mask(self.filter, batch)

    def apply(self, batch: pa.RecordBatch, *rows: LiveRows) -> pa.RecordBatch:
        """Compute the outputs of a completed batch, with extension types, and JSON as text.

        Columns of strings may be dictionaries. Errors name the data file if `rows` says where the rows are from.
        """
        if not self.outputs:
            return empty_columns_batch(batch.num_rows)
        arrays = []
        for output, origin in zip(self.outputs, self.origins, strict=True):
            array = evaluate(output.value, batch) if origin.column is None else batch.column(origin.column)
            if output.part is not None:
                array = _narrow(array, output.part)
            if origin.converted is not None:
                array = _as_seen(array, origin.converted, origin.visible, rows)
            arrays.append(array)
        if not any(isinstance(array, pa.DictionaryArray) for array in arrays):
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        fields = [field.with_type(array.type) for field, array in zip(self.schema, arrays, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, self.schema.metadata))

    def to_table(self, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        """Return applied batches as a table; one without columns keeps its number of rows."""
        if self.outputs:
            return pa.Table.from_batches(batches, schema=self.schema)
        found = list(batches)
        return pa.Table.from_batches(found) if found else pa.schema([]).empty_table()


def _narrow(array: pa.Array, part: Field) -> pa.Array:
    """Return an array with only the selected fields of structs, in their order; a filter may need others."""
    if not _is_struct(part):
        return array
    children = [_narrow(array.field(child.name), child) for child in part.children]
    fields = [
        array.type.field(child.name).with_type(kept.type) for child, kept in zip(part.children, children, strict=True)
    ]
    wanted = pa.struct(fields)
    if wanted == array.type:
        return array
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(wanted, len(array), [validity], array.null_count, 0, children)


def as_seen(batch: pa.RecordBatch, stored: Schema) -> pa.RecordBatch:
    """Convert a batch of stored columns to public types: extension types, and JSON as text."""
    if not stored.fields:
        return batch
    schema = with_text(stored).to_arrow()
    columns = zip(batch.columns, stored.fields, schema, strict=True)
    return pa.RecordBatch.from_arrays([_as_seen(*column) for column in columns], schema=schema)


def _as_seen(array: pa.Array, stored: Field, visible: pa.Field, rows: Sequence[LiveRows] = ()) -> pa.Array:
    try:
        return retype(to_text(array, stored), visible.type)
    except (CorruptFileError, NotSupportedError) as error:
        path = _unreadable_file(array, stored, rows)
        if path is not None:
            raise locate(error, path, visible.name) from error
        raise type(error)(f"column {visible.name!r}: {error}") from error


def _unreadable_file(array: pa.Array, stored: Field, rows: Sequence[LiveRows]) -> str | None:
    """Return the path of the first data file with JSON that cannot be read, given the fragments that rows are from."""
    start = 0
    for part in rows:
        try:
            to_text(array.slice(start, part.num_rows), stored)
        except (CorruptFileError, NotSupportedError):
            return part.scan.path_of(stored)
        start += part.num_rows
    return None


def plan_projection(
    stored: Schema,
    columns: Columns | None,
    filter: Filter | None = None,
    *,
    extra: Sequence[str] = (),
    computed: Sequence[pa.Field] = (),
) -> Projection:
    """Plan the columns that a scan returns and reads.

    Parameters
    ----------
    stored : Schema
    columns : sequence of str, mapping of str to str, or pa.Schema, optional
        See `LanceDataset.scanner`; by default all stored columns.
    filter : str, pyarrow.compute.Expression or Expression, optional
    extra : sequence of str
        Columns to add unless selected.
    computed : sequence of pa.Field
        Columns that the caller computes and adds to batches before `Projection.apply`.

    Raises
    ------
    InvalidInputError
        If a column does not exist, or an expression is invalid.
    """
    if not computed and (columns is None or _are_names(columns)) and not _has_extensions(stored):
        selection = _known_selection(stored, None if columns is None else tuple(columns), tuple(extra))
    else:
        selection = _bind_selection(stored, columns, extra, computed)
    predicate = None if filter is None else as_expression(filter, selection.visible).require_predicate()
    tested = frozenset() if predicate is None else frozenset(predicate.columns)
    return Projection(
        outputs=selection.outputs,
        filter=predicate,
        source=_source(stored, selection.paths | tested),
        output_source=selection.source,
        filter_source=_source(stored, tested),
        row_columns=_row_columns(selection.paths, stored),
        filter_row_columns=_row_columns(tested, stored),
        schema=selection.schema,
        origins=selection.origins,
    )


@dataclass(frozen=True, slots=True)
class _Selection:
    """The outputs of a scan, whatever its filter.

    Parameters
    ----------
    visible : pa.Schema
        All columns that expressions can name.
    outputs, origins, schema
        See `Projection`.
    paths : frozenset of FieldPath
        The columns, and fields below them, that outputs need.
    source : Schema
        The stored columns of these.
    """

    visible: pa.Schema
    outputs: tuple[Output, ...]
    origins: tuple[Origin, ...]
    schema: pa.Schema
    paths: frozenset[FieldPath]
    source: Schema


def _bind_selection(
    stored: Schema, columns: Columns | None, extra: Sequence[str] = (), computed: Sequence[pa.Field] = ()
) -> _Selection:
    visible = visible_schema(stored, computed)
    outputs = _bind_outputs(columns, stored, visible)
    present = {output.name for output in outputs}
    outputs += [Output(name, as_expression(Column((name,)), visible)) for name in extra if name not in present]
    paths = frozenset(path for output in outputs for path in output.paths)
    source = _source(stored, paths)
    stored_by_name, read_by_name = stored.by_name(), source.by_name()
    fields = [_output_field(output, stored_by_name, visible) for output in outputs]
    return _Selection(
        visible=visible,
        outputs=tuple(outputs),
        origins=tuple(
            Origin(output.copied, _converted(output.stored(read_by_name), field), field)
            for output, field in zip(outputs, fields, strict=True)
        ),
        schema=pa.schema(fields, metadata=visible.metadata),
        paths=paths,
        source=source,
    )


def _converted(stored: Field | None, visible: pa.Field) -> Field | None:
    """Return a stored field whose values have another form or type when they are returned."""
    if stored is None or stored.children or has_json(stored) or stored.to_arrow_type() != visible.type:
        return stored
    return None


_known_selection = functools.lru_cache(maxsize=_KEPT)(_bind_selection)
"""Scans of a table often have the same columns, whose readers then serve all of them."""


@functools.lru_cache(maxsize=_KEPT)
def _source(stored: Schema, paths: frozenset[FieldPath]) -> Schema:
    return prune(stored, paths)


@functools.lru_cache(maxsize=_KEPT)
def _has_extensions(stored: Schema) -> bool:
    """Return whether there are extension types, which may be registered at any time."""
    return any(field.extension_name for field in stored.walk())


def _are_names(columns: Columns) -> bool:
    return isinstance(columns, list | tuple) and all(isinstance(name, str) for name in columns)


def _row_columns(paths: Iterable[FieldPath], stored: Schema) -> tuple[str, ...]:
    used = {path[0] for path in paths}
    return tuple(name for name in ROW_COLUMNS if name in used and name not in stored.names)


def _with_row_columns(batch: pa.RecordBatch, names: Sequence[str], rows: Sequence[LiveRows]) -> pa.RecordBatch:
    if not names:
        return batch
    added = [pa.concat_arrays([row_column(name, part) for part in rows]) for name in names]
    arrays = [*batch.columns, *added]
    return pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *names])


def _output_field(output: Output, columns: Mapping[str, Field], visible: pa.Schema) -> pa.Field:
    field = output.stored(columns)
    shown = None if field is None else with_text(Schema((field,))).to_arrow().field(0)
    if output.copied is not None:
        return (visible.field(output.copied) if shown is None else shown).with_name(output.name)
    return pa.field(output.name, output.value.type if shown is None else shown.type)


def _bind_outputs(columns: Columns | None, stored: Schema, visible: pa.Schema) -> list[Output]:
    if columns is None:
        return [Output(name, as_expression(Column((name,)), visible)) for name in stored.names]
    if isinstance(columns, pa.Schema):
        by_name = stored.by_name()
        return [_select(field, by_name.get(field.name), visible) for field in columns]
    if isinstance(columns, Mapping):
        return [Output(name, as_expression(text, visible)) for name, text in columns.items()]
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise InvalidInputError(f"columns is {columns!r}; a list of column names is needed")
    if len(set(columns)) < len(columns):
        raise InvalidInputError(f"columns is {list(columns)!r}; a column can be selected only once")
    return [Output(name, _as_column(name, visible)) for name in columns]


def visible_schema(stored: Schema, computed: Sequence[pa.Field] = ()) -> pa.Schema:
    """Return all columns that expressions can name: stored ones, row columns, and those that the caller computes."""
    arrow = stored.to_storage()
    hidden = [pa.field(name, pa.uint64()) for name in ROW_COLUMNS if name not in stored.names]
    return pa.schema([*arrow, *hidden, *computed], metadata=arrow.metadata)


def _select(wanted: pa.Field, found: Field | None, visible: pa.Schema) -> Output:
    """Select what a field names of a stored one, if it is not computed."""
    value = _as_column(wanted.name, visible)
    part = None if found is None else _part(found, wanted.type, wanted.name)
    return Output(wanted.name, value, None if part == found else part)


def _part(field: Field, wanted: pa.DataType, path: str) -> Field:
    """Return a stored field with only the struct fields that a type names; types of values are ignored."""
    if not _is_struct(field) or not pa.types.is_struct(wanted):
        return field
    by_name = {child.name: child for child in field.children}
    missing = [child.name for child in wanted if child.name not in by_name]
    if missing or not wanted.num_fields:
        raise InvalidInputError(f"{path} has no field {missing[0]!r}" if missing else f"no field of {path} is wanted")
    children = [_part(by_name[child.name], child.type, f"{path}.{child.name}") for child in wanted]
    return dataclasses.replace(field, children=tuple(children))


def _is_struct(field: Field) -> bool:
    return field.logical_type == "struct" and bool(field.children) and not is_packed(field)


def _leaves(field: Field, above: FieldPath = ()) -> Iterator[FieldPath]:
    path = (*above, field.name)
    if not _is_struct(field):
        yield path
        return
    for child in field.children:
        yield from _leaves(child, path)


def _as_column(name: str, visible: pa.Schema) -> BoundExpression:
    """Bind the name of a column, or the dotted path of a field below one."""
    if visible.get_field_index(name) >= 0:
        return as_expression(Column((name,)), visible)
    try:
        bound = as_expression(name, visible)
    except InvalidInputError as error:
        if "." in name or "`" in name:
            raise
        bound = None
        cause: InvalidInputError | None = error
    else:
        cause = None
    if bound is None or not isinstance(bound.expression, Column) or bound.expression.path[0] not in visible.names:
        known = ", ".join(name for name in visible.names if name not in ROW_COLUMNS)
        raise InvalidInputError(f"there is no column {name!r}; the columns are {known or '(none)'}") from cause
    return bound
