"""Finding the zones of rows that may match a predicate, by the statistics of its columns.

Every node computes a result for all zones at once. The result of a *predicate* is whether some row of each zone may
make it true, false, or unknown: three separate facts, since a zone has many rows. `NOT` swaps the first two. A
predicate that is false or unknown for no row of a zone is true for all. The result of a *value* is its bounds, and
whether it may be null. Bounds pass through casts and functions that keep the order. An unsupported node may have any
value.

Statistics may be unknown, and bounds wider than the values, so results err only on the side of "may".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.bound import BoundExpression
from lance_format.expressions.functions.registry import FUNCTIONS
from lance_format.expressions.nodes import Expression, FieldPath
from lance_format.expressions.values.casts import cast, keeps_order
from lance_format.expressions.values.integer_set import IntegerSet
from lance_format.expressions.values.order import compare
from lance_format.expressions.values.text_set import TextSet
from lance_format.expressions.zones import ZoneStatistics
from lance_format.lazy_dataclasses import dataclass
from lance_format.masks import is_true
from lance_format.row_numbers import distinct

Mask: TypeAlias = npt.NDArray[np.bool_]

_PREDICATES = (
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.IsNull,
    nodes.Comparison,
    nodes.NullSafeEqual,
    nodes.In,
    nodes.Like,
)
_LIKE_PREFIX = re.compile(r"(?:\\.|[^%_\\]|\\\Z)*", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class ZoneVerdicts:
    """Verdicts of statistics on the rows of a file.

    Parameters
    ----------
    boundaries : int64[num_zones + 1]
        Where each zone starts, and where the last ends: strictly increasing, from 0 to the number of rows. They are
        those of the zones of all columns that were looked at.
    may_match : bool[num_zones]
        Whether a row of the zone may match; none does where it is false.
    must_match : bool[num_zones]
        Whether all rows match, so that the predicate need not be computed.
    """

    boundaries: npt.NDArray[np.int64]
    may_match: Mask
    must_match: Mask


def rows_of_zones(boundaries: npt.NDArray[np.int64], chosen: Mask) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the starts and the stops of the rows of chosen zones; adjacent zones become one range.

    Parameters
    ----------
    boundaries : int64[num_zones + 1]
        See `ZoneVerdicts`.
    chosen : bool[num_zones]
    """
    edges = np.diff(np.concatenate([[0], chosen.view(np.int8), [0]]))
    return boundaries[np.flatnonzero(edges == 1)], boundaries[np.flatnonzero(edges == -1)]


def classify(predicate: BoundExpression, statistics: Mapping[FieldPath, ZoneStatistics], num_rows: int) -> ZoneVerdicts:
    """Find the zones where a predicate may be true, and those where it must be.

    Parameters
    ----------
    predicate : BoundExpression
    statistics : mapping of Path to ZoneStatistics
        Statistics of any columns, whose zones may differ. Missing columns are unknown, and columns that the predicate
        does not read are ignored.
    num_rows : int
        Number of rows of all statistics.

    Raises
    ------
    InvalidInputError
        If the expression is not a predicate, or statistics have another number of rows.
    """
    predicate.require_predicate()
    used = {path: statistics[path] for path in predicate.columns if path in statistics}
    boundaries = _boundaries(used, num_rows)
    columns = {path: _on_grid(found, boundaries) for path, found in used.items()}
    truth = _Visitor(columns, len(boundaries) - 1).truth(predicate.expression)
    return ZoneVerdicts(boundaries, truth.may_be_true, ~(truth.may_be_false | truth.may_be_null))


@dataclass(frozen=True, slots=True, eq=False)
class _Truth:
    """Possible truth values of a predicate in each zone: true, false, null."""

    may_be_true: Mask
    may_be_false: Mask
    may_be_null: Mask


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """Possible values of the rows of each zone: two bounds, null if unknown, and whether nulls are possible."""

    lower: pa.Array | pa.Scalar
    upper: pa.Array | pa.Scalar
    may_be_valid: Mask
    may_be_null: Mask

    @property
    def type(self) -> pa.DataType:
        return self.lower.type

    def where_valid(self, may_be_true: Mask, may_be_false: Mask) -> _Truth:
        """Return the truth of what holds or not of values, and is null of null."""
        return _Truth(may_be_true & self.may_be_valid, may_be_false & self.may_be_valid, self.may_be_null)


