"""Exact search: the distances of all rows, or of some, are computed."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import numpy.typing as npt

from lance_format.table.fragments.row_columns import LiveRows, addresses_of
from lance_format.table.row_ids.index import split_addresses
from lance_format.table.scan.joined_rows import by_fragment
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.projection import plan_projection
from lance_format.table.scan.scanned_fragment import Window
from lance_format.table.scan.scanner import LanceScanner
from lance_format.table.scan.searches.nearest.best import Hits, NearestRows
from lance_format.table.scan.searches.nearest.query import Nearest
from lance_format.table.scan.searches.ranked import Addresses
from lance_format.table.scan.take import take_found
from lance_format.table.scan.tasks import ScanTask
from lance_format.table.versions.table_version import TableVersion


class VectorScanner(LanceScanner):
    """A scanner of the column of vectors.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
        The filter and the fragments are used.
    column : str
    """

    def __init__(self, table: TableVersion, options: ScanOptions, column: str) -> None:
        super().__init__(table, vectors_only(options, column))

    def search(self, nearest: Nearest, metric: str, task: ScanTask | None = None) -> list[Hits]:
        """Return the nearest rows of each query.

        Parameters
        ----------
        nearest : Nearest
        metric : str
        task : ScanTask, optional
            The rows to choose from; by default all.
        """
        best = [NearestRows.of(nearest) for _ in range(nearest.num_searches)]
        window = Window()
        meter = self._meter(window, task)
        with self._reporting(meter):
            ranges = self._whole() if task is None else self._ranges_of(task)
            for batch, rows in by_fragment(self._read_fragments(ranges, window, meter)):
                vectors = self._projection.apply(batch).column(0)
                for found, distances in zip(best, nearest.distances(vectors, metric), strict=True):
                    found.add(distances, partial(_located, rows))
        return [found.hits for found in best]


def vectors_only(options: ScanOptions, column: str) -> ScanOptions:
    """Return the options of a scan of the column of vectors alone."""
    return dataclasses.replace(
        options,
        columns=[column],
        limit=None,
        offset=0,
        with_row_id=False,
        with_row_address=False,
        blob_handling=None,
        order_by=(),
        nearest=None,
    )


def measure(table: TableVersion, nearest: Nearest, query: int, metric: str, addresses: Addresses) -> Hits:
    """Return the nearest of some rows, which exist, by their exact distances.

    Parameters
    ----------
    table : TableVersion
    nearest : Nearest
    query : int
        The number of the query.
    metric : str
    addresses : uint64[num_rows]
    """
    best = NearestRows.of(nearest)
    if addresses.size:
        addresses = np.sort(addresses)
        projection = plan_projection(table.manifest.schema, [nearest.column])
        vectors = take_found(table, projection, *split_addresses(addresses)).column(0)
        start = 0
        for chunk in vectors.chunks:
            best.add(nearest.distances(chunk, metric)[query], addresses[start : start + len(chunk)].__getitem__)
            start += len(chunk)
    return best.hits


def _located(rows: LiveRows, chosen: npt.NDArray[np.int64]) -> Addresses:
    return addresses_of(rows)[chosen]
