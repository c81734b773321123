"""`LanceFragment`, the public face of a fragment: reading its rows and preparing changes of them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.row_numbers import distinct
from lance_format.table.batches.given_data import to_table
from lance_format.table.changes.columns.add import merge_fragment_columns
from lance_format.table.changes.columns.column_source import NewColumns
from lance_format.table.changes.columns.join import merge_into_fragment
from lance_format.table.changes.columns.update import update_columns
from lance_format.table.changes.rows.delete import scan_deleted
from lance_format.table.changes.rows.replaced_rows import RowSet, gather, mark_deleted
from lance_format.table.changes.write.adopt_file import adopt_file
from lance_format.table.changes.write.options import WriteKeywords
from lance_format.table.dataset.scan_methods import ScanMethods
from lance_format.table.dataset.schema import LanceSchema
from lance_format.table.dataset.write_fragments import write_fragments
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.progress import FragmentWriteProgress
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import ROW_ID, LiveRows
from lance_format.table.maintenance.validation import uncached, validate_fragment
from lance_format.table.scan.choose import open_scanner
from lance_format.table.scan.options import ScanKeywords, ScanOptions
from lance_format.table.scan.projection import Columns, Filter
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.take import RowSelection, as_row_numbers, take_row_numbers
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.table_version import Draft, TableVersion


@checked_methods
class LanceFragment(ScanMethods):
    """A part of the rows of a table, originally written into one data file. `LanceDataset` makes it.

    Parameters
    ----------
    table : LanceDataset
    metadata : FragmentMetadata or int
        The fragment, or its id.
    """

    def __init__(self, table: OpenTable, metadata: FragmentMetadata | int) -> None:
        if isinstance(metadata, int):
            found = table._table.manifest.fragment(metadata)
            if found is None:
                raise InvalidInputError(f"{table!r} has no fragment {metadata}")
            metadata = found
        self._dataset = table
        self._metadata = metadata

    def __repr__(self) -> str:
        return f"LanceFragment({self._dataset!r}, {self.fragment_id})"

    @property
    def fragment_id(self) -> int:
        """The id of the fragment, unique in the table."""
        return self._metadata.id

    @property
    def metadata(self) -> FragmentMetadata:
        """The manifest's entry of the fragment."""
        return self._metadata

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._dataset.schema

    @property
    def physical_rows(self) -> int:
        """Number of rows in the files, deleted ones included."""
        return self._scan().physical_rows()

    @property
    def num_deletions(self) -> int:
        """Number of deleted rows."""
        return self._scan().num_deletions()

    def deletion_file(self) -> str | None:
        """Return the path of the file that lists the deleted rows, relative to the table; None if there is none."""
        deletion = self._metadata.deletion_file
        return None if deletion is None else deletion.path(self.fragment_id)

    def validate(self) -> None:
        """Check that the fragment's files exist and agree with the manifest; see `LanceDataset.validate`."""
        validate_fragment(uncached(self._dataset._table), self._metadata)

    def data_files(self) -> list[DataFile]:
        """Return the files that hold the columns."""
        return list(self._metadata.files)

    @staticmethod
    def create(
        dataset_uri: str | os.PathLike[str] | OpenTable,
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        *,
        mode: str = "append",
        progress: FragmentWriteProgress | None = None,
        **options: Unpack[WriteKeywords],
    ) -> FragmentMetadata:
        """Write data into one fragment without committing it.

        Parameters
        ----------
        dataset_uri, data, schema, mode, progress, **options
            See `write_fragments`.
        fragment_id : int, optional
            Id of the fragment until the commit assigns another.

        Raises
        ------
        InvalidInputError
            If the data does not make exactly one fragment.
        """
        options.setdefault("max_rows_per_file", 2**32 - 1)
        written = write_fragments(
            data, dataset_uri, schema, mode=mode, progress=progress, fragment_id=fragment_id or 0, **options
        )
        if len(written) != 1:
            raise InvalidInputError(f"the data makes {len(written)} fragments, not one")
        return written[0]

    @staticmethod
    def create_from_file(filename: str, dataset: OpenTable, fragment_id: int = 0) -> FragmentMetadata:
        """Make a fragment from a data file in the directory `data` of a table, without committing it.

        Parameters
        ----------
        filename : str
            Name of the file in that directory.
        dataset : LanceDataset
        fragment_id : int
            Id of the fragment until the commit assigns another.

        Raises
        ------
        SchemaMismatchError
            If the file's columns do not fit the table.
        DatasetNotFoundError
            If the file does not exist.
        """
        return adopt_file(dataset._table, filename, fragment_id)

    def delete(self, predicate: Filter) -> FragmentMetadata | None:
        """Write a deletion file for the rows for which a predicate is true, without committing it.

        Returns
        -------
        FragmentMetadata or None
            For `LanceOperation.Delete`; None if no row is left.
        """
        rows = gather(scan_deleted(self._dataset._table, predicate, [self._metadata]).matching_rows())
        return self._mark_deleted(rows)

    def delete_rows(self, offsets: Iterable[int]) -> FragmentMetadata | None:
        """Write a deletion file for rows by their offsets, without committing it; see `delete`.

        Parameters
        ----------
        offsets : iterable of int
            Offsets among all rows of the files, deleted ones included.
        """
        scan = self._scan()
        positions = distinct(as_row_numbers(list(offsets), scan.physical_rows()))
        rows = RowSet()
        rows.add(LiveRows(scan, np.setdiff1d(positions, scan.deleted_rows()), 0))
        return self._mark_deleted(rows)

    def _mark_deleted(self, rows: RowSet) -> FragmentMetadata | None:
        table = self._dataset._table
        if not len(rows):
            return self._metadata
        with Draft(table, str(uuid.uuid4())) as draft:
            marked = mark_deleted(draft, rows)
        return None if marked.emptied else marked.updated[0]

    def merge_columns(
        self,
        value_func: NewColumns,
        columns: Sequence[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Write a data file with new columns, without committing it; see `LanceDataset.add_columns`.

        Returns
        -------
        tuple of FragmentMetadata and LanceSchema
            For `LanceOperation.Merge`, once all fragments of the table have the columns.
        """
        made, merged = merge_fragment_columns(
            self._dataset._table,
            self._metadata,
            value_func,
            read_columns=columns,
            output_schema=reader_schema,
            batch_size=batch_size,
        )
        return made, LanceSchema(merged)

    def merge(
        self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Write a data file with columns joined by key, without committing it; see `LanceDataset.merge`.

        Parameters
        ----------
        data_obj, schema
            The data; see `write_dataset`. It is read into memory. The last row wins if a key repeats.
        left_on : str
            The key of the fragment: a column, `_rowid` or `_rowaddr`.
        right_on : str, optional
            The key of the data, by default `left_on`.

        Returns
        -------
        tuple of FragmentMetadata and LanceSchema
            For `LanceOperation.Merge`, once all fragments of the table have the columns.
        """
        data = to_table(data_obj, schema)
        right_on = left_on if right_on is None else right_on
        made, merged = merge_into_fragment(self._dataset._table, self._metadata, data, left_on, right_on)
        return made, LanceSchema(merged)

    def update_columns(
        self,
        data_obj: Any,
        left_on: str = ROW_ID,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[FragmentMetadata, list[int]] | tuple[FragmentMetadata, list[int], bytes]:
        """Rewrite some columns with new values in the matched rows, without committing them.

        Parameters
        ----------
        data_obj, schema
            The data; see `write_dataset`. It is read into memory. The last row wins if a key repeats.
        left_on : str
            The key of the fragment: a column, `_rowid` or `_rowaddr`.
        right_on : str, optional
            The key of the data, by default `left_on`. All other columns of the data replace those of the fragment. Rows
            whose key the data lacks keep their values.
        with_offsets : bool
            Whether to return the offsets of the matched rows too, as a portable Roaring bitmap.

        Returns
        -------
        tuple of FragmentMetadata, list of int, and bytes if `with_offsets`
            For `LanceOperation.Update([], [fragment], fields_modified=fields, update_mode="rewrite_columns")`, and its
            `updated_fragment_offsets={fragment.id: offsets}`, from which a table with stable row ids learns the changed
            rows.
        """
        data = to_table(data_obj, schema)
        right_on = left_on if right_on is None else right_on
        made, fields, offsets = update_columns(self._dataset._table, self._metadata, data, left_on, right_on)
        return (made, fields, offsets) if with_offsets else (made, fields)

    def scanner(
        self, columns: Columns | None = None, filter: Filter | None = None, **options: Unpack[ScanKeywords]
    ) -> LanceScanner:
        """Return a scanner of some rows and columns of the fragment; see `LanceDataset.scanner`."""
        return open_scanner(
            self._dataset._table,
            ScanOptions.of({"columns": columns, "filter": filter, **options, "fragments": [self._metadata]}),
        )

    def take(
        self, indices: RowSelection, columns: Columns | None = None, *, blob_handling: str | None = None
    ) -> pa.Table:
        """Read rows by their offset in the fragment; see `LanceDataset.take`."""
        return take_row_numbers(self._dataset._table, indices, columns, [self._metadata], blob_handling=blob_handling)

    def open_session(self, columns: Columns | None = None, with_row_address: bool | None = None) -> FragmentSession:
        """Prepare to take rows of the same columns repeatedly.

        Parameters
        ----------
        columns : sequence of str, or mapping of str to str, optional
            See `LanceDataset.scanner`.
        with_row_address : bool, optional
            Whether to add the column `_rowaddr`.
        """
        return FragmentSession(self._dataset._table, self._metadata, columns, bool(with_row_address))

    def _scan(self) -> FragmentReader:
        table = self._dataset._table
        return table.scan(self._metadata, table.manifest.schema.select([]))


@checked_methods
class FragmentSession:
    """Reader of single rows of a fragment. `LanceFragment.open_session` makes it.

    Parameters
    ----------
    table : TableVersion
    fragment : FragmentMetadata
    columns : sequence of str, or mapping of str to str, optional
    with_row_address : bool
    """

    def __init__(
        self, table: TableVersion, fragment: FragmentMetadata, columns: Columns | None, with_row_address: bool
    ) -> None:
        self._table = table
        self._fragment = fragment
        self._columns = columns
        self._with_row_address = with_row_address

    def take(self, indices: RowSelection) -> pa.Table:
        """Read rows by their offset in the fragment; see `LanceDataset.take`."""
        return take_row_numbers(
            self._table, indices, self._columns, [self._fragment], with_row_address=self._with_row_address
        )
