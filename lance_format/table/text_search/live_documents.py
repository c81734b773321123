"""The rows that the documents of an index are in a version of the table."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from lance_format.datatypes import Schema
from lance_format.kernels.texts.ranked_lists import NO_ROW
from lance_format.lazy_dataclasses import dataclass
from lance_format.row_numbers import distinct
from lance_format.table.format.fragment_list import FragmentList
from lance_format.table.indices.named_rows import lacking_row
from lance_format.table.indices.opening import index_path
from lance_format.table.indices.texts.partition import Partition
from lance_format.table.row_ids.index import row_addresses, split_addresses
from lance_format.table.versions.row_places import find_row_ids
from lance_format.table.versions.table_version import TableVersion

Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class LiveDocuments:
    """The rows of documents.

    Parameters
    ----------
    fragments : FragmentList
        Of the version.
    addresses : uint64[num_documents]
        `NO_ROW` for documents whose row is deleted, or in a fragment that the index does not cover.
    is_ascending : bool
        Whether the addresses of the others ascend.
    """

    fragments: FragmentList
    addresses: Addresses
    is_ascending: bool


def live_documents(table: TableVersion, partition: Partition) -> LiveDocuments:
    """Return the addresses of the documents of a partition, cached.

    Raises
    ------
    CorruptFileError
        If the index names rows that its fragments do not have.
    """
    key = (index_path(table, partition.index, f"part_{partition.number}"), "rows")
    cached = table.cache.of_indices.get(key)
    if isinstance(cached, LiveDocuments) and cached.fragments is table.manifest.fragments:
        return cached
    row_ids = partition.documents.row_ids
    covered = table.manifest.fragments.columns.ids
    covered = covered[np.isin(covered, partition.index.covered_ids())]
    if table.manifest.stable_row_ids:
        addresses = _by_ids(table, row_ids, covered)
    else:
        addresses = _by_addresses(table, partition, covered)
    live = addresses[addresses != NO_ROW]
    found = LiveDocuments(table.manifest.fragments, addresses, bool((live[1:] > live[:-1]).all()))
    table.cache.of_indices.put(key, found, addresses.nbytes)
    return found


def _by_ids(table: TableVersion, row_ids: Addresses, covered: npt.NDArray[np.int64]) -> Addresses:
    fragment_ids, offsets = find_row_ids(table, row_ids)
    there = np.isin(fragment_ids, covered)
    found = np.full(row_ids.size, NO_ROW)
    found[there] = row_addresses(fragment_ids[there], offsets[there])
    return found


def _by_addresses(table: TableVersion, partition: Partition, covered: npt.NDArray[np.int64]) -> Addresses:
    row_ids = partition.documents.row_ids
    found = np.full(row_ids.size, NO_ROW)
    is_sorted = bool((row_ids[1:] >= row_ids[:-1]).all())
    order = np.arange(row_ids.size) if is_sorted else np.argsort(row_ids, kind="stable")
    fragment_ids, offsets = split_addresses(row_ids[order])
    present = distinct(fragment_ids)
    bounds = [*np.searchsorted(fragment_ids, present).tolist(), row_ids.size]
    for number, (start, stop) in zip(present.tolist(), itertools.pairwise(bounds), strict=True):
        fragment = table.manifest.fragment(number) if np.isin(number, covered) else None
        if fragment is None:
            continue
        scan = table.scan(fragment, Schema(()))
        if offsets[stop - 1] >= scan.physical_rows():
            path = index_path(table, partition.index, partition.file_name("docs"))
            raise lacking_row(partition.index, int(offsets[stop - 1]), number, scan.physical_rows(), path)
        mine, deleted = offsets[start:stop], scan.deleted_rows()
        live = ~np.isin(mine, deleted) if deleted.size else np.ones(mine.size, np.bool_)
        places = order[start:stop][live]
        found[places] = row_ids[places]
    return found
