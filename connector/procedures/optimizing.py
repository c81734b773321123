"""`optimize`: compaction, or a rewrite of sorted rows, as a Spark job; then an update of indices as another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql.types import LongType

from connector.procedures.declaring import Result, Target, columns
from connector.sorting.job import rewrite_sorted
from connector.sorting.order import parse_order
from lance_format import ChangePlan, Compaction, CompactionMetrics, LanceDataset, NotSupportedError

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
    indices = _Indices(target)
    if order_by is not None or zorder_by is not None:
        dataset, done = _sort(target, where, order_by, zorder_by, given, indices)
    else:

        def plan(dataset: LanceDataset) -> ChangePlan[Any, Any]:
            indices.note(dataset)
            return Compaction.plan(dataset, {**given, **_chosen(dataset, where)})

        dataset, done = target.change(plan, _describe)
    if not given.get("defer_index_remap"):
        dataset = indices.updated(dataset)
    counts = (done.fragments_removed, done.fragments_added, done.files_removed, done.files_added)
    return Result(SCHEMA, [(*counts, dataset.version)])


class _Indices:
    """Indices whose fragments are replaced by a change."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._before: LanceDataset | None = None

    def note(self, dataset: LanceDataset) -> None:
        """Remember the version that the change is planned on."""
        self._before = dataset.checkout_version(dataset.version) if dataset.has_index else None

    def updated(self, dataset: LanceDataset) -> LanceDataset:
        """Update those that covered replaced fragments, and return the version that has them."""
        names = [] if self._before is None else dataset.optimize.indices_behind(self._before)
        if not names:
            return dataset

        def plan(latest: LanceDataset) -> ChangePlan[Any, Any]:
            left = {index["name"] for index in latest.list_indices()}
            return latest.optimize.plan_optimize_indices(index_names=[name for name in names if name in left])

        description = f"refresh {', '.join(names)} after the optimization, version {dataset.version}"
        return self._target.change(plan, lambda _: description)[0]


def _sort(
    target: Target,
    where: str | None,
    order_by: list[str] | None,
    zorder_by: list[str] | None,
    options: Mapping[str, Any],
    indices: _Indices,
) -> tuple[LanceDataset, Any]:
    spark = target.spark
    if spark is None:
        raise NotSupportedError(
            "rows are sorted by a Spark job, and the driver's process has no Python session to start it from: call the"
            " procedure from a Python program, or leave out order_by and zorder_by"
        )

    def attempt() -> tuple[LanceDataset, Any]:
        dataset = target.open()
        indices.note(dataset)
        Compaction.plan(dataset, {**options, "max_source_fragments": 1})  # Checks the options.
        order = parse_order(dataset.read_schema("all_binary"), order_by, zorder_by)
        chosen = None if where is None else matching_fragments(dataset, where)
        ids = [each.fragment_id for each in dataset.get_fragments() if chosen is None or each.fragment_id in chosen]
        ids = ids[: options.get("max_source_fragments")]
        if not ids:
            return dataset, CompactionMetrics()
        sizes = {name: options.get(name) for name in ("target_rows_per_fragment", "max_bytes_per_file")}
        return dataset, rewrite_sorted(spark, dataset, ids, order, **sizes)

    return target.retry(attempt)


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
