"""Versions outside the history: only their number finds them, and no later version follows them by accident.

Their manifests lie with the others, under separate names. A cleanup keeps them and their files.
"""

from __future__ import annotations

import dataclasses
import time

from lance_format.errors import DatasetNotFoundError, InvalidInputError, NotSupportedError
from lance_format.table.format.layout import ManifestNaming, new_detached_version
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.successor import make_successor
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction.appended_columns import settle
from lance_format.table.transaction.file_versions import check_file_versions
from lance_format.table.transaction.operations import Append, Operation, OtherOperation, Restore, Update
from lance_format.table.transaction.transaction import Transaction, serialize_transaction
from lance_format.table.versions.first_version import create_version
from lance_format.table.versions.history import History, load_history


def commit_detached(directory: TableDirectory, transaction: Transaction) -> Manifest:
    """Make a version of the one that a transaction was planned on, even if other writers have committed since.

    Parameters
    ----------
    directory : TableDirectory
    transaction : Transaction

    Returns
    -------
    Manifest
        Its version number has the highest of 64 bits set.

    Raises
    ------
    DatasetNotFoundError
        If there is no table.
    VersionNotFoundError
        If the version that it was planned on no longer exists.
    NotSupportedError
        If the manifests have names of an early release.
    CommitStateUnknownError
        If it is unclear whether the version exists. After any other error it does not.
    """
    history = load_history(directory)
    if not history.names:
        raise DatasetNotFoundError(f"there is no Lance table at {directory} to make a detached version of")
    if history.names.naming is ManifestNaming.V1:
        raise NotSupportedError(
            f"{directory} names its versions as early releases did (v1 manifest paths), without detached ones; call"
            " migrate_manifest_paths_v2 first"
        )
    planned_on = history.load(transaction.read_version)
    planned_on.check_writable(f"the table {directory}")
    operation = _settled(transaction, planned_on, history)
    landing = dataclasses.replace(transaction, operation=operation)
    content = serialize_transaction(landing)
    made = operation.apply(planned_on)
    check_file_versions(planned_on, made)
    successor = make_successor(
        planned_on,
        made,
        transaction_file=transaction.file_name,
        inline_transaction=content,
        now_ns=time.time_ns(),
        version=new_detached_version(),
    )
    create_version(directory, successor, history.manifest_path(successor.version))
    return successor


def _settled(transaction: Transaction, planned_on: Manifest, history: History) -> Operation:
    operation = transaction.operation
    if isinstance(operation, OtherOperation):
        raise InvalidInputError(f"the operation {operation.name} cannot be committed")
    if isinstance(operation, Append | Update):
        return settle(operation, planned_on)
    if isinstance(operation, Restore):
        return dataclasses.replace(operation, restored=history.load(operation.version))
    return operation
