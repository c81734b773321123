"""The sizes of files that are written by this library and by pylance, of many kinds of columns.

    python benchmarks/sizes.py [--rows N]

Each kind is written in random order and sorted, without nulls and with three of ten, in 2.0, 2.1 and 2.2. The ratios
(ours / pylance's) include statistics of zones and checksums, which only our files have.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.file import LanceFileWriter

_VERSIONS = ("2.0", "2.1", "2.2")
_NULLS = 0.3


def _integers(rng: np.random.Generator, num_rows: int) -> Iterator[tuple[str, np.ndarray]]:
    yield "random", rng.integers(0, 2**62, num_rows)
    yield "up to 100", rng.integers(0, 100, num_rows)
    yield "of 50", rng.integers(0, 2**62, 50)[rng.integers(0, 50, num_rows)]
    yield "of 5,000", rng.integers(0, 2**62, 5000)[rng.integers(0, 5000, num_rows)]
    yield "skewed", (rng.pareto(1, num_rows) * 10).astype(np.int64)
    yield "times", 1_700_000_000_000_000 + np.cumsum(rng.integers(0, 1000, num_rows))
    yield "equal", np.full(num_rows, 7)


def _numbers(rng: np.random.Generator, num_rows: int) -> Iterator[tuple[str, pa.Array]]:
    for name, values in _integers(rng, num_rows):
        for dtype in ("int8", "int16", "int32", "int64", "uint64", "float32", "float64"):
            yield f"{dtype}, {name}", pa.array(values.astype(dtype))
        yield f"strings of digits, {name}", pa.array(values).cast(pa.string())
        yield f"booleans, {name}", pa.array((values & 1).astype(np.bool_))
        yield f"decimals, {name}", pa.array(values % 10**12).cast(pa.decimal128(21, 2))
    yield "float64, normal", pa.array(rng.normal(size=num_rows))
    yield "float64, of two decimals", pa.array(np.round(rng.random(num_rows) * 1000, 2))
    vectors = rng.random(num_rows // 10 * 128, np.float32)
    yield "vectors", pa.FixedSizeListArray.from_arrays(pa.array(vectors), 128)


def _texts(rng: np.random.Generator, num_rows: int) -> Iterator[tuple[str, pa.Array]]:
    for length in (3, 12, 40, 130, 250, 400):
        for distinct in (2, 50, 5000, num_rows // 2):
            letters = rng.integers(97, 123, (distinct, length), np.uint8)
            items = pa.array([row.tobytes().decode() for row in letters])
            texts = items.take(pa.array(rng.integers(0, distinct, num_rows)))
            yield f"{distinct:,} texts of {length} letters", texts
            if length in (12, 400) and distinct == 50:
                offsets = pa.array(np.arange(0, num_rows + 1, 4, dtype=np.int32))
                yield f"lists of {distinct:,} texts of {length} letters", pa.ListArray.from_arrays(offsets, texts)
    yield (
        "addresses",
        pa.array([f"https://example.com/{row % 977}/item?session={row * 7919}" for row in range(num_rows)]),
    )


def _variants(name: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield the rows of an array as they are and sorted, with nulls and without."""
    orders = [(name, array)]
    if not pa.types.is_nested(array.type):
        orders.append((f"{name}, sorted", array.take(pc.array_sort_indices(array))))
    for order, found in orders:
        yield order, found
        is_null = pa.array(np.random.default_rng(1).random(len(found)) < _NULLS)
        yield f"{order}, with nulls", pc.if_else(is_null, pa.scalar(None, found.type), found)


def _sizes(array: pa.Array, version: str, folder: Path) -> tuple[int, int]:
    """Write an array by both libraries; return the sizes of the files, ours first."""
    table = pa.table({"c": array})
    ours, theirs = folder / "ours.lance", folder / "theirs.lance"
    with LanceFileWriter(ours, table.schema, version=version) as writer:
        writer.write_batch(table)
    with lance.file.LanceFileWriter(str(theirs), table.schema, version=version) as other:
        other.write_batch(table)
    return ours.stat().st_size, theirs.stat().st_size


def main() -> None:
    """Print the ratios of each version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    num_rows = parser.parse_args().rows
    rng = np.random.default_rng(7)
    found: dict[str, list[tuple[float, str, int, int]]] = {version: [] for version in _VERSIONS}
    with tempfile.TemporaryDirectory() as folder:
        for kind, array in [*_numbers(rng, num_rows), *_texts(rng, num_rows)]:
            for name, rows in _variants(kind, array):
                for version, sizes in found.items():
                    ours, theirs = _sizes(rows, version, Path(folder))
                    sizes.append((ours / theirs, name, ours, theirs))
    for version, sizes in found.items():
        mean = math.exp(sum(math.log(ratio) for ratio, *_ in sizes) / len(sizes))
        large = sorted(size for size in sizes if size[2] > size[3] + 16 * 1024)
        print(f"{version}: {len(sizes)} kinds, geometric mean {mean:.2f}; larger by more than 16 KiB:")
        for ratio, name, ours, theirs in reversed(large):
            print(f"  {ratio:6.2f}  {name}: {ours:,} and {theirs:,} bytes")


if __name__ == "__main__":
    main()
