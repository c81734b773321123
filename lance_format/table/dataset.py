"""The table as users see it: a version of it, its fragments, reading and changing them."""

from __future__ import annotations

import dataclasses
import datetime
import math
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.file import DEFAULT_CACHE_BYTES, BlobFile, SearchCache
from lance_format.object_store import absolute_uri, resolve
from lance_format.table.add_columns import NewColumns, add_columns
from lance_format.table.alter_columns import alter_columns, drop_columns
from lance_format.table.branches import Branches, create_branch
from lance_format.table.checkout import Reference, check_out, check_out_as_of
from lance_format.table.cleanup import DEFAULT_AGE, CleanupPolicy, CleanupStats, clean_up
from lance_format.table.data_source import to_batches
from lance_format.table.delete_rows import delete_rows
from lance_format.table.history import load_history, load_latest, summarize
from lance_format.table.indices import describe_index, drop_index
from lance_format.table.json_columns import with_text
from lance_format.table.lance_fragment import LanceFragment
from lance_format.table.merge_builder import MergeInsertBuilder
from lance_format.table.merge_columns import merge_columns
from lance_format.table.metadata_updates import (
    Values,
    update_config,
    update_field_metadata,
    update_schema_metadata,
    update_table_metadata,
)
from lance_format.table.migrate_manifest_names import migrate_manifest_names
from lance_format.table.operations import Operation, Restore
from lance_format.table.optimize import DatasetOptimizer
from lance_format.table.projection import Columns, Filter
from lance_format.table.raw_commit import COMMIT_MESSAGE_KEY, commit_operation
from lance_format.table.scanner import LanceScanner, check_tuning
from lance_format.table.table_version import Attempt, TableVersion, change
from lance_format.table.tags import Tags
from lance_format.table.take import Indices, take_places, take_row_ids
from lance_format.table.take_blobs import take_blobs
from lance_format.table.update_rows import update_rows
from lance_format.table.validation import validate
from lance_format.table.write_data import write_data


def dataset(
    uri: str | os.PathLike[str],
    version: Reference | None = None,
    asof: datetime.datetime | str | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    metadata_cache_size_bytes: int = DEFAULT_CACHE_BYTES,
) -> LanceDataset:
    """Open a table.

    Parameters
    ----------
    uri : str or path
        The directory of the table.
    version : int, str, or tuple of (str or None) and (int or None), optional
        The version to open, by its number, by the name of a tag, or as a branch and one of its versions, where None
        stands for the main branch and the latest version. The latest if not given.
    asof : datetime or str, optional
        Open the latest version that was committed before this time, which is local unless it has a time zone. Ignored
        if a version is given.
    storage_options : mapping, optional
    metadata_cache_size_bytes : int, optional
        What may be kept between reads to find rows sooner, for all files and checked-out versions of the table
        together; 64 MiB by default, 0 for nothing.

    Raises
    ------
    DatasetNotFoundError
        If there is no table.
    VersionNotFoundError
        If it has no such version.
    NotSupportedError
        If the table needs a feature that is not supported.
    CorruptFileError
        If its manifest is malformed.
    """
    cache = SearchCache(metadata_cache_size_bytes)
    store, root = resolve(uri, storage_options)
    number = version if isinstance(version, int) and not isinstance(version, bool) else None
    manifest = load_latest(store, root) if number is None else load_history(store, root).load(number)
    table = TableVersion(absolute_uri(os.fspath(uri)), store, root, manifest, dict(storage_options or {}), cache)
    opened = LanceDataset(os.fspath(uri), table)
    if version is not None and number is None:
        return opened.checkout_version(version)
    if version is None and asof is not None:
        return LanceDataset(os.fspath(uri), check_out_as_of(table, asof))
    return opened


