"""The manifest of a version as a value: all that the table holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import field

from google.protobuf.message import DecodeError

from lance_format.datatypes import Schema
from lance_format.errors import CorruptFileError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format import feature_flags
from lance_format.table.format.base_paths import BasePath
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.version import FileVersion

_MAX_INLINE_TRANSACTION_BYTES = 20 << 20


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a table, existing or in preparation.

    Parameters
    ----------
    version : int
    timestamp_ns : int
        Time of the commit: nanoseconds since the epoch, UTC.
    schema : Schema
    fragments : FragmentList
        By ascending id.
    file_version : FileVersion
        Default version of new data files.
    max_fragment_id : int
        The highest known fragment id ever used; -1 if there is none.
    indices : tuple of IndexMetadata
    config, table_metadata : mapping of str to str
    stable_row_ids : bool
        Whether rows keep their ids when they move.
    next_row_id : int
        Id of the next new row in such tables.
    branch : str or None
        The branch of the version; None for the main one.
    bases : mapping of int to BasePath
        Paths in the store of directories of a branch's parents, by the ids that files refer to.
    transaction_file : str
        The file name of the transaction that made the version; empty if it has no file.
    inline_transaction : bytes, optional
        The same transaction if the manifest file has a copy.
    ancestors : bytes
        The transactions of earlier versions; see `lance_format.table.format.lineage`.
    auxiliary_section : bytes, optional
        The serialized `VersionAuxData`; see `auxiliary_data`.
    message : table_pb2.Manifest
        The stored message without the fragments. Never modified: successors start from a copy.
    """

    version: int
    timestamp_ns: int
    schema: Schema
    fragments: FragmentList
    file_version: FileVersion
    max_fragment_id: int = -1
    indices: tuple[IndexMetadata, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    table_metadata: Mapping[str, str] = field(default_factory=dict)
    stable_row_ids: bool = False
    next_row_id: int = 0
    branch: str | None = None
    bases: Mapping[int, BasePath] = field(default_factory=dict)
    transaction_file: str = ""
    inline_transaction: bytes | None = None
    ancestors: bytes = b""
    auxiliary_section: bytes | None = None
    message: table_pb2.Manifest = field(default_factory=table_pb2.Manifest, repr=False, compare=False)

    @property
    def tag(self) -> str:
        """The tag that early writers stored in the manifest; empty if there is none."""
        return self.message.tag

    @property
    def auxiliary_data(self) -> dict[str, bytes]:
        """Data that a writer keeps with the table, by key; parsed on demand, since nothing depends on it.

        Raises
        ------
        CorruptFileError
            If it is malformed.
        """
        try:
            return dict(table_pb2.VersionAuxData.FromString(self.auxiliary_section or b"").metadata)
        except DecodeError as error:
            raise CorruptFileError(f"the auxiliary data of version {self.version} is malformed: {error}") from error

    def fragment(self, fragment_id: int) -> FragmentMetadata | None:
        """Return the fragment of an id, or None if there is none."""
        return self.fragments.find(fragment_id)

    @property
    def stores_transaction(self) -> bool:
        """True if the file holds the transaction; only very large ones do not."""
        return self.inline_transaction is not None and len(self.inline_transaction) <= _MAX_INLINE_TRANSACTION_BYTES

    @property
    def next_field_id(self) -> int:
        """An id that neither a field of the table nor a column of its files has."""
        known = [-1, *(field.id for field in self.schema.walk())]
        return max(*known, int(self.fragments.columns.max_field_ids.max(initial=-1))) + 1

    def with_new_fragments(self, added: Iterable[FragmentMetadata]) -> Manifest:
        """Add fragments under new ids, which no fragment of the table ever had."""
        first = self.max_fragment_id + 1
        new = [dataclasses.replace(fragment, id=first + index) for index, fragment in enumerate(added)]
        return dataclasses.replace(self, fragments=self.fragments.extended(new), max_fragment_id=first + len(new) - 1)

    def check_writable(self, where: str) -> None:
        """Raise `NotSupportedError` unless this library can write successors."""
        feature_flags.check_writable(self.message.reader_feature_flags | self.message.writer_feature_flags, where)


def first_manifest(schema: Schema, file_version: FileVersion, *, stable_row_ids: bool = False) -> Manifest:
    """Return a manifest without rows and version, the base of the first commit.

    Parameters
    ----------
    schema : Schema
    file_version : FileVersion
        Default version of data files.
    stable_row_ids : bool
        Whether rows keep their ids when they move.
    """
    return Manifest(0, 0, schema, FragmentList(), file_version, stable_row_ids=stable_row_ids)
