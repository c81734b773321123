"""Expressions and predicates over Arrow record batches.

>>> import pyarrow as pa
>>> from lance_format import expressions
>>> batch = pa.record_batch({"name": ["owl", "emu"], "wings": [2, 2]})
>>> bound = expressions.as_expression("name < 'f' AND wings = 2", batch.schema)
>>> expressions.filter_mask(bound, batch).to_pylist()
[False, True]
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import InvalidInputError
from lance_format.expressions.binding.bind import bind
from lance_format.expressions.bound import BoundExpression
from lance_format.expressions.evaluation import evaluate, evaluate_items, filter_mask
from lance_format.expressions.items import KEY_TYPE, looked_up
from lance_format.expressions.nodes import (
    Column,
    Expression,
    FieldPath,
    columns_of,
    conjunction,
    conjuncts,
    disjunction,
)
from lance_format.expressions.parsing.arrow import from_arrow
from lance_format.expressions.parsing.plain_sql import parse_plain
from lance_format.expressions.rendering import to_sql
from lance_format.expressions.together import Together

__all__ = [
    "KEY_TYPE",
    "BoundExpression",
    "Expression",
    "FieldPath",
    "Together",
    "as_expression",
    "bind",
    "columns_of",
    "conjunction",
    "conjuncts",
    "disjunction",
    "evaluate",
    "evaluate_items",
    "filter_mask",
    "from_arrow",
    "looked_up",
    "parse",
    "to_sql",
]


def parse(text: str) -> Expression:
    """Parse SQL; see `lance_format.expressions.parsing.sql`.

    Raises
    ------
    InvalidInputError
        If the text is no expression, or has something that is not supported.
    """
    plain = parse_plain(text)
    if plain is not None:
        return plain
    # Importing sqlglot takes 0.12 s, which processes that are given plain text, or none, need not pay.
    from lance_format.expressions.parsing import sql

    return sql.parse(text)


def as_expression(source: str | pc.Expression | Expression, schema: pa.Schema) -> BoundExpression:
    """Fit an expression in any of its forms to a schema.

    Parameters
    ----------
    source : str or pyarrow.compute.Expression or Expression
        SQL, or an expression of pyarrow.
    schema : pa.Schema

    Raises
    ------
    InvalidInputError
        If it has another type or is blank; and see `parse`, `from_arrow` and `bind`.
    """
    if isinstance(source, str):
        # as in the reference, text that is the name of a column means the column, however odd the name
        is_name = not source.isspace() and source != "" and schema.get_field_index(source) >= 0
        return bind(Column((source,)) if is_name else parse(source), schema)
    if isinstance(source, pc.Expression):
        return bind(from_arrow(source, schema), schema)
    if not isinstance(source, Expression):
        raise InvalidInputError(f"{source!r} is no expression; SQL text or an expression of pyarrow is needed")
    return bind(source, schema)
