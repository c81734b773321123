"""Folding of characters: every one as pylance folds it."""

from __future__ import annotations

from pathlib import Path

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pyroaring

from lance_format.kernels.texts.trigrams import NUM_TOKENS, gather_trigrams
from lance_format.table.indices.folding import symbols_of_characters


def test_trigrams_around_every_character_are_those_of_pylance(tmp_path: Path) -> None:
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    texts = pa.array([f"0q9{character}9q0" for character in characters])
    table = lance.write_dataset(pa.table({"s": texts}), str(tmp_path), max_rows_per_file=len(texts))
    table.create_scalar_index("s", "NGRAM")
    (file,) = tmp_path.glob("_indices/*/ngram_postings.lance")
    expected = lance.file.LanceFileReader(str(file)).read_all().to_table()
    counts, symbols = np.zeros(NUM_TOKENS, np.int64), symbols_of_characters()
    _, offset_bytes, data_bytes = texts.buffers()
    data, offsets = np.frombuffer(data_bytes, np.uint8), np.frombuffer(offset_bytes, np.int32)[: len(texts) + 1]
    none = np.zeros(0, np.uint32)
    total = gather_trigrams(data, offsets, symbols, 0, NUM_TOKENS, np.full(NUM_TOKENS, -1), counts, none, False)
    out, ends = np.zeros(total, np.uint32), np.cumsum(counts) - counts
    gather_trigrams(data, offsets, symbols, 0, NUM_TOKENS, np.full(NUM_TOKENS, -1), ends, out, True)
    assert sorted(expected["tokens"].to_pylist()) == np.flatnonzero(counts).tolist()
    for token, postings in zip(expected["tokens"].to_pylist(), expected["posting_list"].to_pylist(), strict=True):
        rows = np.frombuffer(pyroaring.BitMap64.deserialize(postings).to_array(), np.uint64)
        assert np.array_equal(rows, out[ends[token] - counts[token] : ends[token]])
