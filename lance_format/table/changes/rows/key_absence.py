"""Absence of keys among the rows that other writers add, checked before each attempt to create a new version.

If two writers insert the same new key concurrently, the one that commits last must be planned again, and then finds the
key: the check reads the key columns of all rows that are new since the version that the change was planned on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.datatypes import Schema
from lance_format.errors import RetryableCommitConflictError
from lance_format.expressions import to_sql
from lance_format.expressions.nodes import Literal
from lance_format.table.batches.key_index import index_keys
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.inserted_keys import KeyCollector, is_tracked
from lance_format.table.versions.commit import Precondition
from lance_format.table.versions.table_version import TableVersion

Clashes = Callable[[pa.Table], npt.NDArray[np.bool_]]
"""Returns a mask of the rows whose key must be absent, given rows with the columns of the key."""
_SEARCHED_ROWS = 64 * 1024


def primary_key(schema: Schema) -> tuple[str, ...]:
    """Return the columns of the primary key, in its order; none if fields below other columns belong to it."""
    nodes = [(top.name, node) for top in schema.fields for node in top.walk() if node.unenforced_primary_key]
    ordered = sorted(nodes, key=lambda entry: entry[1].primary_key_position)
    return tuple(name for name, _ in ordered) if all(node.name == name for name, node in ordered) else ()


def collect_primary_keys(schema: Schema) -> KeyCollector | None:
    """Return a collector of the primary keys of rows; None if there is no such key, or the reference tracks none."""
    fields = [schema.field(name) for name in primary_key(schema)]
    if not fields or not is_tracked(field.to_arrow_type() for field in fields):
        return None
    return KeyCollector([field.id for field in fields])


def watch_added_rows(
    table: TableVersion, names: Sequence[str], clashes: Clashes, batch_size: int = _SEARCHED_ROWS
) -> Precondition:
    """Return a check that no other writer has added a row with one of some keys.

    Parameters
    ----------
    table : TableVersion
        The version that the change was planned on.
    names : sequence of str
        The columns of the key.
    clashes : callable
    batch_size : int
        Maximum number of rows to check at once.
    """
    keys = [table.manifest.schema.field(name) for name in names]
    known: dict[int, tuple[DataFile, ...]] = {}

    def check(latest: Manifest) -> None:
        if not all(key in latest.schema.fields for key in keys):
            raise RetryableCommitConflictError(
                f"another writer changed the columns {', '.join(names)} of {table.directory} concurrently, which are"
                " the key of the rows that this change inserts; nothing was changed: run it again on the latest version"
            )
        for fragment in latest.fragments.beyond(table.manifest.fragments):
            before = table.manifest.fragment(fragment.id)
            if fragment.files != known.get(fragment.id, () if before is None else before.files):
                for rows in _read(table, fragment, latest.schema.select(names), batch_size):
                    found = clashes(rows)
                    if found.any():
                        raise _collision(table, rows, int(found.argmax()))
                known[fragment.id] = fragment.files

    return check


def absence_of_primary_keys(table: TableVersion, inserted: Sequence[FragmentMetadata]) -> Precondition | None:
    """Return a check that no other writer has added a row whose primary key an inserted row has; see `absence_of`."""
    return absence_of(table, primary_key(table.manifest.schema), inserted)


def absence_of(table: TableVersion, names: Sequence[str], inserted: Sequence[FragmentMetadata]) -> Precondition | None:
    """Return a check that no other writer has added a row whose key an inserted row has.

    Parameters
    ----------
    table : TableVersion
        The version that the change was planned on.
    names : sequence of str
        The columns of the key.
    inserted : sequence of FragmentMetadata
        The files of the inserted rows. The keys of one file at a time are in memory.

    Returns
    -------
    callable, optional
        None if there is no key, or no row is inserted.
    """
    if not names or not inserted:
        return None
    schema = table.manifest.schema.select(names)

    def clashes(rows: pa.Table) -> npt.NDArray[np.bool_]:
        found = np.zeros(rows.num_rows, np.bool_)
        for fragment in inserted:
            keys, _ = index_keys(pa.concat_tables(_read(table, fragment, schema, fragment.physical_rows)), names)
            found |= keys.find(rows) >= 0
        return found

    return watch_added_rows(table, names, clashes)


def _read(table: TableVersion, fragment: FragmentMetadata, schema: Schema, batch_size: int) -> Iterator[pa.Table]:
    scan = table.scan(fragment, schema)
    for batch, _ in scan.read(0, scan.num_rows(), batch_size=batch_size):
        yield pa.Table.from_batches([batch])


def describe_key(keys: pa.Table, row: int) -> str:
    """Return the key of a row for a message."""
    return ", ".join(f"{name} = {to_sql(Literal(keys.column(name)[row]))}" for name in keys.schema.names)


def _collision(table: TableVersion, rows: pa.Table, place: int) -> RetryableCommitConflictError:
    return RetryableCommitConflictError(
        f"another writer added a row with {describe_key(rows, place)} to {table.directory} concurrently, which this"
        " change inserts too; nothing was changed: run it again on the latest version"
    )