class _Visitor:
    def __init__(self, columns: Mapping[FieldPath, _Values], num_zones: int) -> None:
        self._columns = columns
        self._num_zones = num_zones
        self._all = np.ones(num_zones, np.bool_)
        self._none = np.zeros(num_zones, np.bool_)

    def truth(self, node: Expression) -> _Truth:
        """Visit a predicate."""
        match node:
            case nodes.And(operands):
                return _and([self.truth(operand) for operand in operands])
            case nodes.Or(operands):
                return _not(_and([_not(self.truth(operand)) for operand in operands]))
            case nodes.Not(operand):
                return _not(self.truth(operand))
            case nodes.IsNull(operand):
                return self._is_null(operand)
            case nodes.Comparison(operator, left, right):
                return self._comparison(operator, left, right)
            case nodes.NullSafeEqual(left, right):
                return self._null_safe_equal(left, right)
            case nodes.In(operand, constants):
                return self._in(operand, constants)
            case nodes.Like(operand, pattern, ignore_case):
                return self._like(operand, pattern, ignore_case)
            case nodes.Case(conditions, branches, default):
                return self._case(conditions, branches, default)
            case nodes.Call("coalesce", arguments):
                return self._coalesce(arguments)
            case nodes.Call("starts_with", (operand, nodes.Literal(prefix))) if pa.types.is_string(prefix.type):
                return self._starts_with(operand, prefix.as_py(), whole=True)
        return self._truth_of_values(self._leaf(node))

    def _values(self, node: Expression) -> _Values | None:
        """Visit what need not be a predicate; None if nothing is known of it."""
        if not isinstance(node, _PREDICATES):
            return self._leaf(node)
        truth = self.truth(node)
        lower, upper = pa.array(~truth.may_be_false), pa.array(truth.may_be_true)
        return _Values(lower, upper, truth.may_be_true | truth.may_be_false, truth.may_be_null)

    def _leaf(self, node: Expression) -> _Values | None:
        match node:
            case nodes.Column(path):
                return self._columns.get(path)
            case nodes.Literal(value) if value.is_valid:
                return _Values(value, value, self._all, self._none)
            case nodes.Literal(value):
                return _Values(value, value, self._none, self._all)
            case nodes.Cast(operand):
                values = self._values(operand)
                return None if values is None else _cast(values, node)
            case nodes.Call(name, arguments) if (position := _ordered_argument(name, arguments)) is not None:
                values = self._values(arguments[position])
                return None if values is None else _applied(name, arguments, position, values)
        return None

    def _truth_of_values(self, values: _Values | None) -> _Truth:
        if values is None:
            return self._unknown()
        if not pa.types.is_boolean(values.type):
            return values.where_valid(self._all, self._all)
        constant = pa.scalar(True)
        return values.where_valid(self._may("=", values.upper, constant), self._may("!=", values.lower, constant))

    def _unknown(self) -> _Truth:
        return _Truth(self._all, self._all, self._all)

    def _may(self, operator: nodes.ComparisonOperator, left: Any, right: Any) -> Mask:
        """Return where bounds compare so, or are unknown."""
        result = compare(operator, left, right)
        if isinstance(result, pa.Scalar):
            return self._none if result.as_py() is False else self._all
        return _mask(pc.fill_null(result, True))

    def _is_null(self, operand: Expression) -> _Truth:
        values = self._values(operand)
        if values is None:
            return _Truth(self._all, self._all, self._none)
        return _Truth(values.may_be_null, values.may_be_valid, self._none)

    def _comparison(self, operator: nodes.ComparisonOperator, left: Expression, right: Expression) -> _Truth:
        one, other = self._values(left), self._values(right)
        if one is None or other is None:
            return self._unknown()
        truth = self._compared(operator, one, other)
        both_valid = one.may_be_valid & other.may_be_valid
        may_be_null = one.may_be_null | other.may_be_null
        return _Truth(truth.may_be_true & both_valid, truth.may_be_false & both_valid, may_be_null)

    def _compared(self, operator: nodes.ComparisonOperator, left: _Values, right: _Values) -> _Truth:
        """Compare values as if none were null."""
        if left.type != right.type:
            return self._unknown()
        match operator:
            case "!=":
                return _not(self._compared("=", left, right))
            case ">" | ">=":
                return self._compared(nodes.MIRRORED[operator], right, left)
            case "=":
                overlap = self._may("<=", left.lower, right.upper) & self._may("<=", right.lower, left.upper)
                # all are equal only if the least of each side is the greatest of the other
                differ = self._may("<", left.lower, right.upper) | self._may("<", right.lower, left.upper)
                return _Truth(overlap, differ, self._none)
        may_hold = self._may(operator, left.lower, right.upper)
        may_fail = self._may(nodes.NEGATED[operator], left.upper, right.lower)
        return _Truth(may_hold, may_fail, self._none)

    def _null_safe_equal(self, left: Expression, right: Expression) -> _Truth:
        one, other = self._values(left), self._values(right)
        if one is None or other is None:
            return _Truth(self._all, self._all, self._none)
        equal = self._compared("=", one, other)
        both_valid = one.may_be_valid & other.may_be_valid
        may_be_true = equal.may_be_true & both_valid | one.may_be_null & other.may_be_null
        one_null = one.may_be_null & other.may_be_valid | one.may_be_valid & other.may_be_null
        return _Truth(may_be_true, equal.may_be_false & both_valid | one_null, self._none)

    def _in(self, operand: Expression, constants: pa.Array) -> _Truth:
        values, known = self._values(operand), constants.drop_null() if constants.null_count else constants
        if values is None:
            return self._unknown()
        if values.type != known.type:
            return values.where_valid(self._all, self._all)
        may_be_in, may_be_out = self._among(values, known)
        truth = values.where_valid(may_be_in, may_be_out)
        if not constants.null_count:
            return truth
        return _Truth(truth.may_be_true, self._none, truth.may_be_null | truth.may_be_false)

    def _among(self, values: _Values, constants: pa.Array) -> tuple[Mask, Mask]:
        """Return the zones where some value may be among the constants, and those where some value may not be."""
        bounds = [_repeat(bound, self._num_zones) for bound in (values.lower, values.upper)]
        known = IntegerSet.of(constants) or TextSet.of(constants)
        if known is not None:
            return known.among(*bounds)
        ranks = (
            pc.rank(pa.concat_arrays([constants, *bounds]), "ascending", tiebreaker="dense").to_numpy().astype(np.int64)
        )
        positions, lower, upper = np.split(ranks, [len(constants), len(constants) + self._num_zones])
        positions = distinct(positions)
        lower = np.where(_mask(bounds[0].is_valid()), lower, 0)
        upper = np.where(_mask(bounds[1].is_valid()), upper, len(ranks) + 1)
        first = np.searchsorted(positions, lower)  # of the constants that are not below the zone
        positions = np.append(positions, len(ranks) + 2)
        return positions[first] <= upper, (lower != upper) | (positions[first] != lower)

    def _like(self, operand: Expression, pattern: str, ignore_case: bool) -> _Truth:
        if ignore_case:
            return self._starts_with(operand, None, whole=False)
        found = _LIKE_PREFIX.match(pattern)
        assert found is not None  # it matches nothing too
        prefix, rest = _ESCAPED.sub(r"\1", found[0]), pattern[found.end() :]
        return self._starts_with(operand, prefix, whole=not rest.strip("%"), alone=not rest)

    def _starts_with(self, operand: Expression, prefix: str | None, *, whole: bool, alone: bool = False) -> _Truth:
        """Answer for what needs a prefix: and if `whole` nothing else, and if `alone` nothing behind it."""
        values = self._values(operand)
        if values is None:
            return self._unknown()
        if prefix is None or not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            return values.where_valid(self._all, self._all)
        constant = pa.scalar(prefix, values.type)
        if alone:
            equal = self._compared("=", values, _Values(constant, constant, self._all, self._none))
            return values.where_valid(equal.may_be_true, equal.may_be_false)
        starts = [_repeat(pc.starts_with(bound, prefix), self._num_zones) for bound in (values.lower, values.upper)]
        lower_starts, upper_starts = (_mask(is_true(found)) for found in starts)
        # what starts with it lies between it and the first that exceeds it and does not start with it
        may_start = self._may(">=", values.upper, constant) & (self._may("<=", values.lower, constant) | lower_starts)
        return values.where_valid(may_start, ~(lower_starts & upper_starts) if whole else self._all)

    def _case(
        self, conditions: tuple[Expression, ...], branches: tuple[Expression, ...], default: Expression
    ) -> _Truth:
        reached, parts = self._all, []
        for condition, branch in zip(conditions, branches, strict=True):
            taken = self.truth(condition)
            parts.append(_within(reached & taken.may_be_true, self.truth(branch)))
            reached = reached & (taken.may_be_false | taken.may_be_null)
        return _any([*parts, _within(reached, self.truth(default))])

    def _coalesce(self, arguments: tuple[Expression, ...]) -> _Truth:
        reached, parts = self._all, []
        for argument in arguments:
            truth = self.truth(argument)
            part = _within(reached, truth)
            parts.append(_Truth(part.may_be_true, part.may_be_false, self._none))
            reached = reached & truth.may_be_null
        return _any([*parts, _Truth(self._none, self._none, reached)])


