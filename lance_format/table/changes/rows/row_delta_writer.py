"""Writer of one task of a row delta; see `lance_format.table.changes.rows.row_delta`."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyroaring
from google.protobuf.message import DecodeError

from lance_format.arrow_rows import keep_rows
from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.changes.rows.claimed_rows import Addresses, ClaimedRows
from lance_format.table.changes.rows.key_absence import collect_primary_keys, primary_key
from lance_format.table.changes.rows.key_lookup import find_rows
from lance_format.table.changes.rows.replaced_rows import MovedRows, RowSet
from lance_format.table.changes.rows.row_changes import RowChanges, unite
from lance_format.table.format.fragment import FragmentMetadata, parse_fragment, serialize_fragment
from lance_format.table.fragments.writer import DataFileOptions, FragmentWriter
from lance_format.table.row_ids.row_id_sequence import RowIdSequence
from lance_format.table.row_ids.row_version_sequence import RowVersionSequence
from lance_format.table.transaction.inserted_keys import InsertedKeys
from lance_format.table.versions.table_version import TableVersion

_HEADER = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class RowDeltaChanges(RowChanges):
    """Result of a task of a row delta. Can be pickled, or sent as bytes.

    Parameters
    ----------
    num_updated : int
        Rows that were replaced. The first of `written` have these, the others rows that are new.
    keys : InsertedKeys, optional
        The primary keys of the new rows.
    """

    num_updated: int = 0
    keys: InsertedKeys | None = None

    @property
    def num_written(self) -> int:
        """Rows that were replaced or inserted."""
        return sum(fragment.physical_rows for fragment in self.written)

    @property
    def inserted(self) -> tuple[FragmentMetadata, ...]:
        """Those of `written` that have new rows."""
        ends = itertools.accumulate(fragment.physical_rows for fragment in self.written)
        return tuple(fragment for fragment, end in zip(self.written, ends, strict=True) if end > self.num_updated)

    @classmethod
    def of_deleted(cls, uuid: str, results: Iterable[RowChanges]) -> Self:
        """Unite the rows that the tasks of a delete have found.

        Parameters
        ----------
        uuid : str
            The uuid of the result.
        results : iterable of RowChanges
        """
        removed, _ = unite(list(results))
        return cls(0, uuid, removed)

    def to_bytes(self) -> bytes:
        """Return the number of the task and the replaced rows (two uint64, little-endian), and an `Update` message.

        The message has the uuid of the plan, the new fragments, and the removed rows as `updated_fragment_offsets`.
        """
        message = table_pb2.Transaction(uuid=self.uuid)
        message.update.SetInParent()
        message.update.new_fragments.extend(serialize_fragment(fragment) for fragment in self.written)
        for fragment_id, offsets in self.removed.bitmaps():
            message.update.updated_fragment_offsets[fragment_id] = offsets.serialize()
        if self.keys is not None:
            self.keys.serialize(message.update)
        return _HEADER.pack(self.number, self.num_updated) + message.SerializeToString()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return what `to_bytes` made of a result.

        Raises
        ------
        InvalidInputError
            If the bytes are malformed.
        """
        try:
            number, num_updated = _HEADER.unpack_from(data)
            message = table_pb2.Transaction.FromString(data[_HEADER.size :])
            update = message.update
            removed = RowSet()
            for fragment_id, offsets in update.updated_fragment_offsets.items():
                removed.add_offsets(fragment_id, pyroaring.BitMap.deserialize(offsets))
            written = tuple(parse_fragment(fragment) for fragment in update.new_fragments)
        except (struct.error, DecodeError, ValueError) as error:
            raise InvalidInputError(f"these bytes are no result of a row delta: {error}") from error
        return cls(number, message.uuid, removed, written, num_updated, InsertedKeys.parse(update))


