"""Clause-by-clause construction of a merge; see `LanceDataset.merge_insert`."""

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
    """Builder of a merge. Each clause is a method that returns the builder; `execute` runs the merge.

    Parameters
    ----------
    dataset : LanceDataset
        The target. The merge moves it to the version that it makes.
    on : str or iterable of str, optional
        The key columns, by default the table's primary key.
    """

    def __init__(self, dataset: OpenTable, on: str | Iterable[str] | None) -> None:
        self._dataset = dataset
        self._table = dataset._table
        self._merging = Merging(_find_keys(self._table.manifest.schema, on))
        self._conflict_retries = 10
        self._max_seconds = _MAX_SECONDS

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Update matched target rows from their source rows.

        Columns that the data lacks keep their values, and so do fields of structs outside of lists.

        Parameters
        ----------
        condition : str, optional
            SQL over `source.<column>` and `target.<column>`; the source is the data, the target the table. A row for
            which it
            is not true stays as it is, and still counts as matched.

        Raises
        ------
        InvalidInputError
            If the condition is not SQL.
        """
        if condition is not None:
            if not isinstance(condition, str):
                raise InvalidInputError(f"the condition is {condition!r}; SQL text is needed")
            parse(condition)  # `execute` resolves names, when it has the source.
        return self._with(dataclasses.replace(self._merging, matched=WhenMatched.UPDATE, condition=condition))

    def when_matched_delete(self) -> Self:
        """Delete matched target rows."""
        return self._with(dataclasses.replace(self._merging, matched=WhenMatched.DELETE, condition=None))

    def when_matched_fail(self) -> Self:
        """Fail without changing the table if any row matches."""
        return self._with(dataclasses.replace(self._merging, matched=WhenMatched.FAIL, condition=None))

    def when_not_matched_insert_all(self) -> Self:
        """Insert source rows that match no target row. Columns that the data lacks become null."""
        return self._with(dataclasses.replace(self._merging, inserts=True))

    def when_not_matched_by_source_delete(self, expr: Filter | None = None) -> Self:
        """Delete target rows that match no source row.

        Parameters
        ----------
        expr : str or pyarrow.compute.Expression, optional
            Condition on these target rows, by default all of them.
        """
        plan_projection(self._table.manifest.schema, [], expr)
        return self._with(dataclasses.replace(self._merging, deletes_others=True, others=expr))

    def conflict_retries(self, max_retries: int) -> Self:
        """Set the number of restarts after other writers change the same rows first, by default 10.

        Raises
        ------
        InvalidInputError
            If it is not a whole number from 0 on.
        """
        if isinstance(max_retries, bool) or not isinstance(max_retries, int) or max_retries < 0:
            raise InvalidInputError(f"max_retries is {max_retries!r}; a whole number from 0 on is needed")
        self._conflict_retries = max_retries
        return self

    def retry_timeout(self, timeout: timedelta) -> Self:
        """Set the time after the first attempt when restarts end, by default 30 seconds."""
        self._max_seconds = timeout_seconds(timeout)
        return self

    def use_index(self, use_index: bool) -> Self:
        """Set whether indices of the key are used to find its rows, which they are by default."""
        return self._with(dataclasses.replace(self._merging, uses_index=use_index))

    def write_mode(self, mode: str) -> Self:
        """Set how updated rows are written.

        Parameters
        ----------
        mode : {"auto", "rewrite_rows", "rewrite_columns"}
            The first two, and the default, write them as rows of new fragments. "rewrite_columns" writes new files of
            the columns that the data has, in the existing fragments, where the rows keep their offsets. It pays if many
            rows of these fragments change and the other columns are large. The merge must have no other clause then,
            and the data must lack a column of the table.

        Raises
        ------
        InvalidInputError
            If there is no such mode.
        """
        if mode not in list(WriteMode):
            raise InvalidInputError(f"write_mode is {mode!r}; one of {', '.join(WriteMode)} is needed")
        return self._with(dataclasses.replace(self._merging, write_mode=WriteMode(mode)))

    def data_storage_version(self, version: str) -> Self:
        """Set the file format version of new files, by default that of the table. The table's own stays.

        Parameters
        ----------
        version : str
            Such as "2.2" or "stable".
        """
        return self._with(
            dataclasses.replace(self._merging, file_version=choose_file_version(self._table.manifest, version))
        )

    def execute(self, data_obj: Any, *, schema: pa.Schema | None = None) -> MergeResult:
        """Run the merge as one version of the table, and move the dataset to it.

        Parameters
        ----------
        data_obj : pa.Table, pa.RecordBatch, pa.RecordBatchReader, iterable of pa.RecordBatch, pandas.DataFrame, dict \