def _not(truth: _Truth) -> _Truth:
    return _Truth(truth.may_be_false, truth.may_be_true, truth.may_be_null)


def _and(operands: list[_Truth]) -> _Truth:
    may_be_true = np.logical_and.reduce([operand.may_be_true for operand in operands])
    not_false = np.logical_and.reduce([operand.may_be_true | operand.may_be_null for operand in operands])
    some_null = np.logical_or.reduce([operand.may_be_null for operand in operands])
    return _Truth(
        may_be_true, np.logical_or.reduce([operand.may_be_false for operand in operands]), some_null & not_false
    )


def _any(parts: list[_Truth]) -> _Truth:
    """Return the truth of rows where each belongs to one of several parts."""
    return _Truth(
        np.logical_or.reduce([part.may_be_true for part in parts]),
        np.logical_or.reduce([part.may_be_false for part in parts]),
        np.logical_or.reduce([part.may_be_null for part in parts]),
    )


def _within(zones: Mask, truth: _Truth) -> _Truth:
    return _Truth(zones & truth.may_be_true, zones & truth.may_be_false, zones & truth.may_be_null)


def _cast(values: _Values, node: nodes.Cast) -> _Values | None:
    if values.type == node.type:
        return values
    if not keeps_order(values.type, node.type):
        return None
    # any value may fail to convert, or become null; the others lie between the converted bounds
    lower, upper = (cast(bound, node.type, null_on_failure=True) for bound in (values.lower, values.upper))
    may_be_null = values.may_be_null | values.may_be_valid if node.null_on_failure else values.may_be_null
    return _Values(lower, upper, values.may_be_valid, may_be_null)


