"""Writing a table in three steps, which may run on different machines: plan, write fragments, commit.

A plan is a value. It is made once, on the machine that will commit; any number of writers store fragments by it; the
commit makes all of them visible at once, or none.
"""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Unpack

import pyarrow as pa

from lance_format.arguments import checked, checked_methods
from lance_format.blob_fields import table_schema
from lance_format.datatypes import Field, Schema
from lance_format.errors import (
    CommitConflictError,
    CommitError,
    DatasetExistsError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    VersionNotFoundError,
)
from lance_format.file import check_requests, without_zones
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import absolute_uri, remove_if_empty
from lance_format.table.batches.fitting import plan_append
from lance_format.table.changes.write.options import WriteKeywords, WriteOptions
from lance_format.table.format.column_names import check_new_names
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.key_rules import check_primary_key
from lance_format.table.format.layout import is_data_file_of
from lance_format.table.format.lineage import maker_of
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.fragments.progress import FragmentWriteProgress
from lance_format.table.fragments.writer import DataFileOptions, FragmentWriter, list_data_files
from lance_format.table.transaction.appended_columns import plan_new_columns
from lance_format.table.transaction.batch_marker import BatchMarker
from lance_format.table.transaction.operations import Append, Overwrite
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.commit import commit, same_table
from lance_format.table.versions.first_version import new_directories
from lance_format.table.versions.history import History, load_history, load_latest, load_version
from lance_format.table.versions.planned_change import delete_unnamed
from lance_format.version import STABLE, WAY_OUT_OF_0_1, FileVersion


