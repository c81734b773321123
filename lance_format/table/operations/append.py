"""Append: the table keeps all it has, and gains fragments."""

from __future__ import annotations

from lance_format.table.manifest import Manifest, make_successor
from lance_format.table.transaction import Append, Transaction, serialize_transaction


def apply_append(manifest: Manifest, transaction: Transaction, operation: Append, now_ns: int) -> Manifest:
    """Return the manifest that appending to a version makes."""
    return make_successor(
        manifest,
        fragments_kept=True,
        fragments_added=operation.fragments,
        transaction_file=transaction.file_name,
        inline_transaction=serialize_transaction(transaction),
        now_ns=now_ns,
    )