class RowDeltaWriter:
    """Writes the changes that one task makes. Nothing of them is seen before the commit.

    Parameters
    ----------
    table : TableVersion
        The version that the delta was planned on.
    uuid : str
        Of the delta; the data files that are written carry it.
    number : int
        Of the task.
    deletes_again : bool
        Whether a row may be deleted more than once.
    """

    def __init__(self, table: TableVersion, uuid: str, number: int, *, deletes_again: bool = False) -> None:
        self._table = table
        self._uuid = uuid
        self._number = number
        self._deletes_again = deletes_again
        self._claimed = ClaimedRows(table)
        self._moved = MovedRows()
        self._num_updated = 0
        self._replaced = self._open()
        self._inserted = self._open()
        self._names = primary_key(table.manifest.schema)
        self._keys = collect_primary_keys(table.manifest.schema)

    def delete(self, addresses: Addresses) -> None:
        """Delete rows.

        Parameters
        ----------
        addresses : uint64[num_rows]
            Live rows of the version that the delta was planned on, in any order; each is changed once, unless the
            delta says that rows may be deleted again.

        Raises
        ------
        InvalidInputError
            If there is no such row.
        RepeatedRowError
            If it was changed before.
        """
        if self._deletes_again:
            self._claimed.claim_again(addresses)
        else:
            self._claimed.claim(addresses)

    def update(self, addresses: Addresses, rows: pa.RecordBatch) -> None:
        """Replace rows.

        Parameters
        ----------
        addresses : uint64[num_rows]
            See `delete`.
        rows : pyarrow.RecordBatch
            Their new values, in the same order, of all columns of the table.

        Raises
        ------
        InvalidInputError
            If there is no such row.
        RepeatedRowError
            If it was changed before.
        SchemaMismatchError
            If the values do not fit the table.
        """
        if addresses.size != rows.num_rows:
            raise InvalidInputError(f"there are {addresses.size} addresses of {rows.num_rows} rows to update")
        if not rows.num_rows:
            return
        lineage = self._claimed.claim(addresses)
        if self._table.manifest.stable_row_ids:
            made = RowVersionSequence.from_array(lineage.created_at)
            self._moved.add_named(RowIdSequence.from_array(lineage.ids), made)
        self._replaced.write_batch(rows)
        self._num_updated += rows.num_rows

    def insert(self, rows: pa.RecordBatch) -> None:
        """Add rows.

        Parameters
        ----------
        rows : pyarrow.RecordBatch
            With all columns of the table.

        Raises
        ------
        SchemaMismatchError
            If the values do not fit the table.
        """
        if rows.num_rows:
            self._inserted.write_batch(rows)
            if self._keys is not None:
                self._keys.add([rows.column(name) for name in self._names])

    def upsert(self, rows: pa.RecordBatch, on: Sequence[str]) -> None:
        """Replace the rows that have the keys of given rows, and add rows whose keys no row has.

        Each call reads the key columns of the table, where statistics do not exclude all keys.

        Parameters
        ----------
        rows : pyarrow.RecordBatch
            With all columns of the table. No two of them, in one call or several, have the same key.
        on : sequence of str
            The columns of the key.

        Raises
        ------
        InvalidInputError
            If a key is null.
        RepeatedRowError
            If two rows, of the table or given, have the same key.
        SchemaMismatchError
            If the values do not fit the table.
        """
        found = find_rows(self._table, pa.Table.from_batches([rows.select(list(on))]))
        known = pa.array(found >= 0)
        addresses = found[found >= 0].astype(np.uint64)
        self.update(addresses, keep_rows(rows, known))
        self.insert(keep_rows(rows, pc.invert(known)))

    def finish(self) -> RowDeltaChanges:
        """Close the files, and return the result of the task."""
        replaced: list[FragmentMetadata] = self._replaced.finish()
        if self._table.manifest.stable_row_ids:
            replaced = self._moved.name(replaced)
        inserted = self._inserted.finish()
        keys = self._keys.keys() if self._keys is not None and inserted else None
        written = (*replaced, *inserted)
        return RowDeltaChanges(self._number, self._uuid, self._claimed.rows, written, self._num_updated, keys)

    def discard(self) -> None:
        """Delete the files, as far as the storage lets us."""
        self._replaced.discard()
        self._inserted.discard()

    def __enter__(self) -> RowDeltaWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Delete the files after an exception."""
        if kind is not None:
            self.discard()

    def _open(self) -> FragmentWriter:
        manifest = self._table.manifest
        manifest.file_version.require_changeable()
        return FragmentWriter(
            self._table.directory,
            manifest.schema,
            DataFileOptions(manifest.file_version),
            job=self._uuid,
        )
