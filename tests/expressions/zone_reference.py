"""Statistics of zones as one would compute them without haste, and the same made vaguer."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.expressions.zones import ZoneStatistics


def random_sizes(rng: random.Random, num_rows: int, most: int = 40) -> list[int]:
    """Return the sizes of zones, empty ones among them."""
    sizes = []
    while sum(sizes) < num_rows:
        sizes.append(min(rng.randint(0, most), num_rows - sum(sizes)))
    return sizes


def ranks_of(values: pa.Array) -> np.ndarray:
    """Return the place of each value in the order of the type; of null, anything."""
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    return pc.rank(values, "ascending", tiebreaker="dense").to_numpy()


def statistics_of(values: pa.Array, sizes: list[int]) -> ZoneStatistics:
    """Return exact statistics of an array, which may be a dictionary or an extension."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    ranks, valid = ranks_of(values), values.is_valid().to_numpy(zero_copy_only=False)
    least: list[int | None] = []
    greatest: list[int | None] = []
    num_nulls = []
    start = 0
    for size in sizes:
        rows = start + np.flatnonzero(valid[start : start + size])
        least.append(int(rows[ranks[rows].argmin()]) if len(rows) else None)
        greatest.append(int(rows[ranks[rows].argmax()]) if len(rows) else None)
        num_nulls.append(size - len(rows))
        start += size
    lower, upper = (values.take(pa.array(places, pa.int64())) for places in (least, greatest))
    return ZoneStatistics(np.array(sizes, np.int64), np.array(num_nulls, np.int64), lower, upper, exact=True)


def blurred(found: ZoneStatistics, rng: random.Random) -> ZoneStatistics:
    """Return statistics that say less: wider bounds, unknown bounds, unknown counts of nulls."""
    ranks = [ranks_of(bounds) for bounds in (found.lower, found.upper)]
    widest = (int(ranks[0].argmin()), int(ranks[1].argmax()))
    bounds = []
    for array, extreme in zip((found.lower, found.upper), widest, strict=True):
        places = [rng.choices([zone, None, extreme], [8, 1, 1])[0] for zone in range(found.num_zones)]
        bounds.append(array.take(pa.array(places, pa.int64())))
    lower, upper = bounds
    if pa.types.is_string(lower.type):
        lower = pc.if_else(rng.random() < 0.5, lower, pc.utf8_slice_codeunits(lower, 0, 1))
        upper = pc.if_else(rng.random() < 0.5, upper, pc.binary_join_element_wise(upper, "\x01", ""))
    unknown = np.array([rng.random() < 0.2 for _ in range(found.num_zones)], np.bool_)
    num_nulls = np.where(unknown, -1, found.num_nulls)
    return ZoneStatistics(found.num_rows, num_nulls, lower, upper, exact=False)
