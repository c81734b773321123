"""Terms of a filter that are tested before the other columns of the filter are read."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from lance_format.datatypes import Schema
from lance_format.expressions import BoundExpression, bind, columns_of, conjunction, conjuncts, filter_mask
from lance_format.expressions.nodes import (
    And,
    Column,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    NullSafeEqual,
    Or,
    walk,
)
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.scan.pace import Seen

_ALWAYS_DEFINED = (Column, Literal, Comparison, NullSafeEqual, And, Or, Not, IsNull, In, Like)
"""Nodes that cannot fail for any values of their children."""
_FEW_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class FirstTerms:
    """Terms of a filter on columns that are read fast, all of which must hold.

    Parameters
    ----------
    predicate : BoundExpression
    source : Schema
        Columns of these terms.
    rest : Schema
        Other columns of the filter.
    """

    predicate: BoundExpression
    source: Schema
    rest: Schema

    @classmethod
    def of(cls, predicate: BoundExpression, columns: Schema) -> FirstTerms | None:
        """Return the terms to test first; None if that is none or all of them, or a term may fail for other rows.

        Parameters
        ----------
        predicate : BoundExpression
        columns : Schema
            The stored columns of the predicate.
        """
        if not _cannot_fail(predicate):
            return None
        fast = {field.name for field in columns.to_storage() if _is_fast(field.type)}
        terms = tuple(
            term for term in conjuncts(predicate.expression) if {path[0] for path in columns_of(term)} <= fast
        )
        used = {path[0] for term in terms for path in columns_of(term)}
        source, rest = (
            dataclasses.replace(
                columns, fields=tuple(field for field in columns.fields if (field.name in used) is first)
            )
            for first in (True, False)
        )
        if not source.fields or not rest.fields:
            return None
        return cls(bind(conjunction(terms), source.to_storage()), source, rest)

    def mask(self, batch: pa.RecordBatch, seen: Seen) -> pa.BooleanArray:
        """Return for every row of a batch whether the terms hold, and count the rows."""
        mask = filter_mask(self.predicate, batch)
        seen.num_first += batch.num_rows
        seen.num_passed_first += mask.true_count
        return mask


def is_cheap(predicate: BoundExpression, columns: Schema) -> bool:
    """Return whether a filter reads few columns, all of them fast, and can be tested for any further rows.

    Parameters
    ----------
    predicate : BoundExpression
    columns : Schema
        Its stored columns.
    """
    types = [field.type for field in columns.to_storage()]
    return _cannot_fail(predicate) and len(types) <= _FEW_COLUMNS and all(map(_is_fast, types))


def _cannot_fail(predicate: BoundExpression) -> bool:
    return all(isinstance(node, _ALWAYS_DEFINED) for node in walk(predicate.expression))


def _is_fast(arrow_type: pa.DataType) -> bool:
    if pa.types.is_struct(arrow_type):
        return all(_is_fast(field.type) for field in arrow_type)
    return bool(pa.types.is_primitive(arrow_type) or pa.types.is_decimal(arrow_type))
