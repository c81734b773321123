"""Reads that return partial aggregates: each task groups its rows, and Spark adds up the rows of all tasks.

The planner bridge writes the groups and aggregates as JSON:

```
{"groups": [value, …],
 "functions": [[name, its arguments: values …], …],
 "columns": the columns that the values need, a schema of Spark's as JSON}
```

Values have the forms of `connector.read.expressions`; names are those of `lance_format.aggregation.functions`. The
columns of the result are those of the groups, then those of the functions: one each, or one per field of a state.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from connector.options.options import LanceOptions
from connector.read.expressions import to_expression
from connector.read.known_fragments import KnownFragments
from connector.read.partition import ScanPartition
from connector.read.pushed import Pushed
from connector.read.reader import LanceReader
from connector.read.shared_functions import SharedFunctions
from connector.read.task_errors import told_briefly
from connector.types.batches import join, split, to_spark_items
from connector.types.schemas import to_exchange_schema
from lance_format import InvalidInputError, LanceScanner, ScanTask
from lance_format.aggregation import Aggregate, PartialAggregation
from lance_format.expressions import Together, bind, looked_up

_BATCH_ROWS = 1 << 16


class AggregateReader(LanceReader):
    """Reader of partial aggregates of one version of a table.

    Parameters
    ----------
    options : LanceOptions
        See `LanceReader`.
    schema : StructType
        The columns of groups and functions.
    pushed : Pushed
        With aggregates.

    Raises
    ------
    InvalidInputError
        If the aggregates are not in the form that the planner bridge writes; and see `LanceReader`.
    """

    def __init__(self, options: LanceOptions, schema: StructType, pushed: Pushed) -> None:
        try:
            form = json.loads(pushed.aggregates or "")
            columns = StructType.fromJson(json.loads(form["columns"]))
            groups = [to_expression(group) for group in form["groups"]]
            functions = [(name, [to_expression(value) for value in values]) for name, *values in form["functions"]]
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError, pa.ArrowException) as error:
            raise InvalidInputError(f"the aggregates {pushed.aggregates!r:.200} cannot be read") from error
        super().__init__(options, columns, pushed)
        self._result = schema
        read = to_exchange_schema(columns)
        self._groups = [bind(group, read) for group in groups]
        bound = [(name, tuple(bind(value, read) for value in values)) for name, values in functions]
        self._known = KnownFragments([] if self._groups or self._filter is not None else bound)
        self._shared = SharedFunctions(bound, read)
        self._functions = self._shared.computed
        self._values = Together([*self._groups, *(value for _, values in self._functions for value in values)])

    @told_briefly
    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Aggregate the rows of one task; without groups, one row at least is returned.

        Raises
        ------
        InvalidInputError
            If a value cannot be computed: its type cannot hold it, or a divisor is zero.
        CommitConflictError
            See `LanceReader`.
        """
        schema = to_exchange_schema(self._result)
        if self._known.may_be_known and isinstance(partition, ScanPartition):
            known, task = self._known.divide(self._dataset, partition.task, schema)
            yield from known
            if known and not task.ranges:
                return
            partition = ScanPartition(task)
        aggregation = self._start()
        for batch in join(super().read(partition)):
            computed = self._values.evaluate(batch)
            keys = [computed[group] for group in self._groups]
            arguments = [_argument([computed[value] for value in values]) for _, values in self._functions]
            yield from self._as_read(aggregation.add(keys, arguments, batch.num_rows), schema)
        yield from self._as_read(aggregation.finish(), schema)

    def _read_task(self, scanner: LanceScanner, task: ScanTask) -> Iterator[pa.RecordBatch]:
        return scanner.read_task_as_stored(task)

    def _exchanged(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        return to_spark_items(batch, schema)

    def _as_read(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        num_keys = len(self._groups)
        for batch in batches:
            for part in split(batch, _BATCH_ROWS):
                if not len(schema):
                    yield part.select([])
                    continue
                columns = [*part.columns[:num_keys], *self._shared.complete(part.columns[num_keys:])]
                yield pa.RecordBatch.from_arrays(_flattened(columns), schema=schema)

    def _start(self) -> PartialAggregation:
        keys = pa.schema([(f"group {index}", group.type) for index, group in enumerate(self._groups)])
        aggregates = []
        for index, (name, values) in enumerate(self._functions):
            argument = _argument([pa.array([], value.type) for value in values])
            aggregates.append(Aggregate(f"function {index}", name, None if argument is None else argument.type))
        return PartialAggregation(keys, aggregates)


def _argument(values: list[pa.Array]) -> pa.Array | None:
    """Return the argument of a function: nothing, a value, or a struct of several."""
    if len(values) > 1:
        return pa.StructArray.from_arrays(
            list(map(looked_up, values)), [f"value {index}" for index in range(len(values))]
        )
    return values[0] if values else None


def _flattened(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Return the columns, and the fields of those that are structs."""
    found: list[pa.Array] = []
    for array in columns:
        found += array.flatten() if pa.types.is_struct(array.type) else [array]
    return found
