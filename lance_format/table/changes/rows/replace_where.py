"""Replacing the rows that match a predicate: deleting them and adding fragments in one version."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lance_format.datatypes import Field
from lance_format.table.changes.rows.delete import plan_delete
from lance_format.table.changes.rows.row_changes import unite
from lance_format.table.changes.rows.row_delta import RowDeltaResult, plan_row_delta
from lance_format.table.changes.rows.row_delta_writer import RowDeltaChanges
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.scan.projection import Filter
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import run_tasks


def replace_where(
    dataset: OpenTable,
    predicate: Filter,
    fragments: Sequence[FragmentMetadata],
    uuid: str | None,
    found: RowDeltaChanges | None,
    new_fields: Sequence[Field],
) -> RowDeltaResult:
    """Delete rows and add fragments; see `LanceDataset.replace_where`."""
    table = dataset._table
    search = plan_delete(table, predicate)
    planned = plan_row_delta(table, description=search.predicate)
    delta = dataclasses.replace(planned, uuid=uuid or planned.uuid, heeds_keys=False, new_fields=tuple(new_fields))
    removed = unite(run_tasks(table, search))[0] if found is None else found.removed
    return delta.commit(dataset, [RowDeltaChanges(0, delta.uuid, removed, tuple(fragments))])