class LanceDataset:
    """A version of a table. Made by `dataset` and `write_dataset`; can be pickled.

    It shows the version that was opened, whatever others commit, until a method that changes the table moves it to the
    version that this made.

    Parameters
    ----------
    uri : str
    table : TableVersion
    """

    def __init__(self, uri: str, table: TableVersion) -> None:
        self._uri = uri
        self._table = table

    def __repr__(self) -> str:
        return f"LanceDataset({self._uri!r}, version={self.version})"

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._table.uri, self.version, self._table.storage_options, self._table.cache.capacity_bytes)

    @property
    def uri(self) -> str:
        """The path or URI that it was opened with."""
        return self._uri

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return with_text(self._table.manifest.schema).to_arrow()

    @property
    def version(self) -> int:
        """The version that this object shows."""
        return self._table.manifest.version

    @property
    def latest_version(self) -> int:
        """The latest version that the table has now."""
        return self._table.history().latest

    @property
    def data_storage_version(self) -> str:
        """The version of its data files, as far as a writer has not chosen another."""
        return str(self._table.manifest.file_version)

    def versions(self) -> list[dict[str, Any]]:
        """Describe every version that the table has: `version`, `timestamp` in local time, and `metadata`."""
        history = self._table.history()
        return [summarize(history.load(version)) for version in history.names]

    def version_refs(self) -> list[dict[str, int]]:
        """Return the numbers of all versions, without reading them; each as a dict of `version`."""
        return [{"version": version} for version in self._table.history().names]

    def get_version(self) -> dict[str, Any]:
        """Describe the version that this object shows; see `versions`."""
        return summarize(self._table.manifest)

    def checkout_version(self, version: Reference) -> LanceDataset:
        """Return another version of the table.

        Parameters
        ----------
        version : int, str, or tuple of (str or None) and (int or None)
            A version of this branch, the name of a tag, or a branch and one of its versions, where None stands for the
            main branch and the latest version.

        Raises
        ------
        VersionNotFoundError
            If there is no such version, tag or branch.
        """
        table = check_out(self._table, version)
        return LanceDataset(self._uri if table.root == self._table.root else table.uri, table)

    def checkout_latest(self) -> None:
        """Let this object show the latest version of its branch."""
        self._table = self._table.latest()

    def cleanup_old_versions(
        self,
        older_than: datetime.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Iterable[int] | None = None,
    ) -> CleanupStats:
        """Remove old versions of this branch, and the files that only they need.

        This version and later ones stay, and so do those that have a tag or that a branch starts from.

        Parameters
        ----------
        older_than : datetime.timedelta, optional
            Which versions; 14 days if neither this nor `retain_versions` nor `versions` is given.
        retain_versions : int, optional
            How many of the latest versions stay. Of several conditions all have to hold.
        delete_unverified : bool
            Files that no version names may belong to a write in progress, and stay until they are 7 days old. Whether
            to delete them at once, which loses the data of whoever is writing.
        error_if_tagged_old_versions : bool
            Whether it is an error that one of the versions has a tag.
        delete_rate_limit : int, optional
            The most files that are deleted in a second.
        versions : iterable of int, optional
            Only these.

        Raises
        ------
        InvalidInputError
            If an argument makes no sense, or one of the versions has a tag.
        """
        if older_than is None and retain_versions is None and versions is None:
            older_than = DEFAULT_AGE
        policy = CleanupPolicy(
            older_than=older_than,
            retain_versions=retain_versions,
            versions=None if versions is None else frozenset(versions),
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
            delete_rate_limit=delete_rate_limit,
        )
        return clean_up(self._table.store, self._table.root, self._table.manifest, policy)

    def migrate_manifest_paths_v2(self) -> None:
        """Give the manifests of a table of an early release the names that later ones have.

        Nobody else may read or write the table meanwhile. Running it again completes what was interrupted.
        """
        migrate_manifest_names(self._table.store, self._table.root)

    def create_branch(self, branch: str, reference: Reference | None = None) -> LanceDataset:
        """Make a branch, and return it.

        Parameters
        ----------
        branch : str
            Its name: letters, digits and `. _ -`, in segments between slashes.
        reference : int, str, or tuple of (str or None) and (int or None), optional
            What it starts from; see `checkout_version`. The version that this object shows if not given.

        Raises
        ------
        InvalidInputError
            If there is such a branch, or the name is not allowed.
        VersionNotFoundError
            If there is no version to start from.
        """
        table = create_branch(self._table, branch, reference)
        return LanceDataset(table.uri, table)

    @property
    def branches(self) -> Branches:
        """The branches but the main one."""
        return Branches(self)

    @property
    def tags(self) -> Tags:
        """Names for versions."""
        return Tags(self)

    def get_fragments(self) -> list[LanceFragment]:
        """Return the fragments, by ascending id."""
        return [LanceFragment(self, fragment) for fragment in self._table.manifest.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment of an id, or None if there is none."""
        for fragment in self._table.manifest.fragments:
            if fragment.id == fragment_id:
                return LanceFragment(self, fragment)
        return None

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when an update or a compaction moves them."""
        return self._table.manifest.stable_row_ids

    def count_rows(self, filter: Filter | None = None) -> int:
        """Count the rows, deleted ones not included, that a filter lets pass."""
        return self.scanner(columns=[], filter=filter).count_rows()

    def scanner(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        fragments: Iterable[LanceFragment] | None = None,
        *,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        blob_handling: str | None = None,
        **tuning: Any,
    ) -> LanceScanner:
        """Say which rows and columns to read.

        Parameters
        ----------
        columns : sequence of str, or mapping of str to str, optional
            Names of columns, of fields below structs (`a.b`), and of row columns (`_rowid`, `_rowaddr`, `_rowoffset`,
            `_fragid`, `_row_created_at_version`, `_row_last_updated_at_version`), in the order wanted; or SQL
            expressions by the names of their results. All columns of the table if not given.
        filter : str or pyarrow.compute.Expression, optional
            Which rows: SQL, or an expression of pyarrow.
        limit : int, optional
            How many rows at most.
        offset : int, optional
            How many rows to skip.
        batch_size : int, optional
            The most rows that a batch has; 8192 if not given.
        fragments : iterable of LanceFragment, optional
            All if not given.
        with_row_id, with_row_address : bool, optional
            Whether to add the columns `_rowid` and `_rowaddr`.
        blob_handling : {"blobs_descriptions", "all_descriptions", "all_binary"}, optional
            What columns of blobs are read as: structs that say where each blob is, which is the default and what the
            first two say, or their bytes. These make batches smaller where they are large.
        **tuning
            Arguments by which pylance is told how to read, not what (`batch_readahead`, `scan_in_order`, …): accepted,
            and of no effect.

        Raises
        ------
        InvalidInputError
            If an argument makes no sense.
        NotSupportedError
            If vectors or full text are to be searched.
        """
        check_tuning(tuning)
        return LanceScanner(
            self._table,
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            batch_size=batch_size,
            fragments=None if fragments is None else [fragment.metadata for fragment in fragments],
            with_row_id=bool(with_row_id),
            with_row_address=bool(with_row_address),
            blob_handling=blob_handling,
        )

    def to_batches(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in order, as a stream; the arguments are those of `scanner`."""
        return self.scanner(columns, filter, **options).to_batches()

    def to_table(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        **options: Any,
    ) -> pa.Table:
        """Read rows into memory; the arguments are those of `scanner`."""
        return self.scanner(columns, filter, **options).to_table()

    def to_pandas(
        self,
        columns: Columns | None = None,
        filter: Filter | None = None,
        **options: Any,
    ) -> Any:
        """Read rows into a pandas DataFrame; the arguments are those of `scanner`. pandas has to be installed."""
        return self.to_table(columns, filter, **options).to_pandas()

    def delete(self, predicate: Filter, *, conflict_retries: int = 10) -> dict[str, int]:
        """Delete the rows for which a predicate is true.

        Parameters
        ----------
        predicate : str or pyarrow.compute.Expression
        conflict_retries : int
            How often to start again when other writers change the same rows first.

        Returns
        -------
        dict
            `num_deleted_rows`.
        """
        num_rows = 0

        def attempt(table: TableVersion) -> TableVersion:
            nonlocal num_rows
            made, num_rows = delete_rows(table, predicate)
            return made

        self._change(attempt, conflict_retries)
        return {"num_deleted_rows": num_rows}

    def update(
        self, updates: Mapping[str, str], where: Filter | None = None, *, conflict_retries: int = 10
    ) -> dict[str, int]:
        """Change values of the rows for which a predicate is true.

        Parameters
        ----------
        updates : mapping of str to str
            SQL expressions over the old values of a row, by the columns that they replace.
        where : str or pyarrow.compute.Expression, optional
            Which rows; all if not given.
        conflict_retries : int
            How often to start again when other writers change the same rows first.

        Returns
        -------
        dict
            `num_rows_updated`.
        """
        num_rows = 0

        def attempt(table: TableVersion) -> TableVersion:
            nonlocal num_rows
            made, num_rows = update_rows(table, updates, where)
            return made

        self._change(attempt, conflict_retries)
        return {"num_rows_updated": num_rows}

    def add_columns(
        self,
        transforms: NewColumns,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Add columns.

        Parameters
        ----------
        transforms : mapping of str to str, pa.Field, sequence of pa.Field, pa.Schema, callable or iterator of \
pa.RecordBatch
            SQL expressions over the other columns, by the names of the new ones; or fields, whose values become null;
            or a function from record batches to record batches of as many rows; or these rows themselves, in the order
            of the table, as a reader or an iterator.
        read_columns : sequence of str, optional
            The columns that a function gets; all if not given.
        reader_schema : pa.Schema, optional
            What a function returns, found out by calling it on the first rows if not given; or the schema of an
            iterator's rows.
        batch_size : int, optional
            The most rows that are computed at once; 8192 if not given.
        """
        self._change(
            lambda table: add_columns(
                table, transforms, read_columns=read_columns, output_schema=reader_schema, batch_size=batch_size
            ),
            conflict_retries=0 if isinstance(transforms, Iterator) else 10,  # An iterator cannot be read again.
        )

    def drop_columns(self, columns: Sequence[str]) -> None:
        """Drop columns, or fields below structs (`a.b`); their values stay in the files until these are rewritten."""
        self._change(lambda table: drop_columns(table, columns))

    def alter_columns(self, *alterations: Mapping[str, Any]) -> None:
        """Rename columns, change their types, allow or forbid nulls.

        Parameters
        ----------
        *alterations : mapping
            Each with the `path` of a column (its name, or a dotted path of a field below structs), and what is to
            change: `name`, `nullable`, `data_type`. Nulls can be forbidden where there are none.
        """
        self._change(lambda table: alter_columns(table, alterations))

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Merge data into the table by key: replace or delete rows that match, insert those that do not.

        Parameters
        ----------
        on : str or iterable of str, optional
            The columns of the key; those of the table's primary key if not given. A key with a null matches none.

        Returns
        -------
        MergeInsertBuilder
            Takes the clauses, and then the data: ``table.merge_insert("id").when_matched_update_all()
            .when_not_matched_insert_all().execute(data)`` is an upsert.
        """
        return MergeInsertBuilder(self._change, self._table.manifest.schema, on)

    def insert(self, data: Any, *, mode: str = "append", **options: Any) -> None:
        """Write data to the table; further arguments are those of `write_dataset`."""
        options.setdefault("storage_options", self._table.storage_options)
        version = write_data(data, self._table.uri, mode=mode, **options)
        self._table = dataclasses.replace(self._table, manifest=self._table.history().load(version))

    def merge(self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None) -> None:
        """Add columns by key.

        Parameters
        ----------
        data_obj, schema
            The data: see `write_dataset`. It is read into memory. Of rows with one key the last one counts.
        left_on : str
            The key of the table.
        right_on : str, optional
            The key of the data; `left_on` if not given. All its other columns are added, as null in rows whose key the
            data lacks. Null is a key like others.
        """
        batches, data_schema = to_batches(data_obj, schema)
        data = pa.Table.from_batches(batches, data_schema)
        self._change(lambda table: merge_columns(table, data, left_on, left_on if right_on is None else right_on))

    def truncate_table(self) -> None:
        """Delete all rows; the columns stay."""
        self.delete("true")

    def _change(self, attempt: Attempt, conflict_retries: int = 10, max_seconds: float = math.inf) -> None:
        attempts = conflict_retries + 1
        self._table = change(self._table.latest(), attempt, max_attempts=attempts, max_seconds=max_seconds)

    @property
    def optimize(self) -> DatasetOptimizer:
        """Ways to make the table faster to read."""
        return DatasetOptimizer(self)

    @property
    def has_index(self) -> bool:
        """Whether it has any index."""
        return any(not index.is_system for index in self._table.manifest.indices)

    def list_indices(self) -> list[dict[str, Any]]:
        """Describe every index, or part of one: `name`, `type`, `uuid`, `fields`, `version`, `fragment_ids`.

        Indices are made by pylance. All operations here keep to what they promise: an index never covers a fragment
        whose rows it does not know.
        """
        manifest = self._table.manifest
        return [describe_index(index, manifest.schema) for index in manifest.indices if not index.is_system]

    def drop_index(self, name: str) -> None:
        """Drop an index; its files stay until a cleanup."""
        self._change(lambda table: drop_index(table, name))

    @staticmethod
    def commit(
        base_uri: str | os.PathLike[str] | LanceDataset,
        operation: Operation,
        read_version: int | None = None,
        *,
        enable_stable_row_ids: bool | None = None,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
        max_retries: int = 20,
        storage_options: Mapping[str, str] | None = None,
    ) -> LanceDataset:
        """Commit an operation on fragments that have been written already.

        Parameters
        ----------
        base_uri : str or path or LanceDataset
        operation : one of `LanceOperation`
        read_version : int, optional
            The version that it was prepared on; needed by all but `Append` and `Overwrite`.
        enable_stable_row_ids : bool, optional
            See `write_dataset`; of a table that this creates.
        commit_message : str, optional
        transaction_properties : mapping of str to str, optional
            Kept with the transaction.
        max_retries : int
            How often to try again when others commit first.
        storage_options : mapping of str to str, optional

        Raises
        ------
        CommitConflictError
            If what others committed since `read_version` is in the way.
        CommitError
            If a data file that it adds is missing or incomplete.
        """
        uri = base_uri.uri if isinstance(base_uri, LanceDataset) else os.fspath(base_uri)
        if isinstance(base_uri, LanceDataset) and storage_options is None:
            storage_options = base_uri._table.storage_options
        message = {} if commit_message is None else {COMMIT_MESSAGE_KEY: commit_message}
        table = commit_operation(
            uri,
            operation,
            read_version,
            enable_stable_row_ids=enable_stable_row_ids,
            properties={**(transaction_properties or {}), **message},
            max_retries=max_retries,
            storage_options=storage_options,
        )
        return LanceDataset(uri, table)

    @property
    def lance_schema(self) -> Schema:
        """The columns, with the ids of their fields."""
        return self._table.manifest.schema

    def config(self) -> dict[str, str]:
        """Return the table's configuration."""
        return dict(self._table.manifest.config)

    def update_config(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the table's configuration; those given as None go, and all others if `replace`.

        Returns
        -------
        dict
            The configuration since.
        """
        self._change(lambda table: update_config(table, values, replace=replace))
        return self.config()

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove entries of the table's configuration, so far as there are."""
        self.update_config(dict.fromkeys(keys))

    @property
    def metadata(self) -> dict[str, str]:
        """The table's metadata."""
        return dict(self._table.manifest.table_metadata)

    def update_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the table's metadata, and return them; see `update_config`."""
        self._change(lambda table: update_table_metadata(table, values, replace=replace))
        return self.metadata

    @property
    def schema_metadata(self) -> dict[str, str]:
        """The metadata of the schema."""
        metadata = self._table.manifest.schema.metadata
        return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in metadata.items()}

    def update_schema_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Set entries of the schema's metadata, and return them; see `update_config`."""
        self._change(lambda table: update_schema_metadata(table, values, replace=replace))
        return self.schema_metadata

    def update_field_metadata(self, field_updates: Mapping[str, Values], *, replace: bool = False) -> None:
        """Set entries of the metadata of fields, which are given by their paths; see `update_config`."""
        self._change(lambda table: update_field_metadata(table, field_updates, replace=replace))

    def restore(self) -> None:
        """Make the version that this object shows the latest again."""
        self._table = self._table.commit(Restore(self.version))

    def head(self, num_rows: int, columns: Columns | None = None, **options: Any) -> pa.Table:
        """Read the first rows; further arguments are those of `scanner`."""
        return self.to_table(columns, limit=num_rows, **options)

    def slice(self, start: int, end: int, columns: Columns | None = None) -> pa.Table:
        """Read the rows from place `start` up to, but not with, place `end`, as far as there are."""
        if end < start:
            raise InvalidInputError(f"a slice from row {start} to {end} ends before it begins")
        return self.to_table(columns, offset=start, limit=end - start)

    def sample(
        self, num_rows: int, columns: Columns | None = None, randomize_order: bool = True, **options: Any
    ) -> pa.Table:
        """Read some rows chosen at random, each at most once; in the order of the table unless `randomize_order`."""
        total = self.count_rows()
        if isinstance(num_rows, bool) or not isinstance(num_rows, int) or not 0 <= num_rows <= total:
            raise InvalidInputError(f"num_rows is {num_rows!r}; there are {total} rows to choose from")
        places = random.sample(range(total), num_rows)
        return self.take(places if randomize_order else sorted(places), columns, **options)

    def validate(self) -> None:
        """Check that the files of this version are there, and hold what its manifest says; values are not read.

        Raises
        ------
        CorruptFileError
            At the first contradiction.
        DatasetNotFoundError
            If a file is gone.
        """
        validate(self._table)

    def take(self, indices: Indices, columns: Columns | None = None, *, blob_handling: str | None = None) -> pa.Table:
        """Read rows by their place.

        Parameters
        ----------
        indices : sequence of int, or integer array of numpy or Arrow
            Places among the rows that are not deleted, from 0; in any order, repeated at will.
        columns : sequence of str, or mapping of str to str, optional
            See `scanner`.
        blob_handling : str, optional
            See `scanner`.

        Returns
        -------
        pa.Table
            The rows in the order of `indices`.

        Raises
        ------
        InvalidInputError
            If there is no such row or column.
        """
        return take_places(self._table, indices, columns, blob_handling=blob_handling)

    def take_rows(
        self, row_ids: Indices, columns: Columns | None = None, *, blob_handling: str | None = None
    ) -> pa.Table:
        """Read rows by their ids, as the column `_rowid` has them; those of rows that are not there are left out."""
        return take_row_ids(self._table, row_ids, columns, blob_handling=blob_handling)

    def take_blobs(
        self,
        blob_column: str,
        ids: Indices | None = None,
        addresses: Indices | None = None,
        indices: Indices | None = None,
    ) -> list[BlobFile | None]:
        """Open single blobs as files, of which only what is read is fetched.

        Parameters
        ----------
        blob_column : str
        ids, addresses, indices : sequence of int, or integer array of numpy or Arrow, optional
            Exactly one of them: row ids, row addresses, or places as `take` has them. In any order, repeated at will.

        Returns
        -------
        list of BlobFile or None
            In the order asked for; None for what is null.

        Raises
        ------
        InvalidInputError
            If the column has no blobs, there is no such row, or not exactly one kind of them is given.
        CorruptFileError
            If a blob is said to be where its file has no such bytes.
        """
        return take_blobs(self._table, blob_column, ids=ids, addresses=addresses, indices=indices)


def _reopen(uri: str, version: int, storage_options: Mapping[str, str], cache_bytes: int) -> LanceDataset:
    return dataset(uri, version, storage_options=storage_options, metadata_cache_size_bytes=cache_bytes)