@checked_methods
@dataclass(frozen=True, slots=True)
class TableWrite:
    """A planned write: a value that can be pickled and sent to writers of fragments. See `plan_write`.

    Parameters
    ----------
    uri : str
        Absolute, as writers of fragments may run elsewhere.
    options : WriteOptions
    read_version : int
        The version that it was planned on; 0 if there was no table.
    uuid : str
        Identifies the transaction.
    schema : Schema
        The columns that are written, with the ids of their fields.
    file_version : FileVersion
    new_fields : tuple of Field
        Fields of `schema` that the table gains, at the top or below others.
    new_directories : tuple of str
        Directories that did not exist, innermost first; an aborted write removes them.
    read_uuid : str
        The uuid of the transaction that made the version read; empty if it is unknown.
    derives_rows : bool
        Whether the rows are made from those of that version: an overwrite then lands only if none of these has been
        changed since.
    """

    uri: str
    options: WriteOptions
    read_version: int
    uuid: str
    schema: Schema
    file_version: FileVersion
    new_fields: tuple[Field, ...] = ()
    new_directories: tuple[str, ...] = field(default=(), repr=False)
    read_uuid: str = ""
    derives_rows: bool = False

    def deriving(self, version: int) -> TableWrite:
        """Return the write as one whose rows are made from those of a version of the table.

        Parameters
        ----------
        version : int
            The planned version, or an earlier one.
        """
        made_by = self.read_uuid
        if version != self.read_version:
            made_by = ""
            with contextlib.suppress(VersionNotFoundError):  # A cleanup removed it, which the commit reports.
                directory = TableDirectory.at(self.uri, self.options.storage_options)
                made_by = maker_of(load_version(directory, version))
        return dataclasses.replace(self, read_version=version, read_uuid=made_by, derives_rows=True)

    @property
    def mode(self) -> str:
        """Mode of the write: "create", "append" or "overwrite"."""
        return self.options.mode

    def write_fragments(
        self,
        batches: Iterable[pa.RecordBatch],
        *,
        fragment_id: int = 0,
        progress: FragmentWriteProgress | None = None,
    ) -> list[FragmentMetadata]:
        """Write rows into data files, one per fragment, which no reader sees before the commit.

        Parameters
        ----------
        batches : iterable of pa.RecordBatch
            Consumed one by one.
        fragment_id : int
            Id of the fragments until the commit assigns others.
        progress : FragmentWriteProgress, optional
            Notified of each fragment that is begun and completed.

        Returns
        -------
        list of FragmentMetadata
            The fragments to commit; empty if there is no row.

        Raises
        ------
        SchemaMismatchError
            If a batch does not fit.
        StorageError
            If the storage fails. After this or any other exception none of the files is left.
        """
        directory = TableDirectory.at(self.uri, self.options.storage_options)
        writer = FragmentWriter(
            directory,
            self.schema,
            _file_options(self.file_version, self.options),
            job=self.uuid,
            fragment_id=fragment_id,
            progress=progress,
        )
        try:
            return writer.write_all(batches)
        except BaseException:
            remove_if_empty(directory.store, self.new_directories)
            raise

    def commit(self, fragments: Sequence[FragmentMetadata], marker: BatchMarker | None = None) -> int:
        """Make fragments part of the table, in one new version.

        Committing the same fragments again changes nothing, and returns the same version.

        Parameters
        ----------
        fragments : sequence of FragmentMetadata
        marker : BatchMarker, optional
            The batch that they are. It is committed only if no other writer has committed it.

        Returns
        -------
        int
            The version.

        Raises
        ------
        InvalidInputError
            If a data file is named twice, or holds other columns than planned.
        CommitError
            If a data file is missing or incomplete, or another writer committed first; see `lance_format.errors`. The
            fragments are not part of the table, except possibly after a `CommitStateUnknownError`.
        DatasetExistsError
            If another writer has created the table concurrently.
        """
        self._check_fragments(TableDirectory.at(self.uri, self.options.storage_options), fragments)
        return self.land(fragments, marker).version

    def land(self, fragments: Sequence[FragmentMetadata], marker: BatchMarker | None = None) -> Manifest:
        """Commit fragments that this process has just written, and return the manifest of the version; see `commit`.

        Their files are not looked up: the storage has acknowledged them.
        """
        directory = TableDirectory.at(self.uri, self.options.storage_options)
        precondition = same_table(directory, self.read_version, self.read_uuid)
        try:
            return commit(directory, self.transaction(fragments, marker), precondition=precondition)
        except CommitConflictError as error:
            if self.mode != "create":
                raise
            raise DatasetExistsError(f"{directory} was created by another writer concurrently: {error}") from error

    def abort(self, fragments: Sequence[FragmentMetadata]) -> list[str]:
        """Delete the files of this write if they are certainly not part of the table.

        These are the files of the given fragments, and those left by writers that died. All files are kept if this
        write has been committed, or if that is undecidable.

        Returns
        -------
        list of str
            The files deleted.
        """
        directory = TableDirectory.at(self.uri, self.options.storage_options)
        with contextlib.suppress(LanceError):  # Undecidable: a cleanup finds unreferenced files.
            history = load_history(directory)
            is_there = history.latest >= self.read_version  # Else it was dropped, and perhaps created again.
            if not history.find_transaction(self.uuid, self.read_version if is_there else 0, strays=True):
                return self.discard(fragments)
        return []

    def discard(self, fragments: Sequence[FragmentMetadata]) -> list[str]:
        """Delete the files of this write, which the caller knows are not part of the table; see `abort`.

        An error of `commit` implies that, except `CommitStateUnknownError`, unless other processes commit the same
        write.
        """
        directory = TableDirectory.at(self.uri, self.options.storage_options)
        paths = {directory.path(file.relative_path) for fragment in fragments for file in fragment.files}
        with contextlib.suppress(LanceError):
            paths.update(list_data_files(directory, self.uuid))
        transaction = directory.transaction(self.transaction(()).file_name)
        failed = set(directory.store.delete_all([*sorted(paths), transaction]))
        deleted = sorted(paths - failed)
        remove_if_empty(directory.store, self.new_directories)
        return deleted

    def discard_lost(self) -> None:
        """Delete the files of this write that were not committed; see `ChangePlan.discard_lost`.

        Call it after the commit, once no writer runs. It lists all data files of the table.
        """
        delete_unnamed(TableDirectory.at(self.uri, self.options.storage_options), self.uuid, self.read_version)

    def transaction(self, fragments: Sequence[FragmentMetadata], marker: BatchMarker | None = None) -> Transaction:
        """Return the transaction that commits fragments, for `LanceDataset.commit`; `commit` commits it at once."""
        properties = {**self.options.properties, **({} if marker is None else marker.properties)}
        if self.mode == "append" and self.read_version:
            return Transaction(self.read_version, Append(tuple(fragments), self.new_fields), self.uuid, properties)
        operation = Overwrite(
            tuple(fragments),
            self.schema,
            self.file_version,
            self.options.config if self.read_version else self.options.first_config,
            stable_row_ids=self.options.enable_stable_row_ids or None,
            derives_rows=self.derives_rows,
        )
        return Transaction(self.read_version, operation, self.uuid, properties)

    def _check_fragments(self, directory: TableDirectory, fragments: Sequence[FragmentMetadata]) -> None:
        planned = {node.id for node in self.schema.walk()}
        for data_file in (file for fragment in fragments for file in fragment.files):
            if not planned.issuperset(data_file.fields):
                raise InvalidInputError(f"data file {data_file.path} has other columns than this write was planned for")
            if not is_data_file_of(data_file.path, self.uuid):
                raise InvalidInputError(
                    f"data file {data_file.path} is of another write, not of this one, {self.uuid}: commit fragments by"
                    " the write that made them; nothing was committed"
                )
        check_data_files(directory, fragments)


