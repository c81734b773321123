"""Matching of source and target rows by key, and the decision about each target row.

The *source* is the data; it is in memory, and its keys are numbered. The *target* is the table; its keys, and the
columns that conditions name, are read once as a stream, where statistics and indices do not exclude all keys of the
source. Memory therefore depends on the source, and on the number of changed rows.

A key with a null is equal to no other. A source row may replace several target rows; two source rows that would replace
or delete the same target row are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.expressions import BoundExpression, as_expression, filter_mask
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import to_bitmap
from lance_format.table.batches.fitting import Partial, conform_table, plan_append, plan_update
from lance_format.table.batches.integer_index import Int64Array
from lance_format.table.batches.key_index import KeyIndex, RowsByKey, group_rows, index_keys, null_keys
from lance_format.table.batches.partial_structs import find_partial, with_given_fields
from lance_format.table.changes.merge.clauses import Merging, WhenMatched
from lance_format.table.changes.rows.key_absence import describe_key
from lance_format.table.changes.rows.key_filter import key_filter
from lance_format.table.changes.rows.replaced_rows import RowSet
from lance_format.table.changes.rows.row_changes import rows_of
from lance_format.table.fragments.open_files import empty_columns_batch
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import LiveRows
from lance_format.table.scan.metrics import ScanMetrics
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.projection import plan_projection, visible_schema
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.tasks import ScanTask
from lance_format.table.versions.table_version import TableVersion

_MIN_SEARCHED_ROWS = 64 * 1024
_SEARCHED_PER_ROW = 4
_MAX_HELD_BYTES = 256 * 1024 * 1024
_MAX_PAIRS = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The source rows of a merge.

    Parameters
    ----------
    table : pa.Table
    keys : KeyIndex
    numbers : int64[num_rows]
        The key number of each row; -1 if a key column is null.
    by_key : RowsByKey
    partial : mapping of str to pa.StructType
        Columns whose structs lack fields, with the fields present. Updated rows keep the others.
    """

    table: pa.Table
    keys: KeyIndex
    numbers: Int64Array
    by_key: RowsByKey
    partial: Mapping[str, pa.StructType] = field(default_factory=dict)

    @property
    def rows_to_search(self) -> int:
        """Approximate number of rows to look up at once: every lookup hashes the index again."""
        return max(_SEARCHED_PER_ROW * self.numbers.size, _MIN_SEARCHED_ROWS)

    def find(self, rows: pa.Table) -> Int64Array:
        """For each row, return the number of its key in the source, or -1."""
        numbers = self.keys.find(rows)
        if any(rows.column(name).null_count for name in self.keys.names):
            numbers[null_keys(rows, self.keys.names)] = -1
        return numbers

    def without_match(self, matched: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows whose key is not matched, given `bool[num_keys]`."""
        found = np.ones(self.numbers.size, np.bool_)
        keyed = self.numbers >= 0
        found[keyed] = ~matched[self.numbers[keyed]]
        return found


def fit_source(schema: Schema, merging: Merging, source: pa.Schema) -> Schema:
    """Return the columns of a table that a source has.

    Parameters
    ----------
    schema : Schema
        Of the table.
    merging : Merging
    source : pa.Schema

    Raises
    ------
    SchemaMismatchError
        If it does not fit.
    InvalidInputError
        If it lacks a column of the key.
    """
    for name in merging.on:
        schema.field(name)  # The column may have been dropped since.
        if name not in source.names:
            raise InvalidInputError(f"the data lacks the column {name!r}, which is part of the key")
    plan_update(schema, pa.schema([source.field(name) for name in merging.on]))  # Keys must be complete.
    if merging.inserts:
        keeps = merging.matched is WhenMatched.UPDATE
        return plan_append(schema, source, partial=Partial.NOT_IN_LISTS if keeps else Partial.ALL)
    return plan_update(schema, source, Partial.NOT_IN_LISTS)


def read_source(table: TableVersion, merging: Merging, source: pa.Table) -> MergeSource:
    """Fit the source to the table, and number its keys.

    Parameters
    ----------
    table : TableVersion
    merging : Merging
    source : pa.Table
        The data as given. Only its key columns are used if none of its rows enters the table.

    Raises
    ------
    SchemaMismatchError
        If it does not fit.
    InvalidInputError
        If it lacks a column of the key.
    """
    if not merging.takes_values:
        source = source.select([name for name in merging.on if name in source.schema.names])
    stored = fit_source(table.manifest.schema, merging, source.schema)
    rows = conform_table(source, stored)
    keys, numbers = index_keys(rows, merging.on)
    numbers = np.where(null_keys(rows, merging.on), -1, numbers)
    partial = find_partial(stored, source.schema)
    return MergeSource(rows, keys, numbers, group_rows(numbers, keys.num_keys), partial)


@dataclass(frozen=True, slots=True)
class MergeTerms:
    """The expressions of a merge. Made by `bind_terms`.

    Parameters
    ----------
    condition : BoundExpression, optional
        Over pairs of a source row and a target row.
    others : BoundExpression, optional
        Over rows of the target.
    columns : tuple of str
        Columns that are read of all target rows, for the keys and the expressions.
    """

    condition: BoundExpression | None
    others: BoundExpression | None
    columns: tuple[str, ...]


@dataclass(slots=True)
class FragmentUpdate:
    """Rows of a fragment that are replaced, and the source rows that replace them."""

    scan: FragmentReader
    rows: list[LiveRows] = field(default_factory=list)
    source_rows: list[Int64Array] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(rows.size for rows in self.source_rows)

    def all(self) -> tuple[LiveRows, Int64Array]:
        """Return the rows, ascending, and the source row of each."""
        return LiveRows.concatenate(self.rows), np.concatenate(self.source_rows)


@dataclass(slots=True)
class Matches:
    """Effects of a merge on the target rows.

    Parameters
    ----------
    matched : bool[num_keys]
        Source keys that the target has.
    gone : RowSet
        The rows that are replaced or deleted.
    updates : dict of int to FragmentUpdate
        The replaced rows, by fragment.
    reads : ScanMetrics, optional
        Metrics of the search.
    """

    matched: npt.NDArray[np.bool_]
    gone: RowSet = field(default_factory=RowSet)
    updates: dict[int, FragmentUpdate] = field(default_factory=dict)
    reads: ScanMetrics | None = None

    def add(self, rows: LiveRows, replaced_by: Int64Array, is_deleted: npt.NDArray[np.bool_]) -> None:
        """Add rows of a fragment.

        Parameters
        ----------
        rows : LiveRows
        replaced_by : int64[num_rows]
            For each row, the index of the source row that replaces it, or -1.
        is_deleted : bool[num_rows]
            Whether the row is deleted.
        """
        is_updated = replaced_by >= 0
        going = is_updated | is_deleted
        if going.any():
            self.gone.add_offsets(rows.scan.fragment.id, to_bitmap(rows.offsets[going]))
        if is_updated.any():
            update = self.updates.setdefault(rows.scan.fragment.id, FragmentUpdate(rows.scan))
            update.rows.append(rows.filter(pa.array(is_updated)))
            update.source_rows.append(replaced_by[is_updated])


def find_matches(table: TableVersion, merging: Merging, source: MergeSource, part: ScanTask | None = None) -> Matches:
    """Read the target, and decide the action for each of its rows.

    Parameters
    ----------
    table : TableVersion
    merging : Merging
    source : MergeSource

    Raises
    ------
    InvalidInputError
        If several source rows match one target row, or a row matches that must not.
    """
    found = Matches(np.zeros(source.keys.num_keys, np.bool_))
    terms = bind_terms(table.manifest.schema, merging, with_given_fields(source.table.schema, source.partial))
    if not source.table.num_rows and not merging.deletes_others:
        return found
    scanner = open_search(table, merging, source, terms)
    for batches, pieces in _gathered(rows_of(scanner, part), source.rows_to_search):
        target = pa.Table.from_batches(batches)
        numbers = source.find(target.select(merging.on))
        found.matched[numbers[numbers >= 0]] = True
        replaced_by, is_deleted = _act_on_matched(merging, terms.condition, source, target, numbers)
        if merging.deletes_others:
            is_deleted |= (numbers < 0) & _holds(terms.others, batches)
        row = 0
        for rows in pieces:
            stop = row + rows.offsets.size
            found.add(rows, replaced_by[row:stop], is_deleted[row:stop])
            row = stop
    found.reads = scanner.metrics
    return found


def open_search(table: TableVersion, merging: Merging, source: MergeSource, terms: MergeTerms) -> LanceScanner:
    """Return the scan that finds the rows on which a merge acts, and perhaps others.

    Parameters
    ----------
    table : TableVersion
    merging : Merging
    source : MergeSource
    terms : MergeTerms
    """
    given = None if merging.deletes_others else key_filter(source.table, merging.on)
    return LanceScanner(
        table, ScanOptions(columns=list(terms.columns), filter=given, use_scalar_index=merging.uses_index)
    )


def _gathered(
    matching: Iterator[tuple[pa.RecordBatch, LiveRows]], num_rows: int
) -> Iterator[tuple[list[pa.RecordBatch], list[LiveRows]]]:
    """Unite batches up to about a number of rows; fewer if the rows are large."""
    batches: list[pa.RecordBatch] = []
    pieces: list[LiveRows] = []
    held_rows = held_bytes = 0
    for batch, rows in matching:
        batches.append(batch)
        pieces.append(rows)
        held_rows += batch.num_rows
        held_bytes += batch.nbytes
        if held_rows >= num_rows or held_bytes >= _MAX_HELD_BYTES:
            yield batches, pieces
            batches, pieces = [], []
            held_rows = held_bytes = 0
    if batches:
        yield batches, pieces


def _act_on_matched(
    merging: Merging, condition: BoundExpression | None, source: MergeSource, target: pa.Table, numbers: Int64Array
) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """For each target row, return the index of the source row that replaces it, or -1, and whether it is deleted.

    Parameters
    ----------
    numbers : int64[num_rows]
        The key numbers of the target rows.
    """
    replaced_by = np.full(numbers.size, -1, np.int64)
    is_deleted = np.zeros(numbers.size, np.bool_)
    is_matched = numbers >= 0
    if merging.matched is WhenMatched.KEEP or not is_matched.any():
        return replaced_by, is_deleted
    if merging.matched is WhenMatched.FAIL:
        key = describe_key(target.select(merging.on), int(np.argmax(is_matched)))
        raise InvalidInputError(f"the table has a row already with {key}; nothing was changed")
    if condition is None:
        if not source.by_key.is_unique:
            counts = source.by_key.counts(numbers)
            if counts.max() > 1:
                raise _ambiguous(target.select(merging.on), int(counts.argmax()))
        if merging.matched is not WhenMatched.UPDATE:
            return replaced_by, is_matched
        replaced_by[is_matched] = source.by_key.only(numbers[is_matched])
        return replaced_by, is_deleted
    for positions, rows in source.by_key.pairs(numbers, _MAX_PAIRS):
        kept = filter_mask(condition, _beside(condition, source.table, rows, target, positions))
        mask = kept.to_numpy(zero_copy_only=False)
        positions, rows = positions[mask], rows[mask]
        repeated = np.flatnonzero(positions[1:] == positions[:-1])
        if repeated.size:
            raise _ambiguous(target.select(merging.on), int(positions[repeated[0]]))
        if merging.matched is WhenMatched.UPDATE:
            replaced_by[positions] = rows
        else:
            is_deleted[positions] = True
    return replaced_by, is_deleted


def _holds(predicate: BoundExpression | None, batches: Sequence[pa.RecordBatch]) -> npt.NDArray[np.bool_] | np.bool_:
    if predicate is None:
        return np.True_
    return np.concatenate([filter_mask(predicate, batch).to_numpy(zero_copy_only=False) for batch in batches])


def bind_terms(schema: Schema, merging: Merging, source: pa.Schema) -> MergeTerms:
    """Fit the expressions of a merge to a table and a source.

    Parameters
    ----------
    schema : Schema
        The columns of the table.
    merging : Merging
    source : pa.Schema
        The columns of the source.

    Returns
    -------
    tuple
        The bound expressions, and the columns that they read of all rows.

    Raises
    ------
    InvalidInputError
        If an expression does not fit.
    """
    condition = _bind_condition(schema, source, merging.condition)
    others = plan_projection(schema, [], merging.others).filter
    needed = [*merging.on]
    if condition is not None:
        needed += [path[1] for path in condition.columns if path[0] == "target"]
    if others is not None:
        needed += [path[0] for path in others.columns]
    return MergeTerms(condition, others, tuple(dict.fromkeys(needed)))


def _bind_condition(schema: Schema, source: pa.Schema, condition: str | None) -> BoundExpression | None:
    """Fit a condition to pairs of a source row and a target row."""
    if condition is None:
        return None
    sides = {"source": source, "target": visible_schema(schema)}
    pairs = pa.schema([pa.field(name, pa.struct(list(side)), nullable=False) for name, side in sides.items()])
    bound = as_expression(condition, pairs).require_predicate()
    if any(len(path) < 2 for path in bound.columns):
        raise InvalidInputError(
            f"the condition {condition!r} names no column; write source.<column> or target.<column>"
        )
    return bound


def _beside(
    condition: BoundExpression, source: pa.Table, source_rows: Int64Array, target: pa.Table, target_rows: Int64Array
) -> pa.RecordBatch:
    """Return pairs of rows with the columns of a condition."""
    sides = {}
    for name, rows, taken in (("source", source, source_rows), ("target", target, target_rows)):
        columns = list(dict.fromkeys(path[1] for path in condition.columns if path[0] == name))
        if columns:
            side = take_rows(rows.select(columns), pa.array(taken))
            arrays = [_storage(column.combine_chunks()) for column in side.columns]
            sides[name] = pa.StructArray.from_arrays(arrays, names=columns)
    return pa.RecordBatch.from_pydict(sides) if sides else empty_columns_batch(target_rows.size)


def _storage(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _ambiguous(keys: pa.Table, row: int) -> InvalidInputError:
    return InvalidInputError(
        f"several rows of the data match the same row of the table, with {describe_key(keys, row)}; nothing was"
        " changed: give one row a key"
    )
