"""Expressions as trees of small values.

A tree does not depend on its evaluation. `binding` turns one into a tree whose types all fit, and `evaluation` computes
that over record batches. There are fewer kinds of nodes than forms of SQL, which simplifies pruning and pushdown:
`BETWEEN` is two comparisons, `IS TRUE` is `NullSafeEqual` to true, `NOT IN` is `Not` of `In`, and a chain of `AND` is
one node.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import field, fields, replace
from itertools import islice
from typing import Any, ClassVar, TypeAlias
from typing import Literal as OneOf

import pyarrow as pa

from lance_format.expressions import constants
from lance_format.lazy_dataclasses import dataclass

FieldPath: TypeAlias = tuple[str, ...]
"""The names that lead to a column: its own, and below a struct those of the fields."""

ComparisonOperator: TypeAlias = OneOf["=", "!=", "<", "<=", ">", ">="]
ArithmeticOperator: TypeAlias = OneOf["+", "-", "*", "/", "%"]
CheckedOperator: TypeAlias = OneOf["+", "-", "*", "/", "%", "&", "|", "^"]

MIRRORED: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
"""The operator that holds once the sides are swapped."""

NEGATED: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}
"""The operator that holds exactly where the other does not; so with NaN too, which is ordered."""


@dataclass(frozen=True, slots=True, repr=False)
class Expression:
    """Base of all nodes."""

    _operands: ClassVar[tuple[str, ...]] = ()
    """The attributes that hold the nodes below this one: an expression each, or a tuple of them."""

    @property
    def children(self) -> tuple[Expression, ...]:
        """The nodes right below this one, in the order of the parameter of `with_children`."""
        found: list[Expression] = []
        for name in self._operands:
            operand = getattr(self, name)
            found.extend(operand if isinstance(operand, tuple) else (operand,))
        return tuple(found)

    def with_children(self, children: Iterable[Expression]) -> Expression:
        """Return the same node over the same number of other children."""
        rest = iter(children)
        changes: dict[str, Any] = {}
        for name in self._operands:
            operand = getattr(self, name)
            changes[name] = tuple(islice(rest, len(operand))) if isinstance(operand, tuple) else next(rest)
        return replace(self, **changes)

    def __repr__(self) -> str:
        # Cut, as lists of constants may be long; `lance_format.expressions.to_sql` renders an expression in full.
        return f"{type(self).__name__}({', '.join(reprlib.repr(getattr(self, item.name)) for item in fields(self))})"


@dataclass(frozen=True, slots=True, repr=False)
class Column(Expression):
    """The values of a column, or of a field below struct columns."""

    path: FieldPath


@dataclass(frozen=True, slots=True, repr=False)
class Literal(Expression):
    """A constant with its type; the scalar of type null is the untyped `NULL`."""

    value: pa.Scalar

    def __eq__(self, other: object) -> bool:
        """Return whether two constants are the same one; 0.0 and -0.0 are equal, and not the same."""
        if not isinstance(other, Literal) or self.value != other.value:
            return False
        return constants.are_identical(self.value, other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_literal, (constants.to_ipc(constants.as_array(self.value)),)

    @property
    def is_null(self) -> bool:
        """True if the constant is NULL, typed or not."""
        return not self.value.is_valid


@dataclass(frozen=True, slots=True, repr=False)
class _Unary(Expression):
    _operands: ClassVar[tuple[str, ...]] = ("operand",)

    operand: Expression


@dataclass(frozen=True, slots=True, repr=False)
class Not(_Unary):
    """SQL's negation: unknown stays unknown."""


@dataclass(frozen=True, slots=True, repr=False)
class IsNull(_Unary):
    """Test for null; never null itself. NaN is a value."""