def check_data_files(directory: TableDirectory, fragments: Sequence[FragmentMetadata]) -> None:
    """Check that the data files of fragments exist, are complete, and are named once each.

    Parameters
    ----------
    directory : TableDirectory
    fragments : sequence of FragmentMetadata
        The fragments to commit.

    Raises
    ------
    InvalidInputError
        If a file is named twice.
    CommitError
        If a file is missing or incomplete.
    """
    seen: set[str] = set()
    files = [file for fragment in fragments for file in fragment.files]
    for data_file in files:
        if data_file.path in seen:
            raise InvalidInputError(f"data file {data_file.path} is named twice; commit every fragment once")
        seen.add(data_file.path)
        if data_file.base_id is not None:
            raise InvalidInputError(f"data file {data_file.path} has a path outside of the table")
    paths = [directory.path(file.relative_path) for file in files]
    for data_file, path, size in zip(files, paths, directory.store.sizes(paths), strict=True):
        if size is None:
            raise CommitError(f"data file {path} is missing; nothing was committed: write it again")
        if data_file.exact_size_bytes not in (None, size):
            raise CommitError(
                f"data file {path} has {size} bytes instead of {data_file.exact_size_bytes}; nothing was committed:"
                " write it again"
            )


@checked
def plan_write(uri: str, schema: pa.Schema, *, mode: str = "create", **options: Unpack[WriteKeywords]) -> TableWrite:
    """Check that data of a schema can be written to a table, and plan the write. Nothing is written.

    Parameters
    ----------
    uri : str
    schema : pa.Schema
        Schema of the data. On append, columns and struct fields match those of the table by name; missing ones become
        null.
    mode, **options
        See `WriteOptions`. Tuning arguments of pylance (`max_rows_per_group` …) are ignored.

    Raises
    ------
    InvalidInputError
        If an argument is invalid.
    DatasetExistsError
        If a table to be created exists.
    SchemaMismatchError
        If the data does not fit the table.
    NotSupportedError
        If a type, the file version, or a feature of the table is not supported.
    StorageError
        If the table's directory cannot be written.
    """
    return plan_with(uri, schema, WriteOptions.of(mode, **options))


