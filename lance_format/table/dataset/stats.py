"""Statistics of a version of a table, as `LanceDataset.stats` offers them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import map_together
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.indices.coverage import index_stats
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.table_version import TableVersion


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """Size of a field.

    Parameters
    ----------
    id : int
    bytes_on_disk : int
        Bytes of the stored pages; 0 for fields without own pages, and for constant fields.
    """

    id: int
    bytes_on_disk: int


@dataclass(frozen=True, slots=True)
class DataStatistics:
    """Sizes of all fields.

    Parameters
    ----------
    fields : list of FieldStatistics
        In depth-first order.
    """

    fields: list[FieldStatistics]


@checked_methods
class LanceStats:
    """Counts of a version of a table. `LanceDataset.stats` makes it."""

    def __init__(self, dataset: OpenTable) -> None:
        self._dataset = dataset

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict[str, int]:
        """Count deleted rows, fragments, and fragments of fewer rows than `max_rows_per_group`.

        Returns
        -------
        dict
            `num_deleted_rows`, `num_fragments`, `num_small_files`.
        """
        table = self._dataset._table
        nothing = table.manifest.schema.select([])
        scans = [table.scan(fragment, nothing) for fragment in table.manifest.fragments]
        return {
            "num_deleted_rows": sum(scan.num_deletions() for scan in scans),
            "num_fragments": len(scans),
            "num_small_files": sum(scan.physical_rows() < max_rows_per_group for scan in scans),
        }

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Count the fragments and rows that an index covers and does not cover.

        Returns
        -------
        dict
            `index_type`, `name`; `num_indices` and `num_segments`, the number of parts; `indices` and `segments`, a
            description of each part, for zone maps `num_zones` and `rows_per_zone`, for vectors `index_type`, `uuid`,
            `metric_type`, `num_partitions` and `partitions`, each with a `size`; `num_indexed_fragments`,
            `num_indexed_rows`, `num_unindexed_fragments`, `num_unindexed_rows`, without deleted rows;
            `num_indexed_rows_per_delta`, a number per part; `updated_at_timestamp_ms`.

        Raises
        ------
        IndexNotFoundError
            If there is no index of that name.
        """
        return index_stats(self._dataset._table, index_name)

    def data_stats(self) -> DataStatistics:
        """Sum the bytes of each field in the data files, from their metadata.

        Raises
        ------
        DatasetNotFoundError
            If a data file is missing.
        CorruptFileError
            If a data file is malformed.
        """
        table = self._dataset._table
        sizes = _field_sizes(table)
        return DataStatistics([FieldStatistics(node.id, sizes[node.id]) for node in table.manifest.schema.walk()])


def _field_sizes(table: TableVersion) -> Counter[int]:
    """Return the bytes of the pages of each field, by field id."""

    def sizes_in(fragment: FragmentMetadata) -> Counter[int]:
        sizes: Counter[int] = Counter()
        with table.scan(fragment, table.manifest.schema).open() as files:
            for file in fragment.files:
                reader = files.reader(file)
                for field_id, column in zip(file.fields, file.column_indices, strict=False):
                    if field_id >= 0 and column >= 0:
                        sizes[field_id] += sum(buffer.size for page in reader.pages(column) for buffer in page.buffers)
        return sizes

    total: Counter[int] = Counter()
    for sizes in map_together(table.store, sizes_in, table.manifest.fragments):
        total.update(sizes)
    return total
