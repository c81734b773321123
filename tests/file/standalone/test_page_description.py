"""Descriptions of pages add up, for all file versions and shapes of columns."""

from __future__ import annotations

from pathlib import Path

import lance.file
import pyarrow as pa
import pytest

from lance_format.errors import InvalidInputError
from lance_format.file import LanceFileReader, LanceFileWriter

_ROWS = 20_000
_TABLE = pa.table(
    {
        "id": pa.array(range(_ROWS), pa.int64()),
        "name": [f"bird {number % 7}" for number in range(_ROWS)],
        "a.b": pa.array([None] * _ROWS, pa.int32()),
        "place": [{"x": number, "y": [number] * (number % 3)} for number in range(_ROWS)],
        "nested": [[{"a": 1, "b": "z"}] * (number % 2) for number in range(_ROWS)],
        "vector": pa.FixedSizeListArray.from_arrays(pa.array([0.5] * (_ROWS * 4), pa.float32()), 4),
        "kind": pa.array(["a", "b"] * (_ROWS // 2)).dictionary_encode(),
    }
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_the_bytes_of_all_pages_are_those_of_the_columns(tmp_path: Path, version: str) -> None:
    path = tmp_path / "f.lance"
    with LanceFileWriter(path, version=version, max_page_bytes=64 * 1024) as writer:
        writer.write_batch(_TABLE)
    reader = LanceFileReader(path)
    pages = reader.describe_pages()
    by_column: dict[str, list] = {}
    for page in pages:
        by_column.setdefault(page.column, []).append(page)
    statistics = reader.file_statistics().columns
    assert sum(page.size_bytes for page in pages) == sum(column.size_bytes for column in statistics)
    assert [(len(found), sum(page.size_bytes for page in found)) for found in by_column.values() if found] == [
        (column.num_pages, column.size_bytes) for column in statistics
    ]
    for found in by_column.values():
        if found[0].row_offset is not None:
            assert [page.row_offset for page in found] == [
                sum(p.num_rows for p in found[:i]) for i in range(len(found))
            ]
    assert sum(page.plain_bytes for page in by_column["id"]) == _ROWS * 8
    assert len(by_column["id"]) > 1
    assert sum(page.num_zones for page in by_column["id"]) >= 3
    assert {page.num_zones for page in by_column["vector"]} == {None}
    assert "dictionary" in by_column["kind"][0].compression
    assert by_column["place.x"][0].ratio == pytest.approx(
        by_column["place.x"][0].plain_bytes / by_column["place.x"][0].size_bytes
    )
    if version == "2.0":
        assert {page.layout for page in pages} == {"array"}
        assert {page.plain_bytes for page in by_column["place.y.item"]} == {None}
    else:
        assert by_column["a.b"][0].layout == "constant"
        assert by_column["id"][0].layout == "mini-block"


def test_files_of_pylance(tmp_path: Path) -> None:
    path = tmp_path / "f.lance"
    texts = pa.table({"text": ["x" * 5000 + str(number) for number in range(500)], "n": range(500)})
    with lance.file.LanceFileWriter(str(path), texts.schema, version="2.1") as writer:
        writer.write_batch(texts)
    pages = LanceFileReader(path).describe_pages()
    (text,) = (page for page in pages if page.column == "text")
    assert text.layout == "full-zip"
    assert text.plain_bytes == pytest.approx(texts["text"].nbytes, rel=0.01)


def test_columns_are_chosen_by_paths(tmp_path: Path) -> None:
    path = tmp_path / "f.lance"
    with LanceFileWriter(path) as writer:
        writer.write_batch(_TABLE.slice(0, 10))
    reader = LanceFileReader(path)
    assert [page.column for page in reader.describe_pages(["place"], read_values=False)] == ["place.x", "place.y.item"]
    assert [page.column for page in reader.describe_pages(["nested.item.b", "id"])] == ["id", "nested.item.b"]
    with pytest.raises(InvalidInputError, match=r"no column 'plac'; its columns are a\.b, id"):
        reader.describe_pages(["plac"])
