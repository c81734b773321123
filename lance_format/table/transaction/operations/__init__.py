"""The operations of transactions, one per file: content, stored form, and effect on a table.

`OPERATIONS` maps the member of the protobuf oneof to the class; every class follows `Operation`.
"""

from __future__ import annotations

from lance_format.table.transaction.operations.append import Append
from lance_format.table.transaction.operations.create_index import CreateIndex
from lance_format.table.transaction.operations.data_replacement import DataReplacement
from lance_format.table.transaction.operations.delete import Delete
from lance_format.table.transaction.operations.merge import Merge
from lance_format.table.transaction.operations.operation import Operation, OtherOperation
from lance_format.table.transaction.operations.overwrite import Overwrite
from lance_format.table.transaction.operations.project import Project
from lance_format.table.transaction.operations.reserve_fragments import ReserveFragments
from lance_format.table.transaction.operations.restore import Restore
from lance_format.table.transaction.operations.rewrite import Rewrite, RewriteGroup
from lance_format.table.transaction.operations.update import Update
from lance_format.table.transaction.operations.update_config import UpdateConfig

__all__ = [
    "OPERATIONS",
    "Append",
    "CreateIndex",
    "DataReplacement",
    "Delete",
    "Merge",
    "Operation",
    "OtherOperation",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RewriteGroup",
    "Update",
    "UpdateConfig",
]

OPERATIONS: dict[str, type[Operation]] = {
    operation.name: operation
    for operation in (
        Append,
        CreateIndex,
        DataReplacement,
        Delete,
        Merge,
        Overwrite,
        Project,
        ReserveFragments,
        Restore,
        Rewrite,
        Update,
        UpdateConfig,
    )
}
