"""`create_index`, `refresh_index`, `drop_index`: tasks read the column, the commit adds the index."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import LongType, StringType

from connector.procedures.declaring import Result, Target, columns
from lance_format import ChangePlan, IndexConfig, InvalidInputError, LanceDataset

SCHEMA = columns(name=StringType(), column=StringType(), type=StringType(), fragments=LongType(), version=LongType())
DROP_SCHEMA = columns(name=StringType(), version=LongType())


def create_index(
    target: Target,
    *,
    column: str,
    index_type: str,
    name: str | None,
    replace: bool,
    **parameters: Any,
) -> Result:
    """Create an index of a column; see `LanceDataset.create_scalar_index`, and `IndexConfig` for the parameters."""
    config = IndexConfig(index_type, {key: value for key, value in parameters.items() if value is not None})

    def plan(dataset: LanceDataset) -> ChangePlan[Any, Any]:
        return dataset.plan_scalar_index(column, config, name, replace=replace)

    chosen = f"{column}_idx" if name is None else name
    dataset, _ = target.change(plan, lambda _: f"index {column} as {chosen}")
    return _describe(dataset, {chosen})


def refresh_index(target: Target, *, name: str | None, num_indices_to_merge: int | None, retrain: bool) -> Result:
    """Let indices cover all fragments; see `DatasetOptimizer.optimize_indices`."""

    def plan(dataset: LanceDataset) -> ChangePlan[Any, Any]:
        return dataset.optimize.plan_optimize_indices(
            index_names=None if name is None else [name], num_indices_to_merge=num_indices_to_merge, retrain=retrain
        )

    dataset, _ = target.change(plan, lambda _: "refresh indices" if name is None else f"refresh index {name}")
    names = {index["name"] for index in dataset.list_indices()}
    return _describe(dataset, names if name is None else {name})


def drop_index(target: Target, *, name: str) -> Result:
    """Drop an index. Its files remain until a cleanup."""
    dataset = target.open()
    dataset.drop_index(name)
    return Result(DROP_SCHEMA, [(name, dataset.version)])


def _describe(dataset: LanceDataset, names: set[str]) -> Result:
    found: dict[str, list[Any]] = {}
    ids = {fragment.fragment_id for fragment in dataset.get_fragments()}
    for index in dataset.list_indices():
        if index["name"] in names:
            row = found.setdefault(index["name"], [index["name"], ".".join(index["fields"]), index["type"], set()])
            row[3] |= ids & (index["fragment_ids"] or set())
    if not found and not names <= {index["name"] for index in dataset.list_indices()}:
        raise InvalidInputError(f"the index {min(names)!r} was dropped by another writer")
    rows = [(name, column, kind, len(covered), dataset.version) for name, column, kind, covered in found.values()]
    return Result(SCHEMA, rows)
