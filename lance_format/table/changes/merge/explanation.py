"""Descriptions of a merge by key and of its cost, as text for people."""

from __future__ import annotations

import time

import pyarrow as pa

from lance_format.expressions import to_sql
from lance_format.table.batches.partial_structs import find_partial, with_given_fields
from lance_format.table.changes.merge.clauses import Merging, WhenMatched, WriteMode
from lance_format.table.changes.merge.execution import plan_merge
from lance_format.table.changes.merge.in_place import check_in_place
from lance_format.table.changes.merge.matching import bind_terms, fit_source
from lance_format.table.versions.planned_change import run_tasks
from lance_format.table.versions.table_version import Draft, TableVersion


def describe_merge(table: TableVersion, merging: Merging, source: pa.Schema | None, *, verbose: bool) -> str:
    """Describe the actions of a merge, and the columns that it reads.

    Parameters
    ----------
    table : TableVersion
    merging : Merging
    source : pa.Schema, optional
        Schema of the data, by default that of the table.
    verbose : bool
        Whether to add the types of the columns of the data.

    Raises
    ------
    SchemaMismatchError, InvalidInputError
        See `lance_format.table.changes.merge.execution.merge_insert`.
    """
    schema = table.manifest.schema
    source = schema.to_arrow() if source is None else source
    given = fit_source(schema, merging, source)
    in_place = merging.write_mode is WriteMode.REWRITE_COLUMNS
    if in_place:
        check_in_place(schema, merging, given)
    partial = find_partial(given, source)
    terms = bind_terms(schema, merging, with_given_fields(given.to_storage(), partial))
    actions = {
        "on": f"[{', '.join(merging.on)}]",
        "when_matched": merging.matched.value + ("" if merging.condition is None else f" if {merging.condition}"),
        "when_not_matched": "insert" if merging.inserts else "ignore",
        "when_not_matched_by_source": "delete" if merging.deletes_others else "keep",
    }
    if terms.others is not None and merging.deletes_others:
        actions["when_not_matched_by_source"] += f" if {to_sql(terms.others.expression)}"
    missing = [name for name in schema.names if name not in given.names or name in partial]
    updates = merging.matched is WhenMatched.UPDATE
    if in_place:
        read = f"read of the fragments that have such rows: {', '.join(x for x in given.names if x not in merging.on)}"
    else:
        read = f"read of the rows that are updated: {', '.join(missing if updates else ()) or '(nothing)'}"
    lines = [
        f"MergeInsert: {', '.join(f'{clause}={action}' for clause, action in actions.items())}",
        f"target: {table.uri}, version {table.manifest.version}",
        f"columns of the data: {', '.join(given.names)}",
        *(f"  {field.name}: {field.type}" for field in given.to_arrow() if verbose),
        f"read of {'all rows' if merging.deletes_others else 'rows that may match'}: {', '.join(terms.columns)}",
        read,
    ]
    return "\n  ".join(lines)


def analyze_merge(table: TableVersion, merging: Merging, source: pa.Table) -> str:
    """Run a merge, delete the files that it has written, and return `describe_merge` with its metrics.

    Parameters
    ----------
    table : TableVersion
    merging : Merging
    source : pa.Table

    Raises
    ------
    SchemaMismatchError, InvalidInputError
        See `lance_format.table.changes.merge.execution.merge_insert`.
    """
    start = time.perf_counter()
    plan = plan_merge(table, merging, source)
    with Draft(table, plan.uuid) as draft:
        results = run_tasks(table, plan)
        operation = plan.operation(draft, results)
        draft.discard()
    files = [file for fragment in operation.new_fragments for file in fragment.files]
    if not operation.rewrites_rows:
        files += [fragment.files[-1] for fragment in operation.updated_fragments]
    metrics = dict(plan.outcome(results)) | {
        "num_files_written": len(files),
        "bytes_written": sum(file.file_size_bytes for file in files),
        "seconds": round(time.perf_counter() - start, 3),
    }
    lines = [
        describe_merge(table, merging, source.schema, verbose=True),
        f"reads: {results[0].reads}",
        f"metrics: {', '.join(f'{name}={value}' for name, value in metrics.items())}",
    ]
    return "\n  ".join(lines)
