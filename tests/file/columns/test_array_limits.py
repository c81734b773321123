"""Rows that do not fit into one array come back in several."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_format.errors import NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.file.columns import limits

_LIMIT = 1000


def _values(num_rows: int) -> list[str]:
    return [f"{row:05d}" * (row % 8) for row in range(num_rows)]


_COLUMNS = {
    "strings": pa.array(_values(300)),
    "list of strings": pa.array([[v, None, v] if row % 7 else None for row, v in enumerate(_values(300))]),
    "struct of strings": pa.array([{"s": v} if row % 5 else None for row, v in enumerate(_values(300))]),
    "list of structs": pa.array([[{"s": v, "n": row}] * (row % 3) for row, v in enumerate(_values(300))]),
    "nested lists": pa.array([[[v], [], [v, v]][: row % 4] for row, v in enumerate(_values(300))]),
    "repeated strings": pa.array([[f"{row % 3}" * 30] for row in range(900)]),
    "list of numbers": pa.array([list(range(row % 9)) for row in range(900)]),
    "fixed-size list of structs": pa.array(
        [[{"s": v}, {"s": v}] for v in _values(200)], pa.list_(pa.struct([("s", pa.string())]), 2)
    ),
    "packed structs": pa.array([{"s": v, "n": row} for row, v in enumerate(_values(300))]),
    "map": pa.array([[(row, v)] for row, v in enumerate(_values(300))], pa.map_(pa.int32(), pa.string())),
}


def _longest_reach(array: pa.Array) -> int:
    """Return the highest difference of offsets in an array, however deep."""
    kind = array.type
    if pa.types.is_string(kind):
        return sum(len(value or "") for value in array.to_pylist())
    if pa.types.is_struct(kind):
        return max(_longest_reach(array.field(index)) for index in range(kind.num_fields))
    if pa.types.is_map(kind):
        return max(len(array.keys), _longest_reach(array.items))
    if not pa.types.is_nested(kind):
        return 0
    items = array.flatten()
    return max(0 if pa.types.is_fixed_size_list(kind) else len(items), _longest_reach(items))


@pytest.mark.parametrize("name", _COLUMNS)
def test_batches_hold_what_offsets_reach(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    column = _COLUMNS[name]
    metadata = {"lance-encoding:packed": "true"} if name.startswith("packed") else None
    table = pa.table([column], schema=pa.schema([pa.field("c", column.type, metadata=metadata)]))
    path = tmp_path / "l.lance"
    with LanceFileWriter(path, table.schema, max_page_bytes=5000) as writer:
        writer.write_batch(table)
    monkeypatch.setattr(limits, "MAX_OFFSET", _LIMIT)
    batches = list(LanceFileReader(path).read_all(batch_size=10_000).to_batches())
    assert len(batches) > 1
    for batch in batches:
        batch.validate(full=True)
        assert _longest_reach(batch.column(0)) <= _LIMIT
    assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()


def test_a_row_that_fits_no_array_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"c": [["x" * _LIMIT, "y"]]})
    with LanceFileWriter(tmp_path / "r.lance", table.schema) as writer:
        writer.write_batch(table)
    monkeypatch.setattr(limits, "MAX_OFFSET", _LIMIT)
    with pytest.raises(NotSupportedError, match=r"r\.lance: column 'c\.item': a row has more than 1000 bytes"):
        LanceFileReader(tmp_path / "r.lance").read_all().to_table()
