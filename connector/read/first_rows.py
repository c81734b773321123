"""Reads of the first rows of groups: each task drops rows with enough better ones, and Spark numbers the others.

The planner bridge writes the groups and their order as JSON:

```
{"keys": [column, …],
 "order": [column, ascending, nulls first],
 "limit": the number of rows of each group,
 "distinct": whether equal values of the order count once,
 "drops_ties": whether any rows will do that are equal in the order}
```
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from connector.options.options import LanceOptions
from connector.read.pushed import Pushed
from connector.read.reader import LanceReader
from connector.read.task_errors import told_briefly
from connector.types.batches import join
from connector.types.schemas import to_exchange_schema
from lance_format import InvalidInputError
from lance_format.aggregation import FirstRows, GroupOrder


class FirstRowsReader(LanceReader):
    """Reader of the rows of one version of a table that may be among the first of their groups.

    Parameters
    ----------
    options : LanceOptions
        See `LanceReader`.
    schema : StructType
        The columns that Spark expects, those of the groups and of the order among them.
    pushed : Pushed
        With `first`.

    Raises
    ------
    InvalidInputError
        If the groups are not in the form that the planner bridge writes; and see `LanceReader`.
    """

    def __init__(self, options: LanceOptions, schema: StructType, pushed: Pushed) -> None:
        super().__init__(options, schema, pushed)
        try:
            form = json.loads(pushed.first or "")
            self._groups = GroupOrder(tuple(form["keys"]), *form["order"])
            self._first = int(form["limit"])
            self._how = {name: bool(form[name]) for name in ("distinct", "drops_ties")}
            self._first_rows()
        except (ValueError, TypeError, KeyError, StopIteration) as error:
            raise InvalidInputError(f"the groups {pushed.first!r:.200} cannot be read") from error

    @told_briefly
    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Read one task; see `LanceReader`."""
        rows = self._first_rows()
        for batch in join(super().read(partition)):
            yield from rows.add(batch)
        yield from rows.finish()

    def _first_rows(self) -> FirstRows:
        return FirstRows(to_exchange_schema(self._schema), self._groups, self._first, **self._how)
