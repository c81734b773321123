"""ZONEMAP indices: their metadata in manifests, and their zones.

An index covers one column, and consists of one or several parts with a file each. A part covers the fragments of its
bitmap. Zones of other fragments in its file are obsolete.
"""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from lance_format.errors import NotSupportedError
from lance_format.file import ROWS_PER_ZONE
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.row_numbers import distinct
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.named_rows import NamedRows
from lance_format.table.indices.opening import index_path, naming, opening
from lance_format.table.indices.row_finder import UnusableError
from lance_format.table.indices.zones.zone_map import Located, ZoneNumbers, Zones, fragments_in_order
from lance_format.table.indices.zones.zone_map_file import ZONE_MAP_FILE, TooLargeError, ZoneMapFile
from lance_format.table.versions.table_version import TableVersion

ZONE_MAP = "ZoneMap"
"""Their type in `list_indices`."""

_LOGGER = logging.getLogger(__name__)
_DETAILS = "ZoneMapIndexDetails"
_INDEX_VERSION = 0
_MAX_BYTES = 1 << 30
_STALE_ZONES = 16
_SPARE_ZONES = 65_536
"""An index may have this many times the zones that its fragments need, plus a constant."""


@dataclass(frozen=True, slots=True)
class ZoneMapDetails:
    """Parameters of an index.

    Parameters
    ----------
    rows_per_zone : int
        Maximum number of rows per zone, deleted ones excluded.
    use_seeds : bool
        Whether pylance stores zones of new rows in its data files.
    """

    rows_per_zone: int = ROWS_PER_ZONE
    use_seeds: bool = False

    @classmethod
    def parse(cls, index: IndexMetadata) -> ZoneMapDetails | None:
        """Return the details of an index; None if it is of another kind, or of an unknown form."""
        if index.type_url.rpartition(".")[2].rpartition("/")[2] != _DETAILS or len(index.fields) != 1:
            return None
        message = table_pb2.ZoneMapIndexDetails()
        try:
            message.ParseFromString(index.message.index_details.value)
        except DecodeError:
            _LOGGER.info("index %r is not used: its details are malformed", index.name)
            return None
        known = table_pb2.ZoneMapIndexDetails()
        known.CopyFrom(message)
        known.DiscardUnknownFields()
        if known.ByteSize() != message.ByteSize() or index.message.index_version > _INDEX_VERSION:
            _LOGGER.info("index %r is not used: a newer release has written it", index.name)
            return None
        return cls(message.rows_per_zone or ROWS_PER_ZONE, message.use_seeds)

    def serialize(self, *, knows_null_rows: bool) -> tuple[str, bytes]:
        """Return the name and the bytes of their protobuf.

        Parameters
        ----------
        knows_null_rows : bool
            Whether the file has the null rows.
        """
        message = table_pb2.ZoneMapIndexDetails(
            rows_per_zone=self.rows_per_zone, use_seeds=self.use_seeds, has_null_bitmap=knows_null_rows
        )
        return f"lance.table.{_DETAILS}", message.SerializeToString(deterministic=True)


@dataclass(frozen=True, slots=True, eq=False)
class LoadedZones:
    """Content of the file of a part of an index.

    Parameters
    ----------
    zones : Zones
        By fragment and first row; also those of fragments that the part does not cover.
    placed : bool
        See `fragments_in_order`.
    """

    zones: Zones
    placed: bool

    def of(self, table: TableVersion, index: IndexMetadata) -> Zones:
        """Return the zones of the fragments that the part covers and whose zones are reliable."""
        zones = self.zones.of_fragments(_covered_ids(table, index))
        sure = located_fragments(table, index, zones, placed=self.placed)
        return zones if sure.size == distinct(zones.fragment_ids).size else zones.of_fragments(sure)


def located_fragments(table: TableVersion, index: IndexMetadata, zones: Located, *, placed: bool) -> ZoneNumbers:
    """Return the fragments whose zones certainly locate their values; see `fragments_in_order`.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata
    zones : Located
        In order, of fragments that the index covers.
    placed : bool
    """
    columns = table.manifest.fragments.columns
    positions = np.flatnonzero(np.isin(columns.ids, index.covered_ids()))
    facts = (columns.ids[positions], columns.physical_rows[positions], columns.num_deleted_rows[positions])
    sure = fragments_in_order(zones, *facts, placed=placed)
    num_ignored = distinct(zones.fragment_ids).size - sure.size
    if num_ignored:
        _LOGGER.info("index %r is not used for %d fragments: its zones are not theirs", index.name, num_ignored)
    return sure


def _covered_ids(table: TableVersion, index: IndexMetadata) -> ZoneNumbers:
    ids = table.manifest.fragments.columns.ids
    return ids[np.isin(ids, index.covered_ids())]


def open_zone_map(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> ZoneMapFile:
    """Open the file of a part of an index.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata
    value_type : pa.DataType
        The type of the column.

    Raises
    ------
    CorruptFileError
        If the file is malformed, or of a column of another type.
    NotSupportedError
        If its format version cannot be read.
    DatasetNotFoundError
        If it is missing.
    """
    with opening(table, index, ZONE_MAP_FILE) as (source, verification):
        return ZoneMapFile(source, value_type, verification)


def load_zones(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> LoadedZones | None:
    """Return the zones of a part of an index, cached; None if unusable. See `open_zone_map`.

    Raises
    ------
    CorruptFileError
        If its file is malformed, or of a column of another type.
    DatasetNotFoundError
        If its file is missing.
    """
    key = (index_path(table, index, ZONE_MAP_FILE), "zones")
    found = table.cache.of_indices.get(key)
    if isinstance(found, LoadedZones) and found.zones.lower.type == value_type:
        return found
    details = ZoneMapDetails.parse(index)
    if details is None:
        return None
    try:
        with naming(index), open_zone_map(table, index, value_type) as file:
            loaded = LoadedZones(
                file.read_zones(_most_zones(table, file.rows_per_zone), _MAX_BYTES), file.knows_null_rows
            )
    except (NotSupportedError, TooLargeError) as error:
        _LOGGER.info("index %r is not used: %s", index.name, error)
        return None
    table.cache.of_indices.put(key, loaded, loaded.zones.size_bytes)
    return loaded


def check_part(table: TableVersion, index: IndexMetadata, value_type: pa.DataType) -> None:
    """See `CheckPart`."""
    if ZoneMapDetails.parse(index) is None:
        raise UnusableError("it is of an unknown form")
    with open_zone_map(table, index, value_type) as file:
        try:
            zones = file.read_zones(_most_zones(table, file.rows_per_zone), _MAX_BYTES)
        except TooLargeError as error:
            raise UnusableError(f"it has {error}") from error
        file.read_null_rows()
        if file.knows_null_rows:  # Early releases do not, and have zones that are not used, in the place of others.
            rows, path = NamedRows(table, index, by_id=False), index_path(table, index, ZONE_MAP_FILE)
            rows.check_places(zones.fragment_ids, zones.starts + zones.lengths - 1, path)


def _most_zones(table: TableVersion, rows_per_zone: int) -> int:
    """Return an upper bound of the zones in an index of a table; zones of former fragments stay in it."""
    columns = table.manifest.fragments.columns
    needed = int((1 + columns.physical_rows // max(rows_per_zone, 1)).sum())
    return _STALE_ZONES * needed + _SPARE_ZONES
