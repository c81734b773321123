"""Rows of parts of indices, which may be more than fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import LanceDataset
from lance_format.table.indices import part_rows
from lance_format.table.indices.kinds import ngram_file
from lance_format.table.indices.texts import text_kind

_ROWS = 4000
_TEXTS = [f"{word} " * 12_000 for word in ("some", "more", "words")]
_ONE_MIB = 1 << 20
_QUESTIONS = {
    "BITMAP": f"text = '{_TEXTS[1]}'",
    "BLOOMFILTER": f"text = '{_TEXTS[1]}'",
    "NGRAM": "contains(text, 'more')",
    "INVERTED": "text LIKE 'more%'",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Return a table with one fragment of 240 MB, which takes few KB in its file."""
    order = np.random.default_rng(0).integers(0, 3, _ROWS)
    texts = pa.array(_TEXTS).take(pa.array(order))
    batch = pa.table({"id": range(_ROWS), "number": order, "text": texts})
    return lance_format.write_dataset(batch, tmp_path_factory.mktemp("large"))


@pytest.mark.parametrize("kind", _QUESTIONS)
def test_a_fragment_may_be_larger_than_memory(table: LanceDataset, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_rows, "_BATCH_ROWS", 50)
    monkeypatch.setattr(ngram_file, "_BYTES_AT_ONCE", _ONE_MIB)
    monkeypatch.setattr(text_kind, "_BYTES_AT_ONCE", _ONE_MIB)
    read, taken = part_rows.read_covered, list[int]()

    def watched(*args: Any, **options: Any) -> Iterator[Any]:
        for step in read(*args, **options):
            taken.append(pa.total_allocated_bytes())
            yield step

    monkeypatch.setattr(part_rows, "read_covered", watched)
    table.create_scalar_index("text", kind, "index")
    assert len(taken) == _ROWS // 50 + 1
    assert max(taken) - min(taken) < 100 * _ONE_MIB
    expected = table.to_table(["id"], filter="number = 1")
    for library in (lance_format, lance):
        assert library.dataset(table.uri).to_table(["id"], filter=_QUESTIONS[kind]).equals(expected)
