"""Compilation of kernels ahead of the first query."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.aggregation import Aggregate, FirstRows, GroupOrder, PartialAggregation
from lance_format.array_encodings.value_slices import ValueSlices
from lance_format.compression.dictionary import split
from lance_format.data_block import FixedWidthBlock, VariableWidthBlock
from lance_format.expressions import looked_up
from lance_format.expressions.functions.lists import contains_constant
from lance_format.expressions.functions.patterns import like
from lance_format.expressions.values.choice import choose
from lance_format.expressions.values.order import is_among
from lance_format.masks import filter_values
from lance_format.query import MatchQuery, PhraseQuery
from lance_format.table.dataset.dataset import dataset
from lance_format.table.dataset.write_dataset import write_dataset
from lance_format.table.indices.kinds.id_bitmaps import serialize_ids
from lance_format.table.indices.texts.posting_list import StoredPositions
from lance_format.table.indices.value_order import ascending
from lance_format.table.scan.searches.nearest.best import NearestRows
from lance_format.texts.token_rules import PLAIN
from lance_format.texts.tokenizing import Tokenizer
from lance_format.vectors.clustering import cluster
from lance_format.vectors.codes import ProductCodes, ScalarCodes, no_codes
from lance_format.vectors.graphs import GraphParameters, NeighborGraph, StoredGraph
from lance_format.vectors.metrics import distances_to
from lance_format.vectors.rotated_codes import RotatedCodes, Rotation

_NUM_ROWS = 20_000
_MANY_ITEMS = 2**16 + 1
_VERSIONS = ("2.0", "2.1", "2.2")
_OPTION = "lance-encoding:"
_KEY = {"lance-schema:unenforced-primary-key": "true"}
_NO_DICTIONARY = {"dict-divisor": "1000000000"}

_Column = tuple[pa.Array, dict[str, str]]
"""Values, and options of their encoding."""


def compile_kernels() -> None:
    """Write, scan, filter, take and delete rows of every kind of value, which calls the kernels with all their types.

    Kernels that are compiled already are loaded. On several processors, another process begins with the last ones.
    """
    with tempfile.TemporaryDirectory(prefix="lance-warming-") as directory, _another_process(f"{directory}/backwards"):
        for step in _steps(directory):
            step()


@contextlib.contextmanager
def _another_process(directory: str) -> Iterator[None]:
    """Let another process compile kernels, too, if there is a processor for it. Nothing depends on its success."""
    if (os.cpu_count() or 1) < 2:
        yield
        return
    silent = subprocess.DEVNULL
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "lance_format.warming", directory]
    process = subprocess.Popen(command, env=environment, stdin=silent, stdout=silent, stderr=silent)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _steps(directory: str) -> list[Callable[[], None]]:
    used = [partial(_use, f"{directory}/{version}.lance", version) for version in _VERSIONS]
    return [
        *used,
        partial(_index, f"{directory}/indexed.lance"),
        _unpack,
        _number,
        _filter,
        _aggregate,
        _search,
        _search_texts,
    ]


def _use(path: str, version: str) -> None:
    table = _table(version)
    write_dataset(table, path, data_storage_version=version)
    stored = dataset(path)
    stored.to_table()
    stored.take([5, 17, table.num_rows - 3])
    for apart in (stored, dataset(path, verify_checksums=False)):
        apart.take(list(range(0, table.num_rows, table.num_rows // 40)))
    stored.to_table(filter=f"id > {_NUM_ROWS - 5000} AND id % 3 = 0")
    for column in ("id", "`column 10`"):  # of 64 bits and of 32
        for step in (100, 10_000_000):  # in a set of bits, and in a hash table
            stored.to_table(filter=f"{column} IN ({', '.join(map(str, range(0, 64 * step, step)))})")
    stored.merge_insert("id").when_matched_delete().execute(table.slice(0, 10).select(["id"]))
    new = table.slice(0, 1).set_column(0, table.schema.field(0), pa.array([-1]))
    stored.merge_insert("id").when_not_matched_insert_all().execute(new)
    dataset(path).to_table(limit=10)
    _use_small_files(f"{path}.small", table.slice(0, 400), version)


def _use_small_files(path: str, table: pa.Table, version: str) -> None:
    """Read files whose pages are decoded together, in memory."""
    write_dataset(table, path, data_storage_version=version, max_rows_per_file=table.num_rows // 2)
    dataset(path).to_table()
    dataset(path).to_table([table.schema.names[0]], filter="id % 3 = 0")
    dataset(path).take([5, table.num_rows - 3])


def _unpack() -> None:
    """Unpack values as other writers of format 2.0 pack them."""
    one = np.ones(1, np.int64)
    for data in (np.zeros(16, np.uint8), np.frombuffer(bytes(16), np.uint8)):
        for word_bits in (8, 16, 32, 64):
            ValueSlices(data, one, one, word_bits - 3).join(word_bits)


def _number() -> None:
    """Number more distinct values of a page than two bytes can, whose indices are wider."""
    for bits in (32, 64):
        split(VariableWidthBlock(np.zeros(64, np.uint8), np.arange(5, dtype=f"i{bits // 8}")), _MANY_ITEMS)
    for bits in (32, 64, 128, 192):
        split(FixedWidthBlock(np.zeros(4 * bits // 8, np.uint8), bits, 4), _MANY_ITEMS)


def _filter() -> None:
    """Match texts, and filter numbers of every width by a mask that is true half the time."""
    mask = pa.array(np.arange(_NUM_ROWS) % 2 == 0)
    for bits in (8, 16, 32, 64):
        filter_values(pa.array(np.zeros(_NUM_ROWS, f"u{bits // 8}")), mask)
    for arrow_type in (pa.string(), pa.large_string()):
        like(pa.repeat(pa.scalar("text", arrow_type), _NUM_ROWS), "%ex%", ignore_case=False)
    texts = pa.array([f"text {number}" for number in range(64)])
    is_among(texts, texts)
    keys = pa.array(np.zeros(_NUM_ROWS, np.int16))
    looked_up(pa.DictionaryArray.from_arrays(keys, pa.array([True])))
    contains_constant(pa.array([[1]]), pa.scalar(1))
    for bits in (8, 16, 32, 64):
        choose([mask], [pa.scalar(1, f"int{bits}")], pa.scalar(0, f"int{bits}"))


def _index(path: str) -> None:
    """Make the indices whose files kernels write, and use them."""
    numbers = pa.array(np.arange(64 * 1024))
    for arrow_type in (pa.string(), pa.large_string()):
        ascending(numbers.cast(arrow_type))
    serialize_ids(np.arange(4, dtype=np.uint64))
    texts = pa.array([f"word {number}" for number in range(_NUM_ROWS)])
    stored = write_dataset(pa.table({"text": texts}), path)
    for kind, given in {"BLOOMFILTER": "text = 'word 7'", "NGRAM": "contains(text, 'word')"}.items():
        stored.create_scalar_index("text", kind)
        stored.to_table(filter=given)
    for has_index in (False, True):
        if has_index:
            stored.create_scalar_index("text", "INVERTED", with_position=True)
        for query in (MatchQuery("word 7", "text"), PhraseQuery("word 7", "text")):
            for limit in (None, 1):
                stored.to_table(full_text_query=query, limit=limit)


def _aggregate() -> None:
    """Group rows by numbers and strings, aggregate integers and floating-point numbers, and keep first rows."""
    numbers = pa.array(np.arange(_NUM_ROWS) % 5000)
    keys = {"number": numbers, "text": numbers.cast(pa.string())}
    floats = numbers.cast(pa.float64())
    values = [numbers, floats, numbers.cast(pa.decimal128(30, 0))]
    aggregates = [(function, array) for function in ("sum", "min", "max") for array in values]
    pairs = pa.StructArray.from_arrays([floats, floats], ["x", "y"])
    aggregates += [("variance", floats), ("correlation", pairs), ("value_counts", floats)]
    aggregation = PartialAggregation(
        pa.schema([(name, array.type) for name, array in keys.items()]),
        [Aggregate(str(index), function, array.type) for index, (function, array) in enumerate(aggregates)],
    )
    arguments = [array for _, array in aggregates]
    list(aggregation.add(list(keys.values()), arguments, _NUM_ROWS))
    list(aggregation.finish())
    batch = pa.record_batch(keys)
    for column in keys:
        first = FirstRows(batch.schema, GroupOrder(("number",), column), 1)
        list(first.add(batch))
        list(first.finish())


def _search() -> None:
    """Compute distances of vectors, and of codes as indices have them; find clusters of vectors."""

    def stored(dtype: str) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = pa.array(np.ones(64, dtype)).to_numpy()
        return found.reshape(8, 8)

    for dtype in ("f4", "f8", "u1"):
        query = np.ones(8, dtype)
        for metric in ("hamming",) if dtype == "u1" else ("l2", "cosine", "dot"):
            distances_to(query, stored(dtype), metric)
    query = np.ones(8, np.float32)
    cluster(stored("f4"), 2, 1, np.random.default_rng(0))
    for metric in ("l2", "dot"):
        distances_to(query, np.ones((8, 8), np.float32), metric)
        ScalarCodes(8, metric, 0, 1).measuring(query)(query, stored("u1"))
        for num_bits in (4, 8):
            codebook = np.ones((64 // num_bits, 1 << num_bits, 1), np.float32)
            codes = ProductCodes(codebook.shape[0], metric, num_bits, codebook, is_transposed=True)
            ones = np.ones(codes.dimension, np.float32)
            codes.measuring(ones)(ones, stored("u1").T)
    rotated = RotatedCodes(8, "l2", 2, Rotation.at_random(8, np.random.default_rng(0)))
    rotated.encode(stored("f4"), stored("f4"), np.arange(8))
    rotated.measuring(query)(query, no_codes(rotated))
    NearestRows(1, 0, 1).nearest_of(np.ones(8, np.float32), 1)
    graph = NeighborGraph.built(np.random.default_rng(0).random((100, 4), np.float32), GraphParameters(m=2))
    zeros = np.zeros((100, 4), np.uint8)
    StoredGraph(zeros, graph.level_offsets, graph.vectors, graph.offsets, graph.neighbors, 0).nearest(
        np.zeros((4, 256), np.float32), 2
    )


def _search_texts() -> None:
    """Split texts into words and sequences, and decode positions of files of version 1."""
    texts = pa.array(["an owl", "an emu"])
    stored = [None, pa.py_buffer(np.array([0, 6, 12], np.int32).tobytes()), pa.py_buffer(b"an owlan emu")]
    read = pa.Array.from_buffers(pa.string(), 2, stored)
    for rules in (PLAIN, dataclasses.replace(PLAIN, base_tokenizer="ngram")):
        for given in (texts, read):
            Tokenizer(rules).split(given)
    early = StoredPositions(np.array([1, 0, 0, 0, 0, 0, 0, 0], np.uint8), np.array([0, 4, 8]), np.array([0, 2]))
    early.decode(np.ones(1, np.uint32))


def _table(version: str) -> pa.Table:
    random = np.random.default_rng(0)
    is_null = random.random(_NUM_ROWS) < 0.2
    columns = [*_numbers(random, is_null), *_texts(is_null), *_nested(random, is_null, version)]
    if version == "2.2":
        columns += [(_pairs(pa.array([f"name {number}" for number in range(_NUM_ROWS)])), {"packed": "true"})]
    fields, arrays = [pa.field("id", pa.int64(), nullable=False, metadata=_KEY)], [pa.array(np.arange(_NUM_ROWS))]
    for index, (array, options) in enumerate(columns):
        metadata = {_OPTION + name: value for name, value in options.items()}
        fields.append(pa.field(f"column {index}", array.type, metadata=metadata))
        arrays.append(array)
    return pa.table(arrays, schema=pa.schema(fields))


def _numbers(random: np.random.Generator, is_null: npt.NDArray[np.bool_]) -> Iterator[_Column]:
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        highest = 1 << (np.dtype(name).itemsize * 8 - 2)
        small = random.integers(0, min(highest, 1000), _NUM_ROWS).astype(name)
        few = random.integers(0, highest, 40).astype(name)
        yield pa.array(small), {}
        yield pa.array(small, mask=is_null), {}
        yield pa.array(np.repeat(small[: _NUM_ROWS // 100], 100)), {}
        yield pa.array(np.arange(_NUM_ROWS).astype(name)), {}
        yield pa.array(few[random.integers(0, len(few), _NUM_ROWS)]), {}
    for name in ("f4", "f8"):
        floats = random.random(_NUM_ROWS).astype(name)
        yield pa.array(floats), {}
        yield pa.array(floats, mask=is_null), {}
        yield pa.array(np.round(floats, 2)), {}
        for compression in ("zstd", "lz4"):
            yield pa.array(floats), {"bss": "on", "compression": compression}
    yield pa.array(random.integers(-(10**6), 10**6, _NUM_ROWS)), {}
    yield pa.array(np.arange(_NUM_ROWS), mask=np.arange(_NUM_ROWS) // 700 % 2 == 0), {}
    flags = random.integers(0, 2, _NUM_ROWS).astype(bool)
    yield pa.array(flags), {}
    yield pa.array(flags, mask=is_null), {}
    yield pa.array(np.arange(_NUM_ROWS)).cast(pa.timestamp("us")), {}
    yield pa.array(np.arange(_NUM_ROWS)).cast(pa.decimal128(25, 2)), {}
    yield pa.array(np.arange(_NUM_ROWS)).cast(pa.decimal128(25, 2)).cast(pa.decimal128(15, 2)), {}
    yield pa.nulls(_NUM_ROWS), {}
    yield pa.repeat(7, _NUM_ROWS), {}


def _texts(is_null: npt.NDArray[np.bool_]) -> Iterator[_Column]:
    words = pa.array([f"word {number * 7919 % 5000}" for number in range(_NUM_ROWS)])
    symbols = pa.array([f"https://example.org/{number}/{number * 7919}" for number in range(_NUM_ROWS)])
    long = pa.array(["text " * 400 + str(number) if number % 10 == 0 else None for number in range(_NUM_ROWS)])
    _, offsets, data = symbols.buffers()
    hidden = pa.StringArray.from_buffers(_NUM_ROWS, offsets, data, pa.array(~is_null).buffers()[1])
    for arrow_type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        for texts in (words, symbols, long, hidden):  # the last has bytes where it is null
            yield texts.cast(arrow_type), {}
    for compression in ("zstd", "lz4", "fsst", "none"):
        yield symbols, {"compression": compression, **_NO_DICTIONARY}
    yield symbols, {"structural-encoding": "fullzip"}
    few = pa.array([f"name {number % 30}" for number in range(_NUM_ROWS)])
    yield few, {}
    yield few.dictionary_encode(), {}
    for num_items in (30, 3000):  # whose numbers have one byte, and two
        yield pa.array([f"name {number % num_items}" for number in range(_NUM_ROWS)], mask=is_null), {}


def _nested(random: np.random.Generator, is_null: npt.NDArray[np.bool_], version: str) -> Iterator[_Column]:
    items = pa.array(random.integers(0, 1000, _NUM_ROWS), mask=is_null)
    lists = _lists(items, is_null)
    for array in (lists, lists.cast(pa.large_list(pa.int64())), _lists(lists, is_null)):
        yield array, {}
    missing = None if version == "2.0" else pa.array(np.roll(is_null, 1))  # 2.0 has no null structs
    structs = pa.StructArray.from_arrays([items, lists], ["a", "b"], mask=missing)
    yield structs, {}
    yield _lists(structs, is_null), {}
    yield lists, {"structural-encoding": "fullzip"}
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.random(_NUM_ROWS * 16).astype("f4")), 16)
    yield vectors, {}
    yield vectors, {"structural-encoding": "fullzip"}
    yield pa.FixedSizeListArray.from_arrays(pa.array(random.random(_NUM_ROWS * 3), mask=np.repeat(is_null, 3)), 3), {}
    yield pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(is_null, 4)), 4), {}
    yield _pairs(pa.array(random.random(_NUM_ROWS))), {"packed": "true"}


def _lists(values: pa.Array, is_null: npt.NDArray[np.bool_]) -> pa.ListArray:
    """Return lists of no, one and more values, some of them null."""
    offsets = np.minimum(np.cumsum(np.arange(_NUM_ROWS + 1) % 3), len(values))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=pa.array(is_null))


def _pairs(second: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays([pa.array(np.arange(_NUM_ROWS)), second], ["x", "y"])


if __name__ == "__main__":
    for step in reversed(_steps(sys.argv[1])):
        step()
