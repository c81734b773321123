"""The zones of a file that is being written, in all stored forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from lance_format.file.container.zone_entries import SEED_PREFIX, STATISTICS_KEY
from lance_format.file.zones.collector import LeafZones
from lance_format.file.zones.index import serialize_zone_index
from lance_format.file.zones.seeds import serialize_seed
from lance_format.file.zones.statistics_file import serialize_zones

_WORTHWHILE_BYTES = 64 * 1024


def stored_zones(
    leaves: list[LeafZones], size_bytes: int, write: Callable[[pa.RecordBatch], bytes]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the stored forms of the zones of a file, each with its key in the metadata.

    Columns that have a seed need no other form: readers prefer it, and the embedded file costs some pages per column.
    Files of a single zone have none, unless they have 64 KiB or more per column with zones: values that cost as much to
    read as their statistics are better read. Columns whose zones exclude no value have none either.

    Parameters
    ----------
    leaves : list of LeafZones
    size_bytes : int
        Size of all pages of the file.
    write : callable
        Makes a Lance file from a batch.
    """
    others: list[LeafZones] = []
    for zones in _worthwhile(leaves, size_bytes):
        seed = serialize_seed(zones)
        if seed is None:
            others.append(zones)
        else:
            yield SEED_PREFIX + zones.leaf.name.encode(), seed
    if others:
        yield STATISTICS_KEY, serialize_zones(others, write)


def stored_zone_indices(
    leaves: list[LeafZones], size_bytes: int, write: Callable[[pa.RecordBatch], bytes]
) -> Iterator[tuple[int, bytes]]:
    """Yield the zone index of each column, with the id of its field; see `stored_zones`.

    Parameters
    ----------
    leaves, size_bytes
        See `stored_zones`.
    write : callable
        Makes a Lance file of format 2.0 of a batch.
    """
    for zones in _worthwhile(leaves, size_bytes):
        yield zones.leaf.field.id, serialize_zone_index(zones, write)


def _worthwhile(leaves: list[LeafZones], size_bytes: int) -> list[LeafZones]:
    num_zones = len(leaves[0].num_rows) if leaves else 0
    if num_zones == 0 or (num_zones == 1 and size_bytes < _WORTHWHILE_BYTES * len(leaves)):
        return []
    return [zones for zones in leaves if not _excludes_nothing(zones)]


def _excludes_nothing(zones: LeafZones) -> bool:
    """Return whether all zones have both booleans, and no null, so that hardly a filter skips one."""
    if not pa.types.is_boolean(zones.leaf.arrow_type) or any(zones.num_nulls):
        return False
    return not any(zones.lower) and all(zones.upper)
