"""Data files: the container, and rows in and out of it."""

from lance_format.file.blobs.arrays import as_given, payload_sizes
from lance_format.file.blobs.blob_file import BlobFile
from lance_format.file.blobs.payloads import StoredBlobs
from lance_format.file.columns.field_paths import project, prune
from lance_format.file.columns.indices import column_indices, is_packed
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.footer import MAX_TAIL_BYTES
from lance_format.file.container.held_source import HeldSource
from lance_format.file.container.recovered_sums import RecoveringStore
from lance_format.file.container.removable_source import RemovableSource
from lance_format.file.container.search_cache import DEFAULT_CACHE_BYTES, INDEX_SHARE, SearchCache
from lance_format.file.container.verified_reader import CHECKSUM_REMEDY
from lance_format.file.container.zone_entries import check_zone_index, names_zones, without_zones
from lance_format.file.reading.column_reader import PageSizes
from lance_format.file.reading.file_end import Verification
from lance_format.file.reading.joined_files import take_joined
from lance_format.file.reading.reader import FileReader
from lance_format.file.reading.small_files import (
    MOST_ROWS,
    SmallFile,
    can_read_together,
    most_wide_bytes,
    read_small_files,
)
from lance_format.file.standalone.file_metadata import (
    LanceBufferDescriptor,
    LanceColumnMetadata,
    LanceFileMetadata,
    LancePageMetadata,
)
from lance_format.file.standalone.lance_file import (
    LanceFileReader,
    LanceFileWriter,
    ReaderResults,
    stable_version,
)
from lance_format.file.standalone.page_description import PageDescription, describe_encoding
from lance_format.file.standalone.session import LanceFileSession, ListResult
from lance_format.file.writing.encoding_requests import check_requests
from lance_format.file.writing.legacy_writer import LegacyFileWriter
from lance_format.file.writing.writer import FileSummary, FileWriter
from lance_format.file.zones.collector import ROWS_PER_ZONE
from lance_format.file.zones.seeds import Seed

__all__ = [
    "CHECKSUM_REMEDY",
    "BlobFile",
    "DEFAULT_CACHE_BYTES",
    "INDEX_SHARE",
    "ROWS_PER_ZONE",
    "MAX_TAIL_BYTES",
    "MOST_ROWS",
    "HeldSource",
    "ColumnProjection",
    "FileReader",
    "FileSummary",
    "FileWriter",
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileSession",
    "LanceFileWriter",
    "LancePageMetadata",
    "LegacyFileWriter",
    "ListResult",
    "ReaderResults",
    "PageDescription",
    "PageSizes",
    "RecoveringStore",
    "RemovableSource",
    "SearchCache",
    "Seed",
    "SmallFile",
    "StoredBlobs",
    "Verification",
    "as_given",
    "can_read_together",
    "check_requests",
    "describe_encoding",
    "check_zone_index",
    "column_indices",
    "is_packed",
    "most_wide_bytes",
    "names_zones",
    "payload_sizes",
    "project",
    "prune",
    "read_small_files",
    "stable_version",
    "take_joined",
    "without_zones",
]
