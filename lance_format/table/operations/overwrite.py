"""Overwrite: other fragments and another schema take the place of all; on nothing, it creates the table."""

from __future__ import annotations

from lance_format.table.manifest import Manifest, make_successor
from lance_format.table.transaction import Overwrite, Transaction, serialize_transaction


def apply_overwrite(manifest: Manifest | None, transaction: Transaction, operation: Overwrite, now_ns: int) -> Manifest:
    """Return the manifest that overwriting a version, or creating the table, makes."""
    return make_successor(
        manifest,
        fragments_kept=False,
        fragments_added=operation.fragments,
        schema=operation.schema,
        file_version=operation.file_version,
        transaction_file=transaction.file_name,
        inline_transaction=serialize_transaction(transaction),
        now_ns=now_ns,
    )
