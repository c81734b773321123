"""Committing operations that the caller has prepared, fragment by fragment, for hand-distributed writers.

`LanceOperation` has the names and arguments of pylance. `write_fragments` or `LanceFragment.merge_columns` write data
files, on any machine. `LanceDataset.commit` commits their results once.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import pyarrow as pa

from lance_format.datatypes import Schema
from lance_format.errors import DatasetNotFoundError, InvalidInputError, NotSupportedError
from lance_format.object_store import absolute_uri
from lance_format.table.changes.columns.metadata import as_update, check_schema_metadata
from lance_format.table.changes.write.plan import check_data_files
from lance_format.table.dataset.schema import LanceSchema, schema_of
from lance_format.table.format.column_names import check_new_names
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction import operations
from lance_format.table.transaction.operations import Operation
from lance_format.table.transaction.operations.update_config import MapUpdate
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.commit import RetryPolicy, commit
from lance_format.table.versions.detached import commit_detached
from lance_format.table.versions.history import load_history
from lance_format.table.versions.table_version import TableVersion

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made", covariant=True)


class _Maker(Generic[Arguments, Made]):
    """A function that makes operations, and that `isinstance` accepts as their class."""

    def __init__(self, make: Callable[Arguments, Made], kind: type) -> None:
        self._make = make
        self._kind = kind
        functools.update_wrapper(self, make)

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Made:
        return self._make(*args, **kwargs)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._kind)


def _makes(kind: type) -> Callable[[Callable[Arguments, Made]], _Maker[Arguments, Made]]:
    return lambda make: _Maker(make, kind)


class LanceOperation:
    """Operations for `LanceDataset.commit`. They also serve `isinstance` on the operation of a transaction."""

    @_makes(operations.Append)
    @staticmethod
    def Append(fragments: Iterable[FragmentMetadata]) -> Operation:  # noqa: N802
        """Add fragments."""
        return operations.Append(tuple(fragments))

    @_makes(operations.Overwrite)
    @staticmethod
    def Overwrite(new_schema: pa.Schema | LanceSchema, fragments: Iterable[FragmentMetadata]) -> Operation:  # noqa: N802
        """Replace the schema and the fragments, or create the table."""
        return operations.Overwrite(tuple(fragments), _as_schema(new_schema))

    @_makes(operations.Delete)
    @staticmethod
    def Delete(  # noqa: N802
        updated_fragments: Iterable[FragmentMetadata], deleted_fragment_ids: Iterable[int], predicate: str
    ) -> Operation:
        """Update the deletion files of fragments, and remove fragments without live rows.

        Parameters
        ----------
        updated_fragments : iterable of FragmentMetadata
            Fragments with their new deletion files.
        deleted_fragment_ids : iterable of int
            Ids of the fragments without live rows.
        predicate : str
            The predicate of the delete, kept with the transaction.
        """
        return operations.Delete(tuple(updated_fragments), frozenset(deleted_fragment_ids), predicate)

    @_makes(operations.Update)
    @staticmethod
    def Update(  # noqa: N802
        removed_fragment_ids: Iterable[int] = (),
        updated_fragments: Iterable[FragmentMetadata] = (),
        new_fragments: Iterable[FragmentMetadata] = (),
        fields_modified: Iterable[int] = (),
        fields_for_preserving_frag_bitmap: Iterable[int] = (),
        update_mode: str = "rewrite_rows",
        updated_fragment_offsets: Mapping[int, bytes] | None = None,
    ) -> Operation:
        """Replace rows by those of new fragments, or columns by those of new files.

        Parameters
        ----------
        removed_fragment_ids : iterable of int
            Ids of fragments without live rows.
        updated_fragments : iterable of FragmentMetadata
            Fragments with new deletion files or new data files.
        new_fragments : iterable of FragmentMetadata
            Fragments with the updated rows.
        fields_modified : iterable of int
            Ids of the fields whose values change in existing fragments.
        fields_for_preserving_frag_bitmap : iterable of int
            Ids of the fields whose values change; indices of other fields cover the new fragments.
        update_mode : {"rewrite_rows", "rewrite_columns"}
            Whether rows or columns are replaced.
        updated_fragment_offsets : mapping of int to bytes, optional
            Offsets of the changed rows, as a portable Roaring bitmap per fragment id.
        """
        return operations.Update(
            frozenset(removed_fragment_ids),
            tuple(updated_fragments),
            tuple(new_fragments),
            frozenset(fields_modified),
            frozenset(fields_for_preserving_frag_bitmap),
            update_mode != "rewrite_columns",
            dict(updated_fragment_offsets or {}),
        )

    @_makes(operations.Merge)
    @staticmethod
    def Merge(  # noqa: N802
        fragments: Iterable[FragmentMetadata], schema: LanceSchema, preserves_nullability: bool = False
    ) -> Operation:
        """Replace the schema, and all fragments by the same with further data files.

        Parameters
        ----------
        fragments : iterable of FragmentMetadata
            All fragments of the table.
        schema : LanceSchema
            The new schema.
        preserves_nullability : bool
            Whether rows may be appended concurrently: no new column is required to have values.

        Raises
        ------
        InvalidInputError
            If the schema has no field ids.
        """
        if not isinstance(schema, LanceSchema):
            raise InvalidInputError("a merge needs the schema that merge_columns returned, with the ids of fields")
        return operations.Merge(tuple(fragments), schema_of(schema), preserves_nullability)

    @_makes(operations.Project)
    @staticmethod
    def Project(schema: LanceSchema, preserves_nullability: bool = False) -> Operation:  # noqa: N802
        """Replace the schema by one of existing fields, which are found by their ids; see `Merge`."""
        if not isinstance(schema, LanceSchema):
            raise InvalidInputError("a projection needs a schema with the ids of fields, as LanceDataset.lance_schema")
        return operations.Project(schema_of(schema), preserves_nullability)

    @_makes(operations.Restore)
    @staticmethod
    def Restore(version: int) -> Operation:  # noqa: N802
        """Make a version the latest again."""
        return operations.Restore(version)

    @_makes(operations.Rewrite)
    @staticmethod
    def Rewrite(  # noqa: N802
        groups: Iterable[operations.RewriteGroup], rewritten_indices: Iterable[Any] = ()
    ) -> Operation:
        """Replace groups of fragments by others with the same rows.

        Raises
        ------
        NotSupportedError
            If indices are to be replaced too.
        """
        if list(rewritten_indices):
            raise NotSupportedError("rewritten_indices are not supported: indices are left as they are")
        return operations.Rewrite(tuple(groups))

    @_makes(operations.RewriteGroup)
    @staticmethod
    def RewriteGroup(  # noqa: N802
        old_fragments: Iterable[FragmentMetadata], new_fragments: Iterable[FragmentMetadata]
    ) -> operations.RewriteGroup:
        """Return a group of fragments and their replacements. The commit assigns an id to those of id 0."""
        return operations.RewriteGroup(tuple(old_fragments), tuple(new_fragments))

    @_makes(operations.DataReplacement)
    @staticmethod
    def DataReplacement(replacements: Iterable[tuple[int, DataFile]]) -> Operation:  # noqa: N802
        """Replace data files of some columns, by fragment id."""
        return operations.DataReplacement(tuple(replacements))

    @staticmethod
    def DataReplacementGroup(fragment_id: int, new_file: DataFile) -> tuple[int, DataFile]:  # noqa: N802
        """Return a fragment id and the new file of some of its columns."""
        return fragment_id, new_file

    @staticmethod
    def UpdateMap(updates: Mapping[str, str | None], replace: bool = False) -> MapUpdate:  # noqa: N802
        """Set entries of a mapping. None removes an entry; `replace` removes all others."""
        return as_update(updates, replace)

    @_makes(operations.UpdateConfig)
    @staticmethod
    def UpdateConfig(  # noqa: N802
        config_updates: MapUpdate | None = None,
        table_metadata_updates: MapUpdate | None = None,
        schema_metadata_updates: MapUpdate | None = None,
        field_metadata_updates: Mapping[int, MapUpdate] | None = None,
    ) -> Operation:
        """Change the table's configuration and metadata.

        Parameters
        ----------
        config_updates, table_metadata_updates, schema_metadata_updates : MapUpdate, optional
            Updates of the configuration, and of the metadata of the table and of its schema; see `UpdateMap`.
        field_metadata_updates : mapping of int to MapUpdate, optional
            Updates of the metadata of fields, by field id.
        """
        return operations.UpdateConfig(
            config_updates,
            table_metadata_updates,
            check_schema_metadata(schema_metadata_updates),
            dict(field_metadata_updates or {}),
        )

    @_makes(operations.ReserveFragments)
    @staticmethod
    def ReserveFragments(num_fragments: int) -> Operation:  # noqa: N802
        """Reserve fragment ids."""
        return operations.ReserveFragments(num_fragments)


def commit_operation(
    uri: str,
    operation: Operation | Transaction,
    read_version: int | None,
    *,
    enable_stable_row_ids: bool | None = None,
    properties: Mapping[str, str] | None = None,
    max_retries: int = 20,
    detached: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> TableVersion:
    """Commit an operation to a table; see `LanceDataset.commit`."""
    given = operation if isinstance(operation, Transaction) else None
    wanted = given.operation if given is not None else operation
    if isinstance(wanted, Transaction | operations.OtherOperation) or not hasattr(wanted, "apply"):
        raise InvalidInputError(f"operation is {wanted!r}; one of LanceOperation is needed")
    if given is not None and (read_version is not None or properties):
        raise InvalidInputError("read_version and properties are those of the transaction; leave the arguments out")
    directory = TableDirectory.at(uri, storage_options)
    history = load_history(directory)
    if not history.names and not isinstance(wanted, operations.Overwrite):
        raise DatasetNotFoundError(f"there is no Lance table at {directory} to {wanted.name}")
    if given is None and read_version is None:
        if not isinstance(wanted, operations.Overwrite | operations.Restore):
            raise InvalidInputError(f"read_version is needed to commit the operation {wanted.name}")
        read_version = history.latest
    if isinstance(wanted, operations.Overwrite) and enable_stable_row_ids is not None and not history.names:
        wanted = dataclasses.replace(wanted, stable_row_ids=enable_stable_row_ids)
    check_data_files(directory, wanted.added_fragments)
    planned = given or Transaction(read_version or 0, wanted, transaction_properties=dict(properties or {}))
    transaction = dataclasses.replace(planned, operation=wanted)
    if detached:
        manifest = commit_detached(directory, transaction)
    else:
        manifest = commit(directory, transaction, RetryPolicy(max_attempts=max_retries + 1))
    return TableVersion(absolute_uri(os.fspath(uri)), directory, manifest, dict(storage_options or {}))


def join_appends(transactions: Sequence[Transaction]) -> Transaction:
    """Join several appends into one transaction.

    Raises
    ------
    InvalidInputError
        If there is no transaction, or one is not an append.
    """
    appends = [transaction.operation for transaction in transactions]
    if not appends:
        raise InvalidInputError("there is no transaction to commit")
    fragments: list[FragmentMetadata] = []
    for operation in appends:
        if not isinstance(operation, operations.Append) or operation.new_fields:
            raise InvalidInputError(f"only appends are committed together; one of the operations is {operation.name}")
        fragments += operation.fragments
    properties = {name: value for each in transactions for name, value in each.transaction_properties.items()}
    first = min(transaction.read_version for transaction in transactions)
    return Transaction(first, operations.Append(tuple(fragments)), transaction_properties=properties)


def _as_schema(schema: Any) -> Schema:
    if isinstance(schema, LanceSchema):
        return schema_of(schema)
    made = Schema.from_arrow(schema)
    check_new_names(made.fields, remedy=", or give a LanceSchema")
    return made
