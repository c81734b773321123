"""Several expressions over the same batches, whose common parts are computed once per batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from lance_format.expressions import nodes
from lance_format.expressions.bound import BoundExpression
from lance_format.expressions.evaluation import Known, evaluate_items


class Together:
    """Some expressions.

    Parameters
    ----------
    values : sequence of BoundExpression
    """

    def __init__(self, values: Sequence[BoundExpression]) -> None:
        self._values = list(dict.fromkeys(values))
        found = Counter(node for value in self._values for node in nodes.walk(value.expression) if node.children)
        self._common = [node for node, count in found.items() if count > 1]

    def evaluate(self, batch: pa.RecordBatch) -> dict[BoundExpression, pa.Array]:
        """Compute all expressions for every row; see `lance_format.expressions.evaluate_items`."""
        known: Known = dict.fromkeys(self._common)
        return {value: evaluate_items(value, batch, known) for value in self._values}
