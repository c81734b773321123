"""`optimize`: compaction, or a rewrite of sorted rows, as a Spark job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql.types import LongType

from connector.procedures.declaring import Result, Target, columns
from connector.sorting.job import rewrite_sorted
from connector.sorting.order import parse_order
from lance_format import ChangePlan, Compaction, LanceDataset, NotSupportedError

if TYPE_CHECKING:
    from lance_format import CompactionKeywords

_LONG = LongType()
SCHEMA = columns(fragments_removed=_LONG, fragments_added=_LONG, files_removed=_LONG, files_added=_LONG, version=_LONG)


def optimize(
    target: Target,
    where: str | None,
    order_by: list[str] | None,
    zorder_by: list[str] | None,
    **options: Unpack[CompactionKeywords],
) -> Result:
    """Compact fragments, or sort their rows; see `DatasetOptimizer.compact_files` for the options."""
    given = {name: value for name, value in options.items() if value is not None}
    if order_by is not None or zorder_by is not None:
        return _sort(target, where, order_by, zorder_by, given)

    def plan(dataset: LanceDataset) -> ChangePlan[Any, Any]:
        return Compaction.plan(dataset, {**given, **_chosen(dataset, where)})

    return _result(*target.change(plan, _describe))


def _sort(
    target: Target,
    where: str | None,
    order_by: list[str] | None,
    zorder_by: list[str] | None,
    options: Mapping[str, Any],
) -> Result:
    spark = target.spark
    if spark is None:
        raise NotSupportedError(
            "rows are sorted by a Spark job, and the driver's process has no Python session to start it from: call the"
            " procedure from a Python program, or leave out order_by and zorder_by"
        )

    def attempt() -> Result:
        dataset = target.open()
        Compaction.plan(dataset, {**options, "max_source_fragments": 1})  # Checks the options.
        order = parse_order(dataset.read_schema("all_binary"), order_by, zorder_by)
        chosen = None if where is None else matching_fragments(dataset, where)
        ids = [each.fragment_id for each in dataset.get_fragments() if chosen is None or each.fragment_id in chosen]
        ids = ids[: options.get("max_source_fragments")]
        if not ids:
            return Result(SCHEMA, [(0, 0, 0, 0, dataset.version)])
        sizes = {name: options.get(name) for name in ("target_rows_per_fragment", "max_bytes_per_file")}
        return _result(dataset, rewrite_sorted(spark, dataset, ids, order, **sizes))

    return target.retry(attempt)


def _result(dataset: LanceDataset, done: Any) -> Result:
    counts = (done.fragments_removed, done.fragments_added, done.files_removed, done.files_added)
    return Result(SCHEMA, [(*counts, dataset.version)])


def matching_fragments(dataset: LanceDataset, where: str) -> set[int]:
    """Return the ids of the fragments that may have rows for which a condition is true, according to statistics."""
    return {number for task in dataset.scanner(filter=where).plan_tasks() for number in task.fragment_ids}


def _chosen(dataset: LanceDataset, where: str | None) -> Mapping[str, Any]:
    if where is None:
        return {}
    chosen = matching_fragments(dataset, where)
    others = [fragment.fragment_id for fragment in dataset.get_fragments() if fragment.fragment_id not in chosen]
    return {"excluded_fragment_ids": others}


def _describe(plan: ChangePlan[Any, Any]) -> str:
    ids = [fragment.id for task in plan.tasks for fragment in getattr(task, "fragments", ())]
    return f"compact fragments {min(ids)}-{max(ids)}" if ids else "compact no fragment"
