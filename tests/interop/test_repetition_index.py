"""Repetition indices of full-zip pages: as few bytes an offset as the page needs, as pylance reads them."""

from pathlib import Path

import lance.file
import pyarrow as pa
import pytest

from lance_format.file import LanceFileReader, LanceFileWriter

_FULL_ZIP = {b"lance-encoding:structural-encoding": b"fullzip"}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize(("value_bytes", "width"), [(243, 1), (244, 2), (65_523, 2), (65_524, 4)])
def test_offsets_take_as_few_bytes_as_the_page_needs(
    tmp_path: Path, value_bytes: int, width: int, version: str
) -> None:
    field = pa.field("x", pa.binary(), nullable=False, metadata=_FULL_ZIP)
    values = pa.array([b"", b"x" * value_bytes, b""], pa.binary())  # Each has a length of 4 bytes before it.
    table = pa.table([values], schema=pa.schema([field]))
    with LanceFileWriter(tmp_path / "a.lance", table.schema, version=version, encoding={"compression": "none"}) as out:
        out.write_batch(table)
    ours = LanceFileReader(tmp_path / "a.lance")
    (page,) = ours.metadata().columns[0].pages
    assert [buffer.size for buffer in page.buffers] == [value_bytes + 12, 4 * width]
    reference = lance.file.LanceFileReader(str(tmp_path / "a.lance"))
    for reader in (ours, reference):
        assert reader.read_all().to_table()["x"].combine_chunks() == values
        assert reader.take_rows([0, 2]).to_table()["x"].to_pylist() == [b"", b""]
        assert reader.read_range(1, 1).to_table()["x"].to_pylist() == [b"x" * value_bytes]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_lists_have_offsets_of_a_byte(tmp_path: Path, version: str) -> None:
    field = pa.field("x", pa.list_(pa.int32()), metadata=_FULL_ZIP)
    values = pa.array([[1, 2], None, [], [3, None], [4]], field.type)
    table = pa.table([values], schema=pa.schema([field]))
    with LanceFileWriter(tmp_path / "a.lance", table.schema, version=version) as out:
        out.write_batch(table)
    ours = LanceFileReader(tmp_path / "a.lance")
    assert ours.metadata().columns[0].pages[0].buffers[1].size == len(values) + 1
    for reader in (ours, lance.file.LanceFileReader(str(tmp_path / "a.lance"))):
        assert reader.read_all().to_table()["x"].combine_chunks() == values
        assert reader.take_rows([1, 3]).to_table()["x"].to_pylist() == [None, [3, None]]
