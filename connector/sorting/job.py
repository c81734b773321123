"""The Spark job of a sorted rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from connector.jobs.failures import explain
from connector.jobs.requests import write_rows
from connector.sorting.order import RowOrder
from connector.sorting.source import KEY, SortedRewriteSource, SortRequest
from connector.types.arrays import is_rounded
from lance_format import LanceDataset, NotSupportedError, storage_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_MAX_ROWS_PER_TASK = 1 << 20


def rewrite_sorted(
    spark: SparkSession,
    dataset: LanceDataset,
    fragment_ids: Sequence[int],
    order: RowOrder,
    *,
    target_rows_per_fragment: int | None = None,
    max_bytes_per_file: int | None = None,
) -> Any:
    """Replace fragments by others with the same rows in an order, and move the dataset to that version.

    Spark divides the rows into ranges of the order, and each task writes one range. Rows keep their ids.

    Parameters
    ----------
    spark : SparkSession
    dataset : LanceDataset
        The version to rewrite.
    fragment_ids : sequence of int
    order : RowOrder
    target_rows_per_fragment : int, optional
        Approximate number of rows of a new fragment; 1048576 by default.
    max_bytes_per_file : int, optional

    Returns
    -------
    CompactionMetrics

    Raises
    ------
    LanceError
        If the job fails, or a process that plans it.
    NotSupportedError
        If Spark would change the values of a column.
    RetryableCommitConflictError
        If another writer changed the same fragments.
    """
    _check_exact(dataset)
    request = SortRequest(
        uri=dataset.absolute_uri,
        version=dataset.version,
        storage=dataset.storage_options,
        fragment_ids=tuple(sorted(fragment_ids)),
        max_bytes_per_file=max_bytes_per_file,
        zorder=order.zorder,
    )
    plan = request.plan(dataset)
    wanted = set(fragment_ids)
    num_rows = sum(each.count_rows() for each in dataset.get_fragments() if each.fragment_id in wanted)
    num_tasks = max(1, round(num_rows / (target_rows_per_fragment or _MAX_ROWS_PER_TASK)))
    description = f"sort fragments {min(wanted)}-{max(wanted)}"
    try:
        rows = spark.read.format("lance").options(**request.to_options(SortedRewriteSource)).load()
    except Exception as error:
        raise explain(error, description) from error
    keys = _keys(order)
    divided = rows.repartition(1) if num_tasks == 1 else rows.repartitionByRange(num_tasks, *keys)
    write_rows(spark, divided.sortWithinPartitions(*keys), request, SortedRewriteSource, description)
    return plan.find_outcome(dataset)


def _keys(order: RowOrder) -> list[Column]:
    from pyspark.sql import functions as f

    if order.zorder:
        return [f.col(KEY).asc()]
    found = []
    for term in order.terms:
        column = f.col(f"c{term.place}")
        if term.is_descending:
            found.append(column.desc_nulls_first() if term.nulls_first else column.desc_nulls_last())
        else:
            found.append(column.asc_nulls_first() if term.nulls_first else column.asc_nulls_last())
    return found


def _check_exact(dataset: LanceDataset) -> None:
    """Refuse a table with values that Spark would round."""
    for field in storage_schema(dataset.read_schema("all_binary")):
        if is_rounded(field.type):
            raise NotSupportedError(
                f"column {field.name!r} is of the type {field.type}, which Spark rounds: its rows cannot be sorted;"
                " optimize the table without order_by and zorder_by"
            )
