"""An expression that fits a schema."""

from __future__ import annotations

import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.expressions.nodes import Expression, FieldPath
from lance_format.expressions.rendering import to_sql
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """Expression that fits a schema: the result of `bind`, and the argument of `evaluate`.

    Parameters
    ----------
    expression : Expression
        With the names of columns as the schema spells them, constants folded, and casts wherever types differ.
    type : pa.DataType
        Of the result.
    columns : tuple of Path
        The columns that are read, each once.
    """

    expression: Expression
    type: pa.DataType
    columns: tuple[FieldPath, ...]

    @property
    def is_predicate(self) -> bool:
        """True if the result is boolean."""
        return bool(pa.types.is_boolean(self.type))

    def require_predicate(self) -> BoundExpression:
        """Return the expression itself if it can filter rows.

        Raises
        ------
        InvalidInputError
            If its result is not boolean.
        """
        if not self.is_predicate:
            raise InvalidInputError(
                f"the filter {to_sql(self.expression)} gives {self.type}, not a boolean; compare it with something"
            )
        return self
