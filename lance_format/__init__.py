"""The Lance columnar format: files and tables, read and written in Python.

Tables are opened by `dataset` and written by `write_dataset`, whose names and arguments follow pylance:

>>> import lance_format, tempfile
>>> path = f"{tempfile.mkdtemp()}/birds"
>>> lance_format.write_dataset({"name": ["owl", "emu"]}, path).version
1
>>> lance_format.dataset(path).to_table()["name"].to_pylist()
['owl', 'emu']

`plan_write` plans a write by several machines, and returns a `TableWrite`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lance_format.errors import (
    ChecksumError,
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    CorruptFileError,
    DatasetExistsError,
    DatasetNotFoundError,
    IndexNotFoundError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    RepeatedRowError,
    RetryableCommitConflictError,
    SchemaMismatchError,
    StorageError,
    VersionNotFoundError,
)
from lance_format.version import FileVersion

if TYPE_CHECKING:
    from lance_format.blob_fields import blob_array, blob_field
    from lance_format.extension_types import storage_schema
    from lance_format.file.blobs.blob_file import BlobFile
    from lance_format.kernels.jit import prepare_compiler
    from lance_format.namespaces.contents import NamespaceListing, TablePlace
    from lance_format.namespaces.directory import NamespaceDirectory
    from lance_format.namespaces.glue import GlueNamespace
    from lance_format.namespaces.hive import HiveNamespace
    from lance_format.namespaces.namespace import Namespace
    from lance_format.namespaces.rest import RestNamespace
    from lance_format.progress import Progress
    from lance_format.table.changes.columns.backfill import BackfilledFragments, ColumnBackfill
    from lance_format.table.changes.columns.batch_udf import BatchUDF, batch_udf
    from lance_format.table.changes.rows.row_delta import RowDelta
    from lance_format.table.changes.rows.row_delta_writer import RowDeltaChanges
    from lance_format.table.changes.write.plan import TableWrite, plan_write
    from lance_format.table.dataset.change_feed.change_log import ChangeLog
    from lance_format.table.dataset.change_feed.row_changes import RowChange
    from lance_format.table.dataset.dataset import LanceDataset, dataset
    from lance_format.table.dataset.delta import DatasetDelta
    from lance_format.table.dataset.fragment import LanceFragment
    from lance_format.table.dataset.lance_operation import LanceOperation
    from lance_format.table.dataset.merge_builder import MergeInsertBuilder
    from lance_format.table.dataset.optimize import Compaction
    from lance_format.table.dataset.reports.report import TableReport
    from lance_format.table.dataset.scanner_builder import ScannerBuilder
    from lance_format.table.dataset.schema import LanceField, LanceSchema
    from lance_format.table.dataset.session import Session
    from lance_format.table.dataset.write_dataset import write_dataset
    from lance_format.table.dataset.write_fragments import write_fragments
    from lance_format.table.format.file_entries import DataFile, DeletionFile
    from lance_format.table.format.fragment import FragmentMetadata
    from lance_format.table.fragments.progress import FragmentWriteProgress
    from lance_format.table.indices.descriptions import IndexDescription, IndexSegmentDescription
    from lance_format.table.indices.index_config import IndexConfig
    from lance_format.table.maintenance.compaction import CompactionMetrics
    from lance_format.table.maintenance.compaction_options import CompactionKeywords
    from lance_format.table.maintenance.findings import LostRows
    from lance_format.table.maintenance.row_rewrite import RowRewrite
    from lance_format.table.maintenance.verification import VerificationReport
    from lance_format.table.scan.column_bounds import ColumnBounds
    from lance_format.table.scan.metrics import ScanMetrics
    from lance_format.table.scan.options import ColumnOrdering
    from lance_format.table.scan.planned_reads import FragmentReads, PlannedReads
    from lance_format.table.scan.scanner import LanceScanner
    from lance_format.table.scan.tasks import ScanTask
    from lance_format.table.transaction.batch_marker import BatchMarker, last_batches
    from lance_format.table.transaction.transaction import Transaction
    from lance_format.table.versions.cleanup.cleanup_policy import (
        CleanupCandidateFile,
        CleanupExplanation,
        CleanupStats,
    )
    from lance_format.table.versions.planned_change import ChangePlan, ChangeTask, WriterPlan

__all__ = [
    "BatchMarker",
    "BatchUDF",
    "BlobFile",
    "ChangeLog",
    "ChangePlan",
    "WriterPlan",
    "ChangeTask",
    "BackfilledFragments",
    "ColumnBackfill",
    "CleanupCandidateFile",
    "CleanupExplanation",
    "CleanupStats",
    "ColumnBounds",
    "ColumnOrdering",
    "CommitConflictError",
    "CommitError",
    "CommitStateUnknownError",
    "Compaction",
    "CompactionKeywords",
    "CompactionMetrics",
    "ChecksumError",
    "CorruptFileError",
    "DataFile",
    "DatasetDelta",
    "DatasetExistsError",
    "DatasetNotFoundError",
    "DeletionFile",
    "FileVersion",
    "FragmentMetadata",
    "FragmentReads",
    "GlueNamespace",
    "HiveNamespace",
    "IndexConfig",
    "IndexDescription",
    "IndexSegmentDescription",
    "IndexNotFoundError",
    "FragmentWriteProgress",
    "InvalidInputError",
    "LanceDataset",
    "LanceError",
    "LanceField",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "LostRows",
    "MergeInsertBuilder",
    "Namespace",
    "NamespaceDirectory",
    "NamespaceListing",
    "NotSupportedError",
    "PlannedReads",
    "Progress",
    "RetryableCommitConflictError",
    "ScanMetrics",
    "ScanTask",
    "ScannerBuilder",
    "RepeatedRowError",
    "RestNamespace",
    "RowChange",
    "RowDelta",
    "RowDeltaChanges",
    "RowRewrite",
    "SchemaMismatchError",
    "Session",
    "StorageError",
    "TablePlace",
    "TableReport",
    "TableWrite",
    "Transaction",
    "VerificationReport",
    "VersionNotFoundError",
    "batch_udf",
    "blob_array",
    "blob_field",
    "dataset",
    "last_batches",
    "plan_write",
    "prepare_compiler",
    "storage_schema",
    "write_dataset",
    "write_fragments",
]

# Loaded on first use: they import pyarrow, protobuf and the compiled kernels, which processes that only use an error or
# a version do not need.
_LAZY = {
    "BatchMarker": "lance_format.table.transaction.batch_marker",
    "BatchUDF": "lance_format.table.changes.columns.batch_udf",
    "BlobFile": "lance_format.file.blobs.blob_file",
    "BackfilledFragments": "lance_format.table.changes.columns.backfill",
    "ColumnBackfill": "lance_format.table.changes.columns.backfill",
    "ChangeLog": "lance_format.table.dataset.change_feed.change_log",
    "ChangePlan": "lance_format.table.versions.planned_change",
    "WriterPlan": "lance_format.table.versions.planned_change",
    "ChangeTask": "lance_format.table.versions.planned_change",
    "CleanupCandidateFile": "lance_format.table.versions.cleanup.cleanup_policy",
    "CleanupExplanation": "lance_format.table.versions.cleanup.cleanup_policy",
    "CleanupStats": "lance_format.table.versions.cleanup.cleanup_policy",
    "DataFile": "lance_format.table.format.file_entries",
    "DeletionFile": "lance_format.table.format.file_entries",
    "MergeInsertBuilder": "lance_format.table.dataset.merge_builder",
    "ColumnBounds": "lance_format.table.scan.column_bounds",
    "Compaction": "lance_format.table.dataset.optimize",
    "CompactionKeywords": "lance_format.table.maintenance.compaction_options",
    "CompactionMetrics": "lance_format.table.maintenance.compaction",
    "ColumnOrdering": "lance_format.table.scan.options",
    "DatasetDelta": "lance_format.table.dataset.delta",
    "FragmentMetadata": "lance_format.table.format.fragment",
    "GlueNamespace": "lance_format.namespaces.glue",
    "HiveNamespace": "lance_format.namespaces.hive",
    "IndexConfig": "lance_format.table.indices.index_config",
    "IndexDescription": "lance_format.table.indices.descriptions",
    "IndexSegmentDescription": "lance_format.table.indices.descriptions",
    "FragmentWriteProgress": "lance_format.table.fragments.progress",
    "LanceDataset": "lance_format.table.dataset.dataset",
    "LanceField": "lance_format.table.dataset.schema",
    "LanceFragment": "lance_format.table.dataset.fragment",
    "LanceOperation": "lance_format.table.dataset.lance_operation",
    "LanceSchema": "lance_format.table.dataset.schema",
    "Namespace": "lance_format.namespaces.namespace",
    "NamespaceDirectory": "lance_format.namespaces.directory",
    "NamespaceListing": "lance_format.namespaces.contents",
    "LanceScanner": "lance_format.table.scan.scanner",
    "LostRows": "lance_format.table.maintenance.findings",
    "FragmentReads": "lance_format.table.scan.planned_reads",
    "Progress": "lance_format.progress",
    "PlannedReads": "lance_format.table.scan.planned_reads",
    "RestNamespace": "lance_format.namespaces.rest",
    "RowChange": "lance_format.table.dataset.change_feed.row_changes",
    "RowDelta": "lance_format.table.changes.rows.row_delta",
    "RowDeltaChanges": "lance_format.table.changes.rows.row_delta_writer",
    "RowRewrite": "lance_format.table.maintenance.row_rewrite",
    "ScanMetrics": "lance_format.table.scan.metrics",
    "ScanTask": "lance_format.table.scan.tasks",
    "ScannerBuilder": "lance_format.table.dataset.scanner_builder",
    "Session": "lance_format.table.dataset.session",
    "Transaction": "lance_format.table.transaction.transaction",
    "TablePlace": "lance_format.namespaces.contents",
    "TableReport": "lance_format.table.dataset.reports.report",
    "TableWrite": "lance_format.table.changes.write.plan",
    "VerificationReport": "lance_format.table.maintenance.verification",
    "batch_udf": "lance_format.table.changes.columns.batch_udf",
    "blob_array": "lance_format.blob_fields",
    "blob_field": "lance_format.blob_fields",
    "dataset": "lance_format.table.dataset.dataset",
    "last_batches": "lance_format.table.transaction.batch_marker",
    "plan_write": "lance_format.table.changes.write.plan",
    "prepare_compiler": "lance_format.kernels.jit",
    "storage_schema": "lance_format.extension_types",
    "write_dataset": "lance_format.table.dataset.write_dataset",
    "write_fragments": "lance_format.table.dataset.write_fragments",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
