"""LABEL_LIST indices: each distinct item of the lists of a column, with the ids of the rows whose list has it.

The only file is that of a BITMAP index, whose keys are items. Null is one too. From version 1 on the metadata of its
schema names the global buffer of the rows whose list is null (`lance:label_list_nulls`), a bitmap like the others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring

from lance_format.expressions import BoundExpression, nodes
from lance_format.expressions.nodes import Call, Expression, Literal
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.index_file import IndexFile
from lance_format.table.indices.kinds.bitmap_index import (
    BITMAP_FILE,
    MOST_KEYS,
    bitmap_columns,
    check_bitmaps,
    greatest_ids,
    read_bitmaps,
)
from lance_format.table.indices.named_rows import NamedRows
from lance_format.table.indices.row_finder import FoundRows, KnownForm, Question, found_in
from lance_format.table.indices.supersets import can_bound, consists_of, superset
from lance_format.table.indices.zones.zone_map import has_bounds
from lance_format.table.versions.table_version import TableVersion

LIST_NULLS = "lance:label_list_nulls"
"""Key of the metadata of its schema."""

FORM = KnownForm(newest=1, addresses=2)
_HAS = frozenset({"array_has", "array_contains", "list_has", "list_contains"})
_HAS_ANY = frozenset({"array_has_any", "list_has_any"})
_HAS_ALL = frozenset({"array_has_all", "list_has_all"})


def has_labels(value_type: pa.DataType) -> bool:
    """Return whether values of a type are lists whose items such an index can hold."""
    is_list = pa.types.is_list(value_type) or pa.types.is_large_list(value_type)
    return is_list and has_bounds(value_type.value_type)


def can_answer(question: Question) -> bool:
    """Return whether such an index bounds the rows for which a predicate holds."""
    return can_bound(question.predicate.expression, lambda node: bool(_tests(node)))


def find_rows(table: TableVersion, index: IndexMetadata, question: Question) -> FoundRows | None:
    """See `Finder`."""
    expression, item_type = question.predicate.expression, question.value_type.value_type
    # Which of 0.0 and -0.0, and which NaN, an index has as one item is up to what made it.
    is_exact = consists_of(expression, lambda node: bool(_tests(node))) and not pa.types.is_floating(item_type)
    with IndexFile(table, index, BITMAP_FILE, bitmap_columns(item_type)) as file:
        if file.num_rows > MOST_KEYS:
            return None
        keys = file.read_column("keys")

        def rows_of(node: Expression) -> pyroaring.BitMap64 | None:
            nonlocal is_exact
            found = [read_bitmaps(file, _chosen(test, keys, question)) for test in _tests(node)]
            known = [rows for rows in found if rows is not None]
            is_exact &= len(known) == len(found)
            return pyroaring.BitMap64.intersection(*known) if known else None

        rows = superset(expression, rows_of, _both, _either)
        return found_in(rows, question.most_rows, is_exact=is_exact)


def check_part(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> None:
    """See `CheckPart`."""
    FORM.check(index)
    rows = NamedRows(table, index, by_id=FORM.names_ids(table, index))
    with IndexFile(table, index, BITMAP_FILE, bitmap_columns(value_type.value_type)) as file:
        check_bitmaps(file, rows)
        nulls = file.read_buffer(LIST_NULLS.encode())
        if nulls is not None:
            rows.check(greatest_ids(nulls, file.path), file.path)


def _tests(node: Expression) -> list[Expression]:
    """Return predicates that all hold where a term does, and each hold of a list if they do of one of its items."""
    match node:
        case Call(name, (nodes.Column(), Literal())) if name in _HAS or name in _HAS_ANY:
            return [node]
        case Call(name, (nodes.Column() as column, Literal(wanted))) if name in _HAS_ALL and wanted.is_valid:
            items = wanted.values
            lists = (_one_by_one(items.slice(position, 1), pa.list_(items.type))[0] for position in range(len(items)))
            return [Call("array_has_any", (column, Literal(each))) for each in lists]
    return []


def _one_by_one(items: pa.Array, list_type: pa.DataType) -> pa.Array:
    """Return lists of one item each."""
    ends = pa.array(np.arange(len(items) + 1, dtype=np.int32))
    if pa.types.is_large_list(list_type):
        return pa.LargeListArray.from_arrays(ends.cast(pa.int64()), items)
    return pa.ListArray.from_arrays(ends, items)


def _chosen(test: Expression, keys: pa.ChunkedArray, question: Question) -> npt.NDArray[np.int64]:
    """Return the positions of the keys for which a predicate holds."""
    match test:
        case Call(name, (_, Literal(wanted))) if wanted.is_valid and not pa.types.is_floating(keys.type):
            items = pa.array([wanted]) if name in _HAS else wanted.values
            if items.type == keys.type and not items.null_count:
                return np.asarray(pc.indices_nonzero(pc.is_in(keys, items)), np.int64)
    predicate = BoundExpression(test, pa.bool_(), (question.path,))
    lists = _one_by_one(keys.combine_chunks(), question.value_type)
    return np.flatnonzero(Question(predicate, question.value_type, question.most_rows).holds_for(lists))


def _both(one: pyroaring.BitMap64, other: pyroaring.BitMap64) -> pyroaring.BitMap64:
    return one & other


def _either(one: pyroaring.BitMap64, other: pyroaring.BitMap64) -> pyroaring.BitMap64:
    return one | other