of lists or list of dicts
            The source. It is read into memory.
        schema : pa.Schema, optional
            Required with an iterable of batches.

        Returns
        -------
        MergeResult
            Also a mapping: `num_inserted_rows`, `num_updated_rows`, `num_deleted_rows`.

        Raises
        ------
        LanceError
            See `lance_format.table.changes.merge.execution.merge_insert`. The table is unchanged then.
        """
        merging = self._checked()
        source = to_table(data_obj, schema)
        return self._dataset._change(
            lambda table: merge_insert(table, merging, source), self._conflict_retries, self._max_seconds
        )

    def execute_uncommitted(self, data_obj: Any, *, schema: pa.Schema | None = None) -> tuple[Transaction, MergeResult]:
        """Write the files of the merge, without committing them.

        Parameters
        ----------
        data_obj, schema
            See `execute`.

        Returns
        -------
        tuple of Transaction and MergeResult
            The transaction for `LanceDataset.commit`, and the counts of `execute`. The commit fails if other writers
            have changed the same rows since the version that the dataset showed. It does not detect that they inserted
            rows with the same keys.
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
            See `execute`. Each task holds all of the data.
        split_size_bytes : int
            Approximate number of bytes that a task reads to find matches.

        Returns
        -------
        MergePlan
            A plan for the version that the dataset showed when the builder was made.
        """
        return plan_merge(self._table, self._checked(), to_table(data_obj, schema), split_size_bytes)

    def execute_batches(self, new_data: Any) -> MergeResult:
        """Run the merge; see `execute`, which reads all data into memory as well."""
        return self.execute(new_data)

    def execute_uncommitted_batches(self, new_data: Any) -> tuple[Transaction, MergeResult]:
        """Write the files of the merge, without committing them; see `execute_uncommitted`."""
        return self.execute_uncommitted(new_data)

    def analyze_plan_batches(self, new_data: Any) -> str:
        """Run the merge, delete the written files, and describe the run; see `analyze_plan`."""
        return self.analyze_plan(new_data)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """Describe the merge and the columns that it reads, as text for people.

        Parameters
        ----------
        schema : pa.Schema, optional
            Schema of the data, by default that of the table.
        verbose : bool
            Whether to add the types of the columns.
        """
        return describe_merge(self._table, self._checked(), schema, verbose=verbose)

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Run the merge, delete the written files, and return `explain_plan` with the counts of the run.

        Parameters
        ----------
        data_obj, schema
            See `execute`.
        """
        return analyze_merge(self._table, self._checked(), to_table(data_obj, schema))

    def _checked(self) -> Merging:
        if self._merging.does_nothing:
            raise InvalidInputError("this merge would change nothing; add a clause with when_…")
        return self._merging

    def _with(self, merging: Merging) -> Self:
        self._merging = merging
        return self


def _find_keys(schema: Schema, on: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the columns of a key as the table spells them."""
    wanted: Sequence[str] = [on] if isinstance(on, str) else list(on or ())
    wanted = wanted or [field.name for field in schema.fields if field.unenforced_primary_key]
    if not wanted:
        raise InvalidInputError("the table has no primary key: name the columns to match rows by, with on=")
    return tuple(dict.fromkeys(_spell(schema, name) for name in wanted))


def _spell(schema: Schema, name: str) -> str:
    if not isinstance(name, str):
        raise InvalidInputError(f"on has {name!r}; names of columns are needed")
    alike = [known for known in schema.names if known.lower() == name.lower()]
    return alike[0] if name not in schema.names and len(alike) == 1 else schema.field(name).name
