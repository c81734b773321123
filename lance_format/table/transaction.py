"""Transactions: what a commit is to change, independent of the version it lands on."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from lance_format.datatypes import Schema, parse_schema, serialize_fields, serialize_metadata
from lance_format.errors import CorruptFileError
from lance_format.proto import table_pb2
from lance_format.table.fragment import DataFile, FragmentMetadata, parse_fragment, serialize_fragment
from lance_format.table.naming import transaction_name
from lance_format.version import FileVersion

_UUID = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(frozen=True, slots=True)
class Append:
    """Adds fragments; the rest stays."""

    name = "append"
    fragments: tuple[FragmentMetadata, ...]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replaces fragments and schema, or creates the table.

    Parameters
    ----------
    fragments : tuple of FragmentMetadata
    schema : Schema
    file_version : FileVersion, optional
        What the table's data files are to be from now on. Not part of the stored transaction.
    config_keys : frozenset of str
        The configuration keys that a transaction of another writer sets.
    """

    name = "overwrite"
    fragments: tuple[FragmentMetadata, ...]
    schema: Schema
    file_version: FileVersion | None = None
    config_keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OtherOperation:
    """An operation of another writer, known as far as conflicts with it depend on it.

    Parameters
    ----------
    name : str
        Its name in the format, or "unknown".
    preserves_nullability : bool
        Of a change of schema: whether no column became required.
    field_ids : frozenset of int
        Of a merge: the fields of the schema that it made.
    """

    name: str
    preserves_nullability: bool = False
    field_ids: frozenset[int] = frozenset()


Operation = Append | Overwrite | OtherOperation


@dataclass(frozen=True, slots=True)
class Transaction:
    """An operation, the version it was planned on, and the identity by which it is recognised.

    Parameters
    ----------
    read_version : int
        0 if the table did not exist.
    uuid : str
        Made once; a commit that is tried again keeps it.
    operation : Append, Overwrite or OtherOperation
    """

    read_version: int
    operation: Operation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def file_name(self) -> str:
        """The name of the transaction file within its directory."""
        return transaction_name(self.read_version, self.uuid)

    @property
    def data_files(self) -> frozenset[str]:
        """The names of the data files that it adds to the table."""
        return frozenset(file.name for file in self._files())

    @property
    def field_ids(self) -> frozenset[int]:
        """The fields that these files hold."""
        return frozenset(field_id for file in self._files() for field_id in file.fields)

    def _files(self) -> list[DataFile]:
        if isinstance(self.operation, OtherOperation):
            return []
        return [file for fragment in self.operation.fragments for file in fragment.files]


def serialize_transaction(transaction: Transaction) -> bytes:
    """Return the content of the transaction file."""
    message = table_pb2.Transaction(read_version=transaction.read_version, uuid=transaction.uuid)
    operation = transaction.operation
    if isinstance(operation, Append):
        message.append.SetInParent()
        message.append.fragments.extend(serialize_fragment(fragment) for fragment in operation.fragments)
    elif isinstance(operation, Overwrite):
        message.overwrite.SetInParent()
        message.overwrite.fragments.extend(serialize_fragment(fragment) for fragment in operation.fragments)
        message.overwrite.schema.extend(serialize_fields(operation.schema.fields))
        message.overwrite.schema_metadata.update(serialize_metadata(operation.schema.metadata))
    else:
        raise TypeError(f"a transaction of the operation {operation.name} cannot be written")
    return message.SerializeToString(deterministic=True)


def parse_transaction(data: bytes) -> Transaction:
    """Build a transaction from the content of its file.

    Raises
    ------
    CorruptFileError
        If it is malformed.
    """
    try:
        message = table_pb2.Transaction.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"malformed transaction: {error}") from error
    if not _UUID.fullmatch(message.uuid):
        raise CorruptFileError(f"a transaction has the uuid {message.uuid[:100]!r}")
    return Transaction(message.read_version, _parse_operation(message), message.uuid)


def _parse_operation(message: table_pb2.Transaction) -> Operation:
    name = message.WhichOneof("operation")
    if name == "append":
        return Append(tuple(parse_fragment(fragment) for fragment in message.append.fragments))
    if name == "overwrite":
        overwrite = message.overwrite
        return Overwrite(
            tuple(parse_fragment(fragment) for fragment in overwrite.fragments),
            parse_schema(overwrite.schema, overwrite.schema_metadata),
            config_keys=frozenset(overwrite.config_upsert_values),
        )
    if name == "merge":
        return OtherOperation(
            name, message.merge.preserves_nullability, frozenset(node.id for node in message.merge.schema)
        )
    if name == "project":
        return OtherOperation(name, message.project.preserves_nullability)
    return OtherOperation(name or "unknown")