def plan_with(uri: str, schema: pa.Schema, options: WriteOptions) -> TableWrite:
    """Plan a write with options as a value; see `plan_write`."""
    directory = TableDirectory.at(uri, options.storage_options)
    history = load_history(directory)
    if history.names and options.mode == "create":
        raise DatasetExistsError(f'the table {directory} exists; use mode "append" or "overwrite", or another path')
    current = _load_current(history)
    file_version = _choose_file_version(options.file_version, current, options.mode)
    new_fields: tuple[Field, ...] = ()
    if current is None or options.mode == "overwrite":
        lance_schema = Schema.from_arrow(table_schema(schema, file_version))
        lance_schema = Schema(lance_schema.fields, without_zones(lance_schema.metadata))
        if current is not None and file_version is not FileVersion.V0_1:  # whose files number their columns
            lance_schema = lance_schema.with_ids_of(current.schema, current.next_field_id)
        check_requests(lance_schema.fields)
        known: Sequence[str] = () if current is None else current.schema.names
        _check_names(lance_schema.fields, options, known)
    else:
        new_fields = plan_new_columns(current, schema, file_version) if options.merge_schema else ()
        check_requests(new_fields)
        _check_names(new_fields, options)
        lance_schema = plan_append(current.schema, schema, new_fields)
    if not lance_schema.fields:
        raise InvalidInputError(f"the data for {directory} has no column; a table needs one at least")
    check_primary_key(lance_schema)
    _file_options(file_version, options).check_storable(lance_schema)
    if options.enable_stable_row_ids and current is not None and not current.stable_row_ids:
        raise NotSupportedError(
            f"the table {directory} was created without stable row ids, which cannot be enabled later; write"
            " another table"
        )
    directory.store.check_writable(directory.root)
    return TableWrite(
        uri=absolute_uri(uri),
        options=options,
        read_version=history.latest,
        uuid=str(uuid.uuid4()),
        schema=lance_schema,
        file_version=file_version,
        new_fields=new_fields,
        new_directories=new_directories(directory),
        read_uuid="" if current is None or current.version != history.latest else maker_of(current),
    )


def _load_current(history: History) -> Manifest | None:
    if not history.names:
        return None
    try:
        current = history.load(history.latest)
    except VersionNotFoundError:  # It was superseded, and removed before it was read.
        current = load_latest(history.directory)
    current.check_writable(f"the table {history.root}")
    return current


def _choose_file_version(wanted: FileVersion | None, current: Manifest | None, mode: str) -> FileVersion:
    version = wanted or (STABLE if current is None else current.file_version)
    if current is not None and mode == "append" and current.file_version is FileVersion.V0_1:
        raise InvalidInputError(
            f"the table has data files of format {current.file_version}, which loses nulls: no rows are appended to it,"
            f" and newer files cannot be added; {WAY_OUT_OF_0_1}"
        )
    version.require_writable()
    return version


def choose_file_version(table: Manifest, name: str) -> FileVersion:
    """Return the version of data files that are added to a table, by its name.

    Raises
    ------
    InvalidInputError
        If there is no such version, or the table cannot have such files beside its own.
    NotSupportedError
        If they cannot be written.
    """
    wanted = FileVersion.parse(name)
    if wanted is FileVersion.V0_1 is table.file_version:
        return wanted
    return _choose_file_version(wanted, table, "append")


_REMEDY = ", by data.rename_columns or by df.withColumnRenamed in Spark; the option allow_unportable_names keeps it"


def _check_names(fields: Iterable[Field], options: WriteOptions, known: Sequence[str] = ()) -> None:
    check_new_names(fields, known, allow_unportable=options.allow_unportable_names, remedy=_REMEDY)


def _file_options(version: FileVersion, options: WriteOptions) -> DataFileOptions:
    return DataFileOptions(
        version,
        max_rows_per_file=options.max_rows_per_file,
        max_bytes_per_file=options.max_bytes_per_file,
        encoding=options.encoding,
        column_encoding=options.column_encoding,
        zone_index=options.zone_index,
    )
