"""Files are about as small as those of pylance, whatever the order of the rows, and pylance reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_format.file import LanceFileReader, LanceFileWriter

_ROWS = 20_000
_EXTRA_BYTES = 8 * 1024
"""Statistics of zones and checksums, which pylance does not write."""


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


def _texts(distinct: int, length: int) -> pa.Array:
    """Return texts in random order."""
    letters = _rng().integers(97, 123, (distinct, length), np.uint8)
    items = pa.array([row.tobytes().decode() for row in letters])
    return items.take(pa.array(_rng().integers(0, distinct, _ROWS)))


def _sorted(array: pa.Array) -> pa.Array:
    return array.take(pc.array_sort_indices(array))


def _lists(items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.arange(0, _ROWS + 1, 4, dtype=np.int32)), items)


_CASES: dict[str, Callable[[], pa.Array]] = {
    "few long texts": lambda: _texts(20, 400),
    "few long texts in order": lambda: _sorted(_texts(20, 400)),
    "many long texts": lambda: _texts(1000, 300),
    "different long texts": lambda: _texts(_ROWS, 300),
    "very long texts": lambda: _texts(3, 40_000)[:200],
    "runs of texts": lambda: _sorted(_texts(1000, 12)),
    "pairs of texts": lambda: _sorted(_texts(_ROWS // 2, 40)),
    "two texts": lambda: _texts(2, 3),
    "one text": lambda: _texts(1, 100),
    "lists of long texts": lambda: _lists(_texts(20, 400)),
    "runs of binaries": lambda: _sorted(_texts(100, 300)).cast(pa.large_binary()),
    "integers in order": lambda: pa.array(np.sort(_rng().integers(0, 2**62, 1000)[_rng().integers(0, 1000, _ROWS)])),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("nulls", [False, True], ids=["there", "nulls"])
@pytest.mark.parametrize("name", _CASES)
def test_sizes(name: str, nulls: bool, version: str, tmp_path: Path) -> None:
    array = _CASES[name]()
    if nulls:
        array = pc.if_else(pa.array(_rng().random(len(array)) < 0.3), pa.scalar(None, array.type), array)
    table = pa.table({"c": array})
    with LanceFileWriter(tmp_path / "ours.lance", table.schema, version=version) as writer:
        writer.write_batch(table)
    with lance.file.LanceFileWriter(str(tmp_path / "theirs.lance"), table.schema, version=version) as theirs:
        theirs.write_batch(table)
    assert lance.file.LanceFileReader(str(tmp_path / "ours.lance")).read_all().to_table().equals(table)
    for path in tmp_path.iterdir():
        assert LanceFileReader(path).read_all().to_table().equals(table)
    ours, expected = ((tmp_path / f"{which}.lance").stat().st_size for which in ("ours", "theirs"))
    assert ours < 1.25 * expected + _EXTRA_BYTES
