"""Transactions: planned changes, independent of the version that they will follow."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import field

from google.protobuf.message import DecodeError

from lance_format.arguments import checked_methods
from lance_format.checksums import add_checksum, check_message
from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.layout import transaction_name
from lance_format.table.transaction.operations import OPERATIONS, Operation, OtherOperation

_UUID = re.compile(r"[0-9A-Za-z-]{1,64}")


@checked_methods
@dataclass(frozen=True, slots=True)
class Transaction:
    """An operation, the version that it was planned on, and its identity.

    Parameters
    ----------
    read_version : int
        0 if the table did not exist.
    operation : Operation
        `OtherOperation` for operations that only other libraries commit.
    uuid : str
        Assigned once; retries of the commit keep it.
    transaction_properties : mapping of str to str
        Notes of the writer.
    """

    read_version: int
    operation: Operation | OtherOperation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """The name of the transaction file within its directory."""
        return transaction_name(self.read_version, self.uuid)

    @property
    def data_files(self) -> frozenset[str]:
        """The names of the data files of the fragments that it adds to the table."""
        if isinstance(self.operation, OtherOperation):
            return frozenset()
        return frozenset(file.path for fragment in self.operation.added_fragments for file in fragment.files)


def serialize_transaction(transaction: Transaction) -> bytes:
    """Return the content of the transaction file.

    Raises
    ------
    TypeError
        If the operation cannot be serialized.
    """
    operation = transaction.operation
    if isinstance(operation, OtherOperation):
        raise TypeError(f"a transaction of the operation {operation.name} cannot be written")
    message = table_pb2.Transaction(read_version=transaction.read_version, uuid=transaction.uuid)
    message.transaction_properties.update(transaction.transaction_properties)
    operation.serialize(message)
    return add_checksum(message.SerializeToString(deterministic=True))


def serialize_clone(
    read_version: int,
    identity: str,
    parent: str | None,
    parent_uri: str,
    branch: str | None,
    *,
    is_shallow: bool = True,
) -> bytes:
    """Return the content of the transaction file of the first version of a branch, or of a copy of a table.

    Parameters
    ----------
    read_version : int
        The version of the parent that it starts from.
    identity : str
        The uuid.
    parent : str, optional
        The branch that it starts from; the main one if None.
    parent_uri : str
    branch : str, optional
    is_shallow : bool
        Whether it shares the files of the version that it starts from.
    """
    message = table_pb2.Transaction(read_version=read_version, uuid=identity)
    clone = message.clone
    clone.is_shallow, clone.ref_version, clone.ref_path = is_shallow, read_version, parent_uri
    if branch is not None:
        clone.branch_name = branch
    if parent is not None:
        clone.ref_name = parent
    return add_checksum(message.SerializeToString(deterministic=True))


def parse_transaction(data: bytes, *, verifies: bool = True) -> Transaction:
    """Build a transaction from the content of its file.

    Parameters
    ----------
    data : bytes
    verifies : bool
        Whether its checksum is compared, if it has one.

    Raises
    ------
    ChecksumError
        If it is not what was written.
    CorruptFileError
        If it is malformed.
    """
    if verifies:
        check_message(data)
    try:
        message = table_pb2.Transaction.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"malformed transaction: {error}") from error
    if not _UUID.fullmatch(message.uuid):
        raise CorruptFileError(f"a transaction has the uuid {message.uuid[:100]!r}")
    member = message.WhichOneof("operation")
    known = OPERATIONS.get(member or "")
    operation = OtherOperation(member or "unknown") if known is None else known.parse(message)
    return Transaction(message.read_version, operation, message.uuid, dict(message.transaction_properties))
