"""The reader of a data file: rows and statistics of columns, from the byte ranges that hold them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.arrow_rows import take_rows
from lance_format.byte_io import ByteRange, RangeReader
from lance_format.datatypes import Schema
from lance_format.errors import ChecksumError, CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.expressions.nodes import FieldPath
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file.blobs.payloads import BlobLocation, BlobReader, BlobSource, VerifiedBlobs
from lance_format.file.columns.assembly import merge
from lance_format.file.columns.dictionaries import concat
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.column_metadata import ColumnMetadata, PageMetadata
from lance_format.file.container.footer import MAX_TAIL_BYTES, FileMetadata, TailReader
from lance_format.file.container.legacy_metadata import LegacyMetadata
from lance_format.file.container.locating import Locating, locate
from lance_format.file.container.seal import Seal
from lance_format.file.container.search_cache import Key, SearchCache
from lance_format.file.container.verified_reader import VerifiedReader
from lance_format.file.reading.batches import BatchBuilder, to_batch
from lance_format.file.reading.column_reader import ColumnReader, PageSizes
from lance_format.file.reading.contents import describe_bytes
from lance_format.file.reading.file_end import VERIFIED, FileEnd, Verification, read_end
from lance_format.file.reading.row_range import RangeScan
from lance_format.file.reading.single_rows import alike, take_arrays, take_batches
from lance_format.file.reading.small_files import is_wide, read_wide_file
from lance_format.file.reading.stored_columns import StoredColumns
from lance_format.file.reading.structural_leaf import StructuralLeaf
from lance_format.file.zones.collector import has_order
from lance_format.file.zones.legacy import LegacyZoneReader
from lance_format.file.zones.reading import ZoneReader, ZoneRequest
from lance_format.file.zones.seeds import Seed
from lance_format.version import FileVersion


class FileReader:
    """A data file of any format up to 2.2. Safe to use from several threads.

    Parameters
    ----------
    source : RangeReader
        The bytes; closed with the reader.
    cache : SearchCache, optional
        Shared with readers of other files of the same table. Default: an own cache of the default size.
    blobs : BlobSource, optional
        Source of the payloads of blobs outside of the file.
    tail_bytes : int
        Size of the end of the file that is read first. Metadata before it takes further requests.
    metadata : FileMetadata, optional
        Overrides the metadata at the end of the file; used for the statistics of files of format 0.1.
    verification : Verification, optional
        By default, the checksums of a file that has them are compared.

    Attributes
    ----------
    schema : Schema
        The schema in the file. The manifest of a table may have other names for its fields.
    version : FileVersion
    num_rows : int
    num_columns : int
    seal : Seal or None
        The checksums with which reads are verified.

    Raises
    ------
    ChecksumError
        If the end of the file is not what was written, or that of another file. Reads raise it as well.
    CorruptFileError
        If this is no Lance file, or its end contradicts itself.
    NotSupportedError
        If its version cannot be read.
    """

    def __init__(
        self,
        source: RangeReader,
        cache: SearchCache | None = None,
        blobs: BlobSource | None = None,
        tail_bytes: int = MAX_TAIL_BYTES,
        metadata: FileMetadata | None = None,
        verification: Verification = VERIFIED,
    ) -> None:
        self._cache = SearchCache() if cache is None else cache
        self._file: Key = (source.path, source.size_bytes, *(() if verification.is_wanted else ("unverified",)))
        try:
            if metadata is None:
                end = read_end(source, self._cache, self._file, tail_bytes, verification)
            else:
                end = FileEnd(TailReader(source, b""), metadata, None)
        except (CorruptFileError, NotSupportedError) as error:
            raise locate(error, source.path) from error
        tail, self.metadata = end.tail, end.metadata
        self.seal: Seal | None = end.seal
        self._source = end.source
        if blobs is not None and isinstance(self._source, VerifiedReader):
            blobs = VerifiedBlobs(blobs, self._source)
        self._blobs = BlobReader(self._source, blobs)
        self.schema: Schema = self.metadata.schema
        self.version: FileVersion = self.metadata.version
        self.num_rows: int = self.metadata.num_rows
        self.num_columns: int = self.metadata.num_columns
        self._columns = StoredColumns(self._source, self.metadata, tail, self._cache, self._file)
        self._verified = [reader for reader in (tail.source, self._source) if isinstance(reader, VerifiedReader)]
        for reader in self._verified:
            reader.describe = partial(describe_bytes, self._columns, self.metadata)
        self._zones = self._open_zones(tail)

    @property
    def batch_rows(self) -> tuple[int, ...]:
        """The rows of each batch of a file of format 0.1; others have none."""
        return tuple(self.metadata.batch_rows.tolist()) if isinstance(self.metadata, LegacyMetadata) else ()

    def _open_zones(self, tail: TailReader) -> ZoneReader | LegacyZoneReader:
        if isinstance(self.metadata, LegacyMetadata):
            return LegacyZoneReader(self.metadata, lambda metadata: FileReader(self._source, metadata=metadata))
        return ZoneReader(self.metadata, tail, self._cache, self._file, FileReader, self._columns.load)

    def read(
        self,
        columns: Sequence[ColumnProjection],
        start: int,
        stop: int,
        *,
        batch_size: int,
        batch_bytes: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read a range of rows, batch by batch.

        Parameters
        ----------
        columns : sequence of ColumnProjection
        start, stop : int
            Rows `start <= row < stop`.
        batch_size : int
            Rows of every batch except the last. A batch has fewer if its strings would exceed 2 GiB, if a dictionary
            would have more items than its keys can number, or if the payloads of its blobs exceed some tens of MiB.
        batch_bytes : int, optional
            Approximate maximum size of a batch in memory, as the rows before it suggest. By default any.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        if not 0 <= start <= stop <= self.num_rows or batch_size < 1:
            raise InvalidInputError(
                f"rows {start} to {stop} in batches of {batch_size}: {self._source.path} has {self.num_rows} rows"
            )
        if start == 0 and stop == self.num_rows and is_wide(self._source, self.version, stop, columns):
            rows = read_wide_file(self._source, columns, stop)
            if rows is not None:
                most = batch_size if batch_bytes is None else batch_bytes * stop // max(rows.nbytes, 1)
                size = max(1, min(batch_size, most))
                return (rows.slice(first, size) for first in range(0, stop, size))
        leaves = self.leaves(columns)
        if not self._source.request_shape.reads_ahead and alike(list(itertools.chain(*leaves)), stop - start):
            return take_batches(self._source, self._batches(columns, leaves), np.arange(start, stop), batch_size)
        return RangeScan(
            self._source, self._batches(columns, leaves, start), start, stop, batch_size, batch_bytes
        ).read()

    def take(self, columns: Sequence[ColumnProjection], rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """Read single rows.

        Parameters
        ----------
        columns : sequence of ColumnProjection
        rows : int64[…]
            Ascending; may repeat.

        Raises
        ------
        InvalidInputError
            If a row does not exist, or the rows do not ascend.
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        rows = np.asarray(rows, np.int64)
        self._check_rows(rows)
        fields = [column.field for column in columns]
        stored = [column.stored for column in columns]
        if any(field is not wanted for field, wanted in zip(stored, fields, strict=True)) and not np.diff(rows).all():
            once, positions = np.unique(rows, return_inverse=True)  # No payload is read twice.
            return take_rows(self.take(columns, once), pa.array(positions))
        schema = pa.schema([column.arrow_field for column in columns])
        if not rows.size:
            return to_batch([pa.nulls(0, field.to_arrow_type()) for field in fields], schema, 0)
        leaves = [leaf for found in self.leaves(columns) for leaf in found]
        gathered = iter(take_arrays(self._source, leaves, rows))
        arrays = []
        for column in columns:
            with self._locating(column.field.name):
                array = merge(column.stored, [concat(next(gathered)) for _ in column.leaves])
                arrays.append(self._blobs.load(array, column.stored, column.field))
        return to_batch(arrays, schema, rows.size)

    def take_batches(
        self, columns: Sequence[ColumnProjection], rows: npt.NDArray[np.int64], *, batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        """Read any number of rows, close together or far apart, within bounded memory.

        Parameters
        ----------
        columns : sequence of ColumnProjection
        rows : int64[num_rows]
            Ascending and distinct.
        batch_size : int
            Maximum number of rows per batch.

        Raises
        ------
        InvalidInputError
            If a row does not exist, or the rows do not ascend.
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        self._check_rows(rows)
        return take_batches(self._source, self._batches(columns, self.leaves(columns)), rows, batch_size)

    @property
    def source(self) -> RangeReader:
        """The bytes, verified if there are checksums."""
        return self._source

    def leaves(self, columns: Sequence[ColumnProjection]) -> list[list[ColumnReader]]:
        """Return the readers of the leaves of each column.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        return self._columns.open(columns)

    def has_dictionaries(self, column: ColumnProjection, most_items: int) -> bool:
        """Return whether all pages of a column without children have dictionaries, so that reading these costs least.

        Parameters
        ----------
        column : ColumnProjection
        most_items : int
            Maximum number of items of a page.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        ((leaf,),) = self.leaves([column])
        with self._locating(column.field.name):
            return isinstance(leaf.pages, StructuralLeaf) and leaf.pages.has_dictionaries(most_items)

    def _batches(
        self, columns: Sequence[ColumnProjection], leaves: Sequence[Sequence[ColumnReader]], start: int = 0
    ) -> BatchBuilder:
        return BatchBuilder(columns, leaves, start, self._blobs, self._source.path)

    def _check_rows(self, rows: npt.NDArray[np.int64]) -> None:
        if rows.size and (rows[0] < 0 or rows[-1] >= self.num_rows or (rows[1:] < rows[:-1]).any()):
            raise InvalidInputError(f"rows to take must ascend from 0 to {self.num_rows - 1} in {self._source.path}")

    def locate_blobs(self, column: ColumnProjection, rows: npt.NDArray[np.int64]) -> list[BlobLocation | None]:
        """Return the locations of the blobs of single rows, None for nulls.

        Parameters
        ----------
        column : ColumnProjection
        rows : int64[…]
            Ascending; may repeat.

        Raises
        ------
        InvalidInputError
            If a row does not exist, or the rows do not ascend.
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        described = ColumnProjection(column.stored, column.column_indices)
        descriptions = self.take([described], rows).column(0)
        with self._locating(column.field.name):
            return self._blobs.locate(descriptions)

    def zone_statistics(self, columns: Sequence[ColumnProjection]) -> dict[FieldPath, ZoneStatistics]:
        """Return the zone statistics of the file; a filter uses them to skip rows that cannot match.

        Parameters
        ----------
        columns : sequence of ColumnProjection
            Columns whose leaves' statistics are read.

        Returns
        -------
        dict of Path to ZoneStatistics
            Statistics by the names of the projections, without leaves that have none.

        Raises
        ------
        CorruptFileError
            If the statistics are malformed, or contradict themselves or the file.
        """
        requests = [request for projection in columns for request in self._zone_requests(projection)]
        try:
            return self._zones.read(requests)
        except (CorruptFileError, NotSupportedError) as error:
            raise locate(error, self._source.path) from error

    def seed(self, column: ColumnProjection, rows_per_zone: int) -> Seed | None:
        """Return the seed of a column for zone map indices, None if the file has none with these zones.

        Parameters
        ----------
        column : ColumnProjection
        rows_per_zone : int
            Number of rows per zone of the index.

        Raises
        ------
        CorruptFileError
            If it is malformed, or contradicts itself or the file.
        """
        try:
            found = [self._zones.read_seed(request, rows_per_zone) for request in self._zone_requests(column)]
        except (CorruptFileError, NotSupportedError) as error:
            raise locate(error, self._source.path) from error
        return found[0] if len(found) == 1 else None

    def _zone_requests(self, column: ColumnProjection) -> list[ZoneRequest]:
        """Return requests for the leaves of a column that may have zones."""
        requests = []
        with self._locating(column.field.name):
            for leaf, column_index in column.leaves:
                if not has_order(leaf):
                    continue
                number = self._columns.numbers_of(leaf, column_index, column)[-1]
                if 0 <= number < self.num_columns:
                    path = tuple(part.name for part in leaf.path)
                    requests.append(ZoneRequest(path, number, leaf.arrow_type))
        return requests

    def find_damage(self) -> Iterator[ChecksumError]:
        """Read the whole file, and yield an error per block that is not what was written; none without checksums."""
        if isinstance(self._source, VerifiedReader):
            yield from self._source.find_damage()

    def read_global_buffer(self, index: int) -> bytes:
        """Return a global buffer; 0 is the file descriptor.

        Raises
        ------
        InvalidInputError
            If there is no such buffer.
        """
        if not 0 <= index < len(self.metadata.global_buffers):
            raise InvalidInputError(f"{self._source.path} has no global buffer {index}")
        return self._source.read_ranges([self.metadata.global_buffers[index]])[0]

    def pages(self, column: int) -> list[PageMetadata]:
        """Return the pages of a column, by its number in the file."""
        return self.column(column).pages

    def column(self, number: int) -> ColumnMetadata:
        """Return a column, by its number in the file."""
        return self._columns.load({number: f"number {number}"})[number].column

    def page_sizes(self, columns: Sequence[ColumnProjection]) -> list[PageSizes]:
        """Return the sizes of the pages of some columns per leaf, without payloads of blobs.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        return [leaf.page_sizes for leaves in self._columns.open(columns) for leaf in leaves]

    def extents(self, columns: Sequence[ColumnProjection]) -> list[ByteRange]:
        """Return the ranges of the file that have the pages of some columns, and little else, in whole blocks.

        Raises
        ------
        CorruptFileError, NotSupportedError
            With the file and the column that it is about.
        """
        found = [leaf.extents() for leaves in self._columns.open(columns) for leaf in leaves]
        if None in found:  # Pages refer to buffers anywhere in the file.
            return [ByteRange(0, self._source.size_bytes)]
        wanted = [extent for extents in found if extents is not None for extent in extents]
        verified = self._source if isinstance(self._source, VerifiedReader) else None
        return wanted if verified is None else [verified.blocks_of(extent) for extent in wanted]

    def close(self) -> None:
        """Close the source."""
        self._source.close()
        for reader in self._verified:  # What it refers to refers to it: it would wait for a collection of garbage.
            reader.describe = None

    def _locating(self, column: str) -> Locating:
        return Locating(self._source.path, column)
