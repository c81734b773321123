"""Searches of vectors and of texts, and the making of their indices, against pylance in one process.

    python benchmarks/searches.py [--vectors N] [--dimension N] [--texts N]

Vectors are random, around 200 middles, with 1,000 groups. Texts have ten words of a vocabulary in which every word is
half as frequent as the one before, and then a thousand rare ones. Times are medians in milliseconds, of open tables,
in turns with pylance; each query runs once before. `recall` is the share of the ten nearest rows that a search by the
index finds, on average of 50 queries.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_format

_ROUNDS = 9
_QUERIES = 50


def _vectors(rng: np.random.Generator, count: int, dimension: int) -> pa.Table:
    middles = rng.normal(size=(200, dimension))
    numbers = middles[rng.integers(0, 200, count)] + rng.normal(size=(count, dimension)) / 2
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.astype(np.float32).ravel()), dimension)
    return pa.table({"id": np.arange(count), "v": vectors, "c": rng.integers(0, 1000, count)})


def _texts(rng: np.random.Generator, count: int) -> pa.Table:
    numbers = np.minimum(rng.geometric(0.5, (count, 10)) - 1, 12)
    numbers[:, 0] = np.where(rng.random(count) < 0.05, 13 + rng.integers(0, 1000, count), numbers[:, 0])
    words = np.array([f"word{number}" for number in range(13 + 1000)])
    return pa.table({"id": np.arange(count), "text": [" ".join(row) for row in words[numbers]]})


def _median(*functions: Callable[[], Any]) -> list[float]:
    """Return the median time of each function, which run in turns."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(_ROUNDS):
        for function, found in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            found.append((time.perf_counter() - start) * 1e3)
    return [statistics.median(found) for found in times]


def _compare(title: str, path: Path, **scan: Any) -> None:
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    mine, theirs = _median(lambda: ours.to_table(["id"], **scan), lambda: reference.to_table(["id"], **scan))
    print(f"{title:40} {mine:9.2f} {theirs:9.2f} {mine / theirs:7.2f}")


def _recall(path: Path, queries: Any, **search: Any) -> tuple[float, float]:
    """Return the share of the nearest rows that both libraries find."""
    found = [0, 0]
    for query in queries:
        nearest = {"column": "v", "q": query, "k": 10, **search}
        ours, reference = lance_format.dataset(path), lance.dataset(path)
        exact = set(ours.to_table(["id"], nearest={**nearest, "use_index": False})["id"].to_pylist())
        for place, table in enumerate((ours, reference)):
            found[place] += len(exact & set(table.to_table(["id"], nearest=nearest)["id"].to_pylist()))
    return found[0] / (10 * len(queries)), found[1] / (10 * len(queries))


def _search_vectors(root: Path, rng: np.random.Generator, count: int, dimension: int) -> None:
    path = root / "vectors.lance"
    table = lance_format.write_dataset(_vectors(rng, count, dimension), path, max_rows_per_file=count // 5)
    queries = table.sample(_QUERIES, ["v"])["v"].combine_chunks().values.to_numpy().reshape(_QUERIES, -1) + 0.1
    query = queries[0]
    nearest = {"column": "v", "q": query, "k": 10}
    _compare("exact", path, nearest={**nearest, "use_index": False})
    _compare("exact, cosine", path, nearest={**nearest, "use_index": False, "metric": "cosine"})
    parameters = {"num_partitions": 256, "num_sub_vectors": dimension // 4, "replace": True}
    for library in (lance, lance_format):
        start = time.perf_counter()
        library.dataset(path).create_index("v", "IVF_PQ", **parameters)
        print(f"IVF_PQ made by {library.__name__:25} {(time.perf_counter() - start) * 1e3:9.0f}")
        for search in ({"nprobes": 1}, {"nprobes": 20}, {"nprobes": 20, "refine_factor": 10}):
            ours, reference = _recall(path, queries, **search)
            print(f"  recall with {search}: {ours:.2f}, by pylance {reference:.2f}")
    _compare("IVF_PQ, 1 partition", path, nearest={**nearest, "nprobes": 1})
    _compare("IVF_PQ, 20 partitions", path, nearest={**nearest, "nprobes": 20})
    _compare("IVF_PQ, 20 partitions, refined", path, nearest={**nearest, "nprobes": 20, "refine_factor": 5})
    _compare("IVF_PQ, 1 of 1,000 rows", path, nearest={**nearest, "nprobes": 20}, filter="c = 7", prefilter=True)
    _compare("IVF_PQ, every second row", path, nearest={**nearest, "nprobes": 20}, filter="c < 500", prefilter=True)
    for library in (lance, lance_format):
        start = time.perf_counter()
        library.dataset(path).create_index("v", "IVF_RQ", num_partitions=256, replace=True)
        print(f"IVF_RQ made by {library.__name__:25} {(time.perf_counter() - start) * 1e3:9.0f}")
        ours, reference = _recall(path, queries, nprobes=20)
        print(f"  recall with 20 partitions: {ours:.2f}, by pylance {reference:.2f}")
    _compare("IVF_RQ, 20 partitions", path, nearest={**nearest, "nprobes": 20})


def _search_graphs(root: Path, rng: np.random.Generator, count: int, dimension: int) -> None:
    """Compare indices with graphs, which pylance follows, and whose partitions we read as a whole."""
    path = root / "graphs.lance"
    table = lance_format.write_dataset(_vectors(rng, count, dimension), path)
    queries = table.sample(_QUERIES, ["v"])["v"].combine_chunks().values.to_numpy().reshape(_QUERIES, -1) + 0.1
    for library in (lance, lance_format):
        start = time.perf_counter()
        library.dataset(path).create_index("v", "IVF_HNSW_SQ", num_partitions=4, replace=True)
        print(f"IVF_HNSW_SQ made by {library.__name__:20} {(time.perf_counter() - start) * 1e3:9.0f}")
        for search in ({"nprobes": 4}, {"nprobes": 4, "ef": 100}):
            ours, reference = _recall(path, queries, **search)
            print(f"  recall with {search}: {ours:.2f}, by pylance {reference:.2f}")
    _compare("IVF_HNSW_SQ, 4 partitions", path, nearest={"column": "v", "q": queries[0], "k": 10, "nprobes": 4})


def _search_texts(root: Path, rng: np.random.Generator, count: int) -> None:
    path = root / "texts.lance"
    lance_format.write_dataset(_texts(rng, count), path)
    for library in (lance_format, lance):
        start = time.perf_counter()
        library.dataset(path).create_scalar_index("text", "INVERTED", with_position=True)
        print(f"INVERTED made by {library.__name__:23} {(time.perf_counter() - start) * 1e3:9.0f}")
    for title, query in {
        "text, a rare word": "word500",
        "text, a frequent word": "word1",
        "text, five words": "word2 word3 word4 word5 word500",
        "text, a phrase": '"word1 word2"',
    }.items():
        _compare(title, path, full_text_query=query, limit=10)


def main() -> None:
    """Run the searches and print their times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=64)
    parser.add_argument("--texts", type=int, default=500_000)
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    print(f"{'milliseconds':40} {'ours':>9} {'pylance':>9} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as root:
        _search_vectors(Path(root), rng, arguments.vectors, arguments.dimension)
        _search_graphs(Path(root), rng, arguments.vectors // 10, arguments.dimension)
        _search_texts(Path(root), rng, arguments.texts)


if __name__ == "__main__":
    main()