def _ordered_argument(name: str, arguments: tuple[Expression, ...]) -> int | None:
    """Return the index of the argument whose order a function keeps, if the others are constants; else None."""
    match name, arguments:
        case "substr", (_, nodes.Literal(start), *rest) if start.as_py() == 1:
            return 0 if all(isinstance(argument, nodes.Literal) for argument in rest) else None
        case "left", (_, nodes.Literal(count)) if count.is_valid and count.as_py() >= 0:
            return 0
        case "date_part", (nodes.Literal(part), _) if str(part.as_py()).lower() == "year":
            return 1
        case "date_trunc", (nodes.Literal(), _):
            return 1
    return None


def _applied(name: str, arguments: tuple[Expression, ...], position: int, values: _Values) -> _Values | None:
    if pa.types.is_timestamp(values.type) and values.type.tz not in (None, "UTC"):
        return None  # a clock that is put back may show the year before
    constants = [argument.value if isinstance(argument, nodes.Literal) else None for argument in arguments]
    try:
        lower, upper = (
            FUNCTIONS[name].apply(*constants[:position], bound, *constants[position + 1 :])
            for bound in (values.lower, values.upper)
        )
    except pa.ArrowInvalid:  # a date may be out of the range of a function
        return None
    return _Values(lower, upper, values.may_be_valid, values.may_be_null)


def _boundaries(statistics: Mapping[FieldPath, ZoneStatistics], num_rows: int) -> npt.NDArray[np.int64]:
    """Return the boundaries of the zones of all columns, without duplicates."""
    ends = [np.array([0, num_rows], np.int64)]
    for path, found in statistics.items():
        ends.append(np.cumsum(found.num_rows, dtype=np.int64))
        if (found.num_rows < 0).any() or found.num_rows.sum() != num_rows:
            name = ".".join(path)
            raise InvalidInputError(f"the zones of {name} have {found.num_rows.sum()} rows; there are {num_rows}")
    return distinct(np.concatenate(ends))


def _on_grid(found: ZoneStatistics, boundaries: npt.NDArray[np.int64]) -> _Values:
    """Return the statistics of a column on a refinement of its zones."""
    may_be_valid = found.num_nulls < found.num_rows
    may_be_null = found.num_nulls != 0
    if len(boundaries) == found.num_zones + 1 and found.num_rows.all():
        return _Values(found.lower, found.upper, may_be_valid, may_be_null)
    zones = np.searchsorted(np.cumsum(found.num_rows), boundaries[:-1], side="right")
    positions = pa.array(zones)
    return _Values(found.lower.take(positions), found.upper.take(positions), may_be_valid[zones], may_be_null[zones])


def _repeat(value: Any, count: int) -> pa.Array:
    if not isinstance(value, pa.Scalar):
        return value
    return pa.repeat(value, count) if value.is_valid else pa.nulls(count, value.type)


def _mask(array: pa.Array) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask
