"""Storing rows in data files of limited size, one per fragment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from lance_format.byte_io import RangeWriter
from lance_format.datatypes import Schema
from lance_format.errors import StorageError
from lance_format.file import FileWriter, LegacyFileWriter
from lance_format.file.writing.layout import layout_of
from lance_format.lazy_dataclasses import dataclass
from lance_format.progress import Work, advance
from lance_format.table.batches.fitting import conform
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.layout import is_data_file_of, new_data_file_name
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.fragments.progress import FragmentWriteProgress, NoopFragmentWriteProgress
from lance_format.version import FileVersion

DEFAULT_MAX_ROWS_PER_FILE = 1024 * 1024
DEFAULT_MAX_BYTES_PER_FILE = 90 * 1024**3

_LEAST_BYTES_PER_FILE = 64 * 1024
"""Smaller files would have more metadata than rows; a limit of a few bytes would make a file per row."""

_PIECES_PER_FILE = 8  # A batch is cut so that a file exceeds its limit by at most this fraction.


@dataclass(frozen=True, slots=True)
class DataFileOptions:
    """Version, size and compression of data files.

    Parameters
    ----------
    version : FileVersion
    max_rows_per_file : int
        Maximum number of rows per file.
    max_bytes_per_file : int
        A file is closed when it reaches this size, but not before it has 64 KiB.
    encoding, column_encoding : mapping
        See `FileWriter`.
    zone_index : str, optional
        See `FileWriter`.
    batch_rows : sequence of int
        See `LegacyFileWriter`.
    """

    version: FileVersion
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE
    encoding: Mapping[str, Any] = field(default_factory=dict)
    column_encoding: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    zone_index: str | None = None
    batch_rows: Sequence[int] = ()

    @property
    def has_checksums(self) -> bool:
        """True if the data files have checksums, as all but those of format 0.1 have."""
        return not self.version.has_page_table

    def open_writer(self, sink: RangeWriter, schema: Schema, name: str) -> FileWriter | LegacyFileWriter:
        """Return a writer of one data file.

        Parameters
        ----------
        sink : RangeWriter
        schema : Schema
        name : str
            Name of the file.
        """
        if self.version.has_page_table:
            return LegacyFileWriter(sink, schema, self.batch_rows)
        return FileWriter(
            sink,
            schema,
            version=self.version,
            encoding=self.encoding,
            column_encoding=self.column_encoding,
            zone_index=self.zone_index,
            name=name,
        )

    def check_storable(self, schema: Schema) -> None:
        """Raise the errors of the writer for columns that a data file cannot hold, before anything is written."""
        self.open_writer(NullSink(), schema, NullSink.path).abort()


class FragmentWriter:
    """Writes batches into a sequence of data files.

    Parameters
    ----------
    directory : TableDirectory
    schema : Schema
    options : DataFileOptions
    job : str
        The uuid of the write, which the names of its files carry.
    fragment_id : int
        Id of the fragments until they are committed.
    progress : FragmentWriteProgress, optional
        Notified of each fragment.
    """

    def __init__(
        self,
        directory: TableDirectory,
        schema: Schema,
        options: DataFileOptions,
        *,
        job: str,
        fragment_id: int = 0,
        progress: FragmentWriteProgress | None = None,
    ) -> None:
        self._directory = directory
        self._schema = schema
        self._arrow_schema = schema.to_storage()
        self._options = options
        self._max_rows = options.max_rows_per_file
        self._max_bytes = max(options.max_bytes_per_file, _LEAST_BYTES_PER_FILE)
        self._job = job
        self._fragment_id = fragment_id
        self._progress = progress or NoopFragmentWriteProgress()
        self._num_rows = 0
        self._fragments: list[FragmentMetadata] = []
        self._paths: list[str] = []
        self._open: tuple[str, RangeWriter, FileWriter | LegacyFileWriter] | None = None

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows; see `lance_format.table.changes.write.plan.TableWrite.write_fragments`."""
        batch = conform(batch, self._schema, self._arrow_schema, self._num_rows)
        self._num_rows += batch.num_rows
        piece_rows = self._piece_rows(batch)
        row = 0
        while row < batch.num_rows:
            _, sink, writer = self._open or self._start_file()
            num_rows = min(piece_rows, self._max_rows - writer.num_rows, batch.num_rows - row)
            piece = batch.slice(row, num_rows)
            writer.write_batch(piece)
            row += num_rows
            advance(Work.WRITING, num_rows, int(piece.nbytes))
            if writer.num_rows >= self._max_rows or sink.position + writer.buffered_bytes >= self._max_bytes:
                self._finish_file()

    def write_all(self, batches: Iterable[pa.RecordBatch]) -> list[FragmentMetadata]:
        """Write batches, one by one, and return all fragments; after an exception none of the files is left."""
        try:
            for batch in batches:
                self.write_batch(batch)
            return self.finish()
        except BaseException:  # An interrupt must not leave files either.
            self.discard()
            raise

    def finish(self) -> list[FragmentMetadata]:
        """Close the last file, and return all fragments."""
        if self._open is not None:
            self._finish_file()
        return self._fragments

    def discard(self) -> None:
        """Delete all files written so far; failures of the storage are ignored."""
        if self._open is not None:
            _, sink, writer = self._open
            self._open = None
            with contextlib.suppress(StorageError):
                writer.abort()
            with contextlib.suppress(StorageError):
                sink.abort()
        self._directory.store.delete_all(self._paths)

    def _piece_rows(self, batch: pa.RecordBatch) -> int:
        row_bytes = max(int(batch.nbytes) // max(int(batch.num_rows), 1), 1)
        return max(self._max_bytes // _PIECES_PER_FILE // row_bytes, 1)

    def _start_file(self) -> tuple[str, RangeWriter, FileWriter | LegacyFileWriter]:
        name = new_data_file_name(self._job, sealed=self._options.has_checksums)
        path = f"{self._directory.data}/{name}"
        sink = self._directory.store.open_writer(path)
        self._paths.append(path)
        try:
            writer = self._options.open_writer(sink, self._schema, name)
        except BaseException:
            sink.abort()
            raise
        self._open = name, sink, writer
        major, minor = self._options.version.manifest_numbers
        self._progress.begin(FragmentMetadata(self._fragment_id, (DataFile(name, (), (), major, minor, 0),), 0))
        return self._open

    def _finish_file(self) -> None:
        if self._open is None:
            return
        name, sink, writer = self._open
        summary = writer.finish()
        sink.close()
        self._open = None
        major, minor = self._options.version.manifest_numbers
        file = DataFile(name, tuple(summary.field_ids), tuple(summary.column_indices), major, minor, summary.size_bytes)
        self._fragments.append(FragmentMetadata(self._fragment_id, (file,), summary.num_rows))
        self._progress.complete(self._fragments[-1])


def list_data_files(directory: TableDirectory, job: str) -> list[str]:
    """Return the paths of the data files of a write, finished or not.

    Parameters
    ----------
    directory : TableDirectory
    job : str
        The uuid of the write.
    """
    names = sorted(directory.store.list_names(directory.data))
    return [f"{directory.data}/{name}" for name in names if is_data_file_of(name, job)]


def check_new_columns(before: Schema, after: Schema, version: FileVersion) -> None:
    """Refuse columns that a table gets, alone or inside of others, if its data files cannot hold them.

    Parameters
    ----------
    before, after : Schema
        Those of the table. Columns that are the same in both are not checked.
    version : FileVersion
        The version of the data files of the table.

    Raises
    ------
    NotSupportedError, InvalidInputError
        See `layout_of`.
    """
    known = before.by_name()
    new = tuple(field for field in after.fields if field != known.get(field.name))
    layout_of(Schema(new, after.metadata), version)


class NullSink:
    """A `RangeWriter` that discards its bytes."""

    path = "(nowhere)"
    position = 0

    def write(self, data: bytes | memoryview) -> None:
        """See `RangeWriter`."""
        self.position += len(data)

    def close(self) -> None:
        """See `RangeWriter`."""

    def abort(self) -> None:
        """See `RangeWriter`."""
