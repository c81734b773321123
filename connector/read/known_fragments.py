"""Aggregates of whole fragments that statistics answer: no page of these fragments is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from connector.types.arrays import convert
from lance_format import ColumnBounds, LanceDataset, ScanTask
from lance_format.expressions import BoundExpression
from lance_format.expressions.nodes import Column

_KNOWN: dict[str, Callable[[ColumnBounds], pa.Scalar | None]] = {
    "count": lambda bounds: pa.scalar(bounds.num_rows - bounds.num_nulls),
    "min": lambda bounds: bounds.minimum,
    "max": lambda bounds: bounds.maximum,
}


class KnownFragments:
    """Values of aggregates without groups, of rows without a filter.

    Parameters
    ----------
    functions : sequence of (str, sequence of BoundExpression)
        Functions and their arguments.
    """

    def __init__(self, functions: Sequence[tuple[str, Sequence[BoundExpression]]]) -> None:
        self._functions = [(name, _column(values[0]) if len(values) == 1 else None) for name, values in functions]
        self.may_be_known = any(values for _, values in functions) and all(
            name == "count_all" or (name in _KNOWN and column is not None) for name, column in self._functions
        )
        self._columns = list(dict.fromkeys(column for _, column in self._functions if column is not None))

    def divide(self, dataset: LanceDataset, task: ScanTask, schema: pa.Schema) -> tuple[list[pa.RecordBatch], ScanTask]:
        """Return a row for each fragment whose values are known, and a task of the other rows.

        Parameters
        ----------
        dataset : LanceDataset
        task : ScanTask
        schema : pa.Schema
            The columns of the functions.
        """
        if not set(self._columns) <= set(dataset.schema.names):  # Columns of rows have no statistics.
            return [], task
        found, rest = [], []
        for fragment_id, start, stop in task.ranges:
            fragment = dataset.get_fragment(fragment_id)
            is_whole = fragment is not None and (start, stop) == (0, fragment.metadata.physical_rows)
            row = self._row(dataset, fragment_id, schema) if is_whole else None
            if row is None:
                rest.append((fragment_id, start, stop))
            else:
                found.append(row)
        return found, ScanTask(tuple(rest))

    def _row(self, dataset: LanceDataset, fragment_id: int, schema: pa.Schema) -> pa.RecordBatch | None:
        bounds = dataset.column_bounds(self._columns, [fragment_id])
        if len(bounds) < len(self._columns):
            return None
        num_rows = next(iter(bounds.values())).num_rows
        arrays = []
        for (name, column), field in zip(self._functions, schema, strict=True):
            value = pa.scalar(num_rows) if column is None else _KNOWN[name](bounds[column])
            if value is None:
                return None
            arrays.append(convert(_repeated(value), field.type, field.name))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(value: BoundExpression) -> str | None:
    """Return the top-level column that a value is; None for other values."""
    expression = value.expression
    return expression.path[0] if isinstance(expression, Column) and len(expression.path) == 1 else None


def _repeated(value: pa.Scalar) -> pa.Array:
    return pa.repeat(value, 1) if value.is_valid else pa.nulls(1, value.type)
