"""The columns of a stream or feed in versions whose columns differ: renamed, missing, or of another type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from connector.types.batches import to_spark
from connector.types.column_names import find_name
from connector.types.row_columns import ROW_FIELDS
from connector.types.schemas import to_exchange_schema
from lance_format import ChangeLog, LanceDataset
from lance_format.expressions import Expression, columns_of, nodes, parse
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class ReadColumns:
    """Columns to read from any version of a table.

    A version has a column under the name of the field with its id there, else under the same name, unless that is the
    field of another column. Casts change ids, and the id of a dropped column may be given to another. Before an
    overwrite that replaced the columns, ids are those of other columns, and only names count. Where a version has
    neither, the column is null.

    Parameters
    ----------
    schema : StructType
        The columns that Spark expects.
    field_ids : mapping of str to int
        The field ids of all columns of the version that the names are of.
    version : int
        That version.
    filter : str, optional
        The rows to read, in terms of that version.
    tested : mapping of str to pyarrow.DataType
        The types of the columns that the filter reads.
    """

    schema: StructType
    field_ids: Mapping[str, int]
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
        ids = {field.name(): field.id() for field in dataset.lance_schema.fields()}
        types = {name: dataset.schema.field(name).type for name in _filter_columns(predicate, list(ids))}
        return cls(schema, ids, dataset.version, predicate, types)

    def names_in(self, dataset: LanceDataset, log: ChangeLog) -> dict[str, str]:
        """Return the name of each column of the table in a version, without columns that the version lacks.

        Most often, the columns of the version alone tell. Only if not, the versions in between are opened.

        Parameters
        ----------
        dataset : LanceDataset
            Shows the version.
        log : ChangeLog
        """
        fields = {field.name(): field.id() for field in dataset.lance_schema.fields()}
        by_name, by_id = self._find(fields, {}), self._find(fields, self.field_ids)
        if by_name == by_id and set(self.field_ids.values()) <= set(fields.values()):
            return by_id
        first, last = sorted((dataset.version, self.version))
        if not log.keeps_field_ids(first, last):
            return by_name
        if last == dataset.version:
            return by_id
        former = log.former_field_ids(first, last)
        return self._find(fields, {name: former[number] for name, number in self.field_ids.items() if number in former})

    def dropped(self, version: int, log: ChangeLog) -> dict[str, str]:
        """Return the columns that a version lacks, by their names in the version before it.

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
            return {}
        had = self.names_in(log.open(version - 1), log)
        has = self.names_in(log.open(version), log)
        return {own: name for name, own in had.items() if name not in has}

    def stored(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return the names in a version of the columns that Spark expects, without columns that the version lacks.

        Parameters
        ----------
        names : mapping of str to str
            See `names_in`.
        """
        found = {}
        for name in self.schema.names:
            if name in names:
                found[name] = names[name]
            elif name in ROW_FIELDS and name not in self.field_ids:
                found[name] = name
        return found

    def _find(self, fields: Mapping[str, int], ids: Mapping[str, int]) -> dict[str, str]:
        """Find columns by their ids, else by their names, among the ids of a version's fields by their names."""
        names = {number: name for name, number in fields.items()}
        taken = names.keys() & ids.values()
        found = {}
        for name in self.field_ids:
            if ids.get(name) in taken:
                found[name] = names[ids[name]]
            elif name in fields and fields[name] not in taken:
                found[name] = name
        return found

    def fit_filter(self, dataset: LanceDataset, names: Mapping[str, str]) -> str | Expression | None:
        """Return the filter in terms of a version's columns; a column that it lacks is null.

        Parameters
        ----------
        dataset : LanceDataset
            Shows the version.
        names : mapping of str to str
            See `names_in`.
        """
        schema = dataset.schema
        if self.filter is None or all(
            names.get(name) == name and schema.field(name).type == kind for name, kind in self.tested.items()
        ):
            return self.filter
        known = {name: schema.field(names[name]) for name in self.tested if name in names}
        return self._replace_columns(parse(self.filter), known)

    def _replace_columns(self, node: Expression, known: Mapping[str, pa.Field]) -> Expression:
        """Replace the columns of an expression by the fields of a version, cast to the types of the stream."""
        if not isinstance(node, nodes.Column):
            return node.with_children([self._replace_columns(child, known) for child in node.children])
        name = find_name(node.path[0], list(self.tested), case_sensitive=False)
        if name is None:  # a row column
            return node
        wanted = _type_at(self.tested[name], node.path[1:])
        found = None if name not in known else _type_at(known[name].type, node.path[1:])
        if wanted is None:
            return node
        if found is None:
            return nodes.Literal(pa.scalar(None, wanted))
        column = nodes.Column((known[name].name, *node.path[1:]))
        return column if found == wanted else nodes.Cast(column, wanted)

    def requested(self, stored: Mapping[str, str]) -> pa.Schema:
        """Return the columns to ask a scanner of a version for.

        Parameters
        ----------
        stored : mapping of str to str
            See `stored`.
        """
        exchanged = to_exchange_schema(self.schema)
        return pa.schema([exchanged.field(name).with_name(own) for name, own in stored.items()])

    def fit(self, batch: pa.RecordBatch, stored: Mapping[str, str]) -> pa.RecordBatch:
        """Convert a batch of a version to what Spark expects.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        stored : mapping of str to str
            See `stored`.

        Raises
        ------
        NotSupportedError
            If a value does not fit the type.
        SchemaMismatchError
            If a column must not be null, and is.
        """
        exchanged = to_exchange_schema(self.schema)
        if not exchanged.names:
            return to_spark(batch, exchanged)
        columns = [
            batch.column(stored[field.name]) if field.name in stored else pa.nulls(batch.num_rows, field.type)
            for field in exchanged
        ]
        return to_spark(pa.RecordBatch.from_arrays(columns, names=exchanged.names), exchanged)


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
