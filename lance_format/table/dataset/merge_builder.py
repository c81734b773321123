"""Saying clause by clause what a merge is to do; see `LanceDataset.merge_insert`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Self

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.expressions import parse
from lance_format.table.batches.given_data import to_table
from lance_format.table.changes.merge.clauses import Merging, WhenMatched, WriteMode
from lance_format.table.changes.merge.execution import MergePlan, MergeResult, merge_insert, plan_merge
from lance_format.table.changes.merge.explanation import analyze_merge, describe_merge
from lance_format.table.changes.write.plan import choose_file_version
from lance_format.table.format.duration import timeout_seconds
from lance_format.table.scan.projection import Filter, plan_projection
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import run_tasks
from lance_format.table.versions.table_version import Draft

_MAX_SECONDS = 30.0


@checked_methods
class MergeInsertBuilder:
    """A merge in the making. Every clause is one method, which returns the builder; `execute` runs it.

    Parameters
    ----------
    dataset : LanceDataset
        The merge moves it to the version that it makes.
    on : str or iterable of str, optional
        The columns of the key; those of the table's primary key if not given.
    """

    def __init__(self, dataset: OpenTable, on: str | Iterable[str] | None) -> None:
        self._dataset = dataset
        self._table = dataset._table
        self._merging = Merging(_find_keys(self._table.manifest.schema, on))
        self._conflict_retries = 10
        self._max_seconds = _MAX_SECONDS

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Replace rows of the table by those of the data that have the same key.

        Columns that the data lacks, and fields of structs that are in no list, keep their values.

        Parameters
        ----------
        condition : str, optional
            SQL over `source.<column>` and `target.<column>`, where the source is the data and the target the table; a
            row for which it does not hold stays as it is, and counts as matched none the less.
        """
        if condition is not None:
            if not isinstance(condition, str):
                raise InvalidInputError(f"the condition is {condition!r}; SQL text is needed")
            parse(condition)  # Names are looked up once there is a source.
        return self._set(matched=WhenMatched.UPDATE, condition=condition)

    def when_matched_delete(self) -> Self:
        """Delete rows of the table whose key the data has."""
        return self._set(matched=WhenMatched.DELETE, condition=None)

    def when_matched_fail(self) -> Self:
        """Change nothing and fail if the table has a key of the data."""
        return self._set(matched=WhenMatched.FAIL, condition=None)

    def when_not_matched_insert_all(self) -> Self:
        """Add rows of the data whose key the table lacks; columns that the data lacks become null there."""
        return self._set(inserts=True)

    def when_not_matched_by_source_delete(self, expr: Filter | None = None) -> Self:
        """Delete rows of the table whose key the data lacks.

        Parameters
        ----------
        expr : str or pyarrow.compute.Expression, optional
            Which of them, by columns of the table; all if not given.
        """
        plan_projection(self._table.manifest.schema, [], expr)
        return self._set(deletes_others=True, others=expr)

    def conflict_retries(self, max_retries: int) -> Self:
        """Set how often to start again when other writers change the same rows first; 10 times unless set."""
        if isinstance(max_retries, bool) or not isinstance(max_retries, int) or max_retries < 0:
            raise InvalidInputError(f"max_retries is {max_retries!r}; a whole number from 0 on is needed")
        self._conflict_retries = max_retries
        return self

    def retry_timeout(self, timeout: timedelta) -> Self:
        """Set how long after the beginning it may start again at all; 30 seconds unless set."""
        self._max_seconds = timeout_seconds(timeout)
        return self

    def use_index(self, use_index: bool) -> Self:
        """Say whether to find keys by an index: accepted, and of no effect, as the keys of all rows are read."""
        del use_index
        return self

    def write_mode(self, mode: str) -> Self:
        """Set how rows that are updated are written.

        Parameters
        ----------
        mode : {"auto", "rewrite_rows", "rewrite_columns"}
            As rows of new fragments, which is the default and what the first two say; or as new files of the columns
            that the data has, in the fragments where the rows are, which then keep their places. That pays where many
            rows of these fragments change, and the other columns are large; the merge may do nothing else then, and
            the data has to lack a column of the table.
        """
        if mode not in list(WriteMode):
            raise InvalidInputError(f"write_mode is {mode!r}; one of {', '.join(WriteMode)} is needed")
        return self._set(write_mode=WriteMode(mode))

    def data_storage_version(self, version: str) -> Self:
        """Set the version of the files that are written; that of the table, which stays, unless set.

        Parameters
        ----------
        version : str
            Such as "2.2" or "stable".
        """
        return self._set(file_version=choose_file_version(self._table.manifest, version))

    def execute(self, data_obj: Any, *, schema: pa.Schema | None = None) -> MergeResult:
        """Run the merge as one version of the table, and move the dataset to it.

        Parameters
        ----------
        data_obj : pa.Table, pa.RecordBatch, pa.RecordBatchReader, iterable of pa.RecordBatch, pandas.DataFrame, dict \
of lists or list of dicts
            Read into memory.
        schema : pa.Schema, optional
            Needed with an iterable of batches.

        Returns
        -------
        MergeResult
            Also a mapping: `num_inserted_rows`, `num_updated_rows`, `num_deleted_rows`.

        Raises
        ------
        LanceError
            See `lance_format.table.changes.merge.execution.merge_insert`. Nothing was changed then.
        """
        merging = self._checked()
        source = to_table(data_obj, schema)
        return self._dataset._change(
            lambda table: merge_insert(table, merging, source), self._conflict_retries, self._max_seconds
        )

    def execute_uncommitted(self, data_obj: Any, *, schema: pa.Schema | None = None) -> tuple[Transaction, MergeResult]:
        """Write the files of the merge, and commit nothing.

        Parameters
        ----------
        data_obj, schema
            See `execute`.

        Returns
        -------
        tuple of Transaction and MergeResult
            For `LanceDataset.commit`, which fails if others have changed the same rows since the version that the
            dataset showed; rows with the same keys that they have inserted are not noticed. And the counts that
            `execute` returns.
        """
        plan = plan_merge(self._table, self._checked(), to_table(data_obj, schema))
        with Draft(self._table, plan.uuid) as draft:
            results = run_tasks(self._table, plan)
            operation = plan.operation(draft, results)
        return Transaction(self._table.manifest.version, operation, plan.uuid), plan.outcome(results)

    def plan(
        self, data_obj: Any, *, schema: pa.Schema | None = None, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES
    ) -> MergePlan:
        """Plan the merge by tasks that run anywhere; see `lance_format.table.versions.planned_change`.

        Parameters
        ----------
        data_obj, schema
            See `execute`. Each task has all of the data.
        split_size_bytes : int
            How much of the files a task reads to find rows that match, about.

        Returns
        -------
        MergePlan
            It merges into the version that the dataset showed when the builder was made.
        """
        return plan_merge(self._table, self._checked(), to_table(data_obj, schema), split_size_bytes)

    def execute_batches(self, new_data: Any) -> MergeResult:
        """Run the merge; see `execute`, which reads all data into memory as well."""
        return self.execute(new_data)

    def execute_uncommitted_batches(self, new_data: Any) -> tuple[Transaction, MergeResult]:
        """Write the files of the merge, and commit nothing; see `execute_uncommitted`."""
        return self.execute_uncommitted(new_data)

    def analyze_plan_batches(self, new_data: Any) -> str:
        """Run the merge, delete what it has written, and tell what that took; see `analyze_plan`."""
        return self.analyze_plan(new_data)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """Return what the merge does, and which columns it reads for that, as text for people.

        Parameters
        ----------
        schema : pa.Schema, optional
            Of the data; that of the table if not given.
        verbose : bool
            Whether to add the types of its columns.
        """
        return describe_merge(self._table, self._checked(), schema, verbose=verbose)

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Run the merge, delete what it has written, and return `explain_plan` with what that took.

        Parameters
        ----------
        data_obj, schema
            See `execute`.
        """
        return analyze_merge(self._table, self._checked(), to_table(data_obj, schema))

    def _checked(self) -> Merging:
        if self._merging.does_nothing:
            raise InvalidInputError("this merge would change nothing; say what is to happen to rows, with when_…")
        return self._merging

    def _set(self, **clause: Any) -> Self:
        self._merging = dataclasses.replace(self._merging, **clause)
        return self


def _find_keys(schema: Schema, on: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the columns of a key as the table spells them."""
    wanted: Sequence[str] = [on] if isinstance(on, str) else list(on or ())
    wanted = wanted or [field.name for field in schema.fields if field.unenforced_primary_key]
    if not wanted:
        raise InvalidInputError("the table has no primary key: say by which columns rows are to be matched, with on=")
    return tuple(dict.fromkeys(_spell(schema, name) for name in wanted))


def _spell(schema: Schema, name: str) -> str:
    if not isinstance(name, str):
        raise InvalidInputError(f"on has {name!r}; names of columns are needed")
    alike = [known for known in schema.names if known.lower() == name.lower()]
    return alike[0] if name not in schema.names and len(alike) == 1 else schema.field(name).name