@dataclass(frozen=True, slots=True, repr=False)
class Negate(_Unary):
    """Unary minus."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Expression):
    """A comparison; null if a side is."""

    _operands: ClassVar[tuple[str, ...]] = ("left", "right")

    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, repr=False)
class NullSafeEqual(Expression):
    """Equality for which null equals null (`IS NOT DISTINCT FROM`); never null itself."""

    _operands: ClassVar[tuple[str, ...]] = ("left", "right")

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, repr=False)
class Arithmetic(Expression):
    """`+`, `-`, `*`, `/` or `%`."""

    _operands: ClassVar[tuple[str, ...]] = ("left", "right")

    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, repr=False)
class CheckedArithmetic(Expression):
    """Arithmetic with a given result type, as in ANSI SQL: results that it cannot hold are errors.

    The divisor comes before the dividend, and any other left operand before the right one. Where the first operand is
    null, errors of the second are ignored, as in Spark.

    Parameters
    ----------
    operator : CheckedOperator
    left, right : Expression
        Integers or floating-point numbers of the result type, or any decimals, to `+`, `-` and `*`.
    type : pa.DataType
        Decimals are rounded half away from zero to it.
    """

    _operands: ClassVar[tuple[str, ...]] = ("left", "right")

    operator: CheckedOperator
    left: Expression
    right: Expression
    type: pa.DataType


@dataclass(frozen=True, slots=True, repr=False)
class _Connective(Expression):
    _operands: ClassVar[tuple[str, ...]] = ("operands",)

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, repr=False)
class And(_Connective):
    """All operands hold, in Kleene's logic; of two operands or more."""


@dataclass(frozen=True, slots=True, repr=False)
class Or(_Connective):
    """Some operand holds, in Kleene's logic; of two operands or more."""


@dataclass(frozen=True, slots=True, repr=False)
class In(Expression):
    """Test for membership among constants.

    A null value gives null, and so does a value that is not found if one of the constants is null.

    Parameters
    ----------
    operand : Expression
    values : pa.Array
        Any number of constants, of one type.
    """

    _operands: ClassVar[tuple[str, ...]] = ("operand",)

    operand: Expression
    values: pa.Array = field(hash=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_in, (self.operand, constants.to_ipc(self.values))


@dataclass(frozen=True, slots=True, repr=False)
class Like(Expression):
    r"""Match of a whole string with a pattern, where `%` matches any characters and `_` one.

    Parameters
    ----------
    operand : Expression
    pattern : str
        `\` makes the next character literal, independent of the escape character of the SQL text.
    ignore_case : bool
    """

    _operands: ClassVar[tuple[str, ...]] = ("operand",)

    operand: Expression
    pattern: str
    ignore_case: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Cast(Expression):
    """A value in another type.

    Parameters
    ----------
    operand : Expression
    type : pa.DataType
    null_on_failure : bool
        Whether values that the type cannot hold become null (`TRY_CAST`) rather than an error.
    """

    _operands: ClassVar[tuple[str, ...]] = ("operand",)

    operand: Expression
    type: pa.DataType
    null_on_failure: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Case(Expression):
    """The value of the first branch whose condition holds, else the default.

    Parameters
    ----------
    conditions : tuple of Expression
    values : tuple of Expression
        As many as conditions.
    default : Expression
    """

    _operands: ClassVar[tuple[str, ...]] = ("conditions", "values", "default")

    conditions: tuple[Expression, ...]
    values: tuple[Expression, ...]
    default: Expression


@dataclass(frozen=True, slots=True, repr=False)
class Call(Expression):
    """A function of the table in `functions.registry`, by its name there."""

    _operands: ClassVar[tuple[str, ...]] = ("arguments",)

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, repr=False)
class GetField(Expression):
    """A field of a struct that is computed; of a column it is a longer path."""

    _operands: ClassVar[tuple[str, ...]] = ("operand",)

    operand: Expression
    name: str


def _unpickle_literal(data: bytes) -> Literal:
    return Literal(constants.from_ipc(data)[0])


def _unpickle_in(operand: Expression, data: bytes) -> In:
    return In(operand, constants.from_ipc(data))


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield a node and all below it, parents first."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def columns_of(expression: Expression) -> tuple[FieldPath, ...]:
    """Return the columns that an expression reads, each once, in the order of appearance."""
    return tuple(dict.fromkeys(node.path for node in walk(expression) if isinstance(node, Column)))


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Split a predicate into the terms that all must hold for it to hold."""
    if isinstance(expression, And):
        return tuple(term for operand in expression.operands for term in conjuncts(operand))
    return (expression,)


def conjunction(terms: tuple[Expression, ...]) -> Expression:
    """Join predicates by AND; the inverse of `conjuncts`. No terms at all hold always."""
    if not terms:
        return Literal(pa.scalar(True))
    return terms[0] if len(terms) == 1 else And(terms)


def disjunction(terms: tuple[Expression, ...]) -> Expression:
    """Join predicates by OR; no terms at all hold never."""
    if not terms:
        return Literal(pa.scalar(False))
    return terms[0] if len(terms) == 1 else Or(terms)
