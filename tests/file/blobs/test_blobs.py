"""Payloads of blobs: reads and writes of a file, blobs as files, and false descriptions."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format.blob_fields import as_bytes, describe
from lance_format.byte_io import FILE_REQUESTS, ByteRange, RangeReader
from lance_format.datatypes import Schema
from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.file import ColumnProjection, FileReader, FileWriter, LanceFileReader, LanceFileWriter, Verification
from lance_format.file.blobs.arrays import DEDICATED, INLINE, PACKED
from lance_format.file.blobs.blob_file import BlobFile
from lance_format.file.blobs.payloads import BlobLocation, BlobReader
from lance_format.object_store.local_files import LocalReader
from tests.blobs import FIELD, payloads, table

_EXTENSION = pa.field(
    "b",
    pa.struct([("data", pa.large_binary()), ("uri", pa.string())]),
    metadata={b"ARROW:extension:name": b"lance.blob.v2"},
)
_V2 = Schema.from_arrow(pa.schema([_EXTENSION])).fields[0]


class _Bytes:
    """A `RangeReader` that records its requests."""

    request_shape = FILE_REQUESTS

    path = "bytes"
    request_shape = FILE_REQUESTS

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size_bytes = len(data)
        self.asked: list[ByteRange] = []
        self.closed = False

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        self.asked += ranges
        return [self.data[wanted.offset : wanted.end] for wanted in ranges]

    def close(self) -> None:
        self.closed = True


class _Files:
    """A `BlobSource` of one sidecar, number 7."""

    def __init__(self, sidecar: RangeReader) -> None:
        self.sidecar = sidecar

    def open_data_file(self) -> RangeReader:
        raise AssertionError

    def open_sidecar(self, blob_id: int) -> RangeReader:
        assert blob_id == 7
        return self.sidecar


def _load(rows: Sequence[tuple[int, int, int] | None], data: RangeReader, sidecar: RangeReader) -> list[bytes | None]:
    """Load blobs described by kind, position and size."""
    described = describe(_V2)
    values = [
        row and {"kind": row[0], "position": row[1], "size": row[2], "blob_id": 7 if row[0] else 0, "blob_uri": ""}
        for row in rows
    ]
    reader = BlobReader(data, _Files(sidecar))
    found: list[bytes | None] = reader.load(
        pa.array(values, described.to_arrow_type()), described, as_bytes(_V2)
    ).to_pylist()
    return found


def test_payloads_of_several_files_in_any_order() -> None:
    data, sidecar = _Bytes(bytes(range(200))), _Bytes(bytes(range(100, 250)))
    rows = [(PACKED, 50, 3), None, (INLINE, 64, 2), (INLINE, 0, 1), (DEDICATED, 0, 2), (INLINE, 0, 0)]
    expected = [bytes([150, 151, 152]), None, bytes([64, 65]), b"\0", bytes([100, 101]), b""]
    assert _load(rows, data, sidecar) == expected
    assert data.asked == [ByteRange(0, 66)]
    assert sidecar.asked == [ByteRange(0, 53)]
    assert sidecar.closed
    assert _load([], data, sidecar) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(INLINE, 0, 201)], "ends after the file"),
        ([(INLINE, 200, 1)], "ends after the file"),
        ([(INLINE, 2**64 - 1, 2)], "ends after the file"),
        ([(INLINE, 2, 2**64 - 1)], "ends after the file"),
        ([(INLINE, 2**63, 2**63)], "ends after the file"),
        ([(PACKED, 149, 2)], "ends after the file"),
        ([(DEDICATED, 0, 2**62)], "ends after the file"),
        ([(INLINE, 0, 10), (INLINE, 9, 1)], "overlap at byte 9"),
        ([(INLINE, 0, 100)] * 2, "overlap at byte 0"),
        ([(PACKED, 3, 100), None, (PACKED, 0, 4)], "overlap at byte 3"),
    ],
)
def test_descriptions_that_lie(rows: list[tuple[int, int, int]], message: str) -> None:
    data, sidecar = _Bytes(bytes(200)), _Bytes(bytes(150))
    with pytest.raises(CorruptFileError, match=message):
        _load(rows, data, sidecar)
    assert not data.asked + sidecar.asked


def test_unknown_kinds_are_refused() -> None:
    for kind, message in ((3, "not followed"), (4, "unknown way 4"), (255, "unknown way 255")):
        with pytest.raises(NotSupportedError, match=message):
            _load([(kind, 0, 1)], _Bytes(b"abc"), _Bytes(b""))


def _overwrite(path: Path, old: tuple[int, int], new: tuple[int, int]) -> None:
    """Replace a position and a size in a file."""
    data = path.read_bytes()
    before = b"".join(number.to_bytes(8, "little") for number in old)
    assert data.count(before) == 1
    path.write_bytes(data.replace(before, b"".join(number.to_bytes(8, "little") for number in new)))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_damaged_tables(version: str, tmp_path: Path) -> None:
    lance_format.write_dataset(table([b"x" * 77, b"y" * 99]), tmp_path / "t", data_storage_version=version)
    (path,) = (tmp_path / "t" / "data").iterdir()
    _overwrite(path, (128, 99), (128, 2**40))
    damaged = lance_format.dataset(tmp_path / "t", verify_checksums=False)
    for read in (
        lambda: damaged.to_table(blob_handling="all_binary"),
        lambda: damaged.take([1], blob_handling="all_binary"),
        lambda: damaged.take_blobs("b", indices=[1]),
    ):
        with pytest.raises(CorruptFileError, match=r"column 'b': a blob of 1099511627776 bytes|a blob of 10995116277"):
            read()
    assert damaged.take([0], blob_handling="all_binary")["b"].to_pylist() == [b"x" * 77]
    (blob,) = damaged.take_blobs("b", indices=[0])
    assert blob is not None
    assert blob.read() == b"x" * 77


def _projection(reader: FileReader) -> list[ColumnProjection]:
    return [ColumnProjection(reader.schema.fields[1], {1: 1})]


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    values = [bytes([row]) * 20_000 for row in range(100)]
    with LanceFileWriter(tmp_path / "f.lance", table(values).schema) as writer:
        writer.write_batch(table(values))
    source = _Bytes((tmp_path / "f.lance").read_bytes())
    reader = FileReader(source, blobs=_Files(source), verification=Verification(is_wanted=False))
    source.asked.clear()
    (batch,) = reader.read(_projection(reader), 40, 42, batch_size=10)
    assert batch.column(0).to_pylist() == values[40:42]
    assert sum(wanted.size for wanted in source.asked if wanted.offset < 100 * 20_000) < 3 * 20_000
    source.asked.clear()
    locations = reader.locate_blobs(_projection(reader)[0], np.array([3, 70]))
    assert all(wanted.offset > 100 * 20_000 for wanted in source.asked)
    blob = BlobFile(BlobLocation(lambda: source, locations[1].extent))  # type: ignore[union-attr]
    source.asked.clear()
    blob.seek(100)
    assert blob.read(7) == bytes([70]) * 7
    assert [wanted.size for wanted in source.asked] == [7]


def test_payloads_are_written_as_they_come(tmp_path: Path) -> None:
    class Sink(io.BytesIO):
        path = "sink"

        @property
        def position(self) -> int:
            return self.tell()

        def abort(self) -> None:
            pass

    for field in (FIELD, _EXTENSION):
        sink = Sink()
        writer = FileWriter(sink, Schema.from_arrow(pa.schema([field])))
        for _ in range(3):
            before = sink.position
            column = pa.array([b"x" * 1_000_000, None, b"y" * 3], pa.large_binary())
            if field is _EXTENSION:
                column = pa.StructArray.from_arrays(
                    [column, pa.nulls(3, pa.string())], fields=list(field.type), mask=column.is_null()
                )
            writer.write_batch(pa.record_batch([column], schema=pa.schema([field])))
            assert sink.position - before >= 1_000_003
            assert writer.buffered_bytes < 1000


@pytest.mark.slow
def test_batches_are_cut_where_payloads_are_large(tmp_path: Path) -> None:
    values = [bytes([row]) * (10 << 20) for row in range(15)]
    lance_format.write_dataset(table(values), tmp_path / "t")
    ours = lance_format.dataset(tmp_path / "t")
    sizes = []
    for row, batch in enumerate(ours.to_batches(blob_handling="all_binary")):
        assert batch.column(1)[0].as_py() == values[sum(sizes)], row
        sizes.append(batch.num_rows)
    assert sizes == [6, 6, 3]
    assert [batch.num_rows for batch in ours.to_batches()] == [15]


@pytest.fixture
def blob(tmp_path: Path) -> Callable[[], BlobFile]:
    path = tmp_path / "bytes"
    path.write_bytes(b"before0123456789after")
    return lambda: BlobFile(BlobLocation(lambda: LocalReader(str(path)), ByteRange(6, 10)))


def test_blob_files(blob: Callable[[], BlobFile]) -> None:
    with blob() as opened:
        assert (opened.size(), opened.tell(), opened.readable(), opened.seekable()) == (10, 0, True, True)
        assert not opened.writable()
        assert repr(opened) == "<BlobFile size=10>"
        assert (opened.read(3), opened.read(0), opened.tell()) == (b"012", b"", 3)
        assert (opened.seek(-2, io.SEEK_END), opened.read(100), opened.read(1)) == (8, b"89", b"")
        assert (opened.seek(100), opened.read(), opened.seek(1), opened.seek(2, io.SEEK_CUR)) == (100, b"", 1, 3)
        assert opened.read_range(9, 1) == b"9"
        assert opened.read_ranges([(4, 2), (0, 0), (0, 1)]) == [b"45", b"", b"0"]
        assert opened.readall() == b"3456789"
        target = bytearray(4)
        opened.seek(7)
        assert (opened.readinto(target), target) == (3, b"789\0")
        for offset, length in ((-1, 1), (0, 11), (10, 1), (0, -1)):
            with pytest.raises(InvalidInputError, match="not within a blob of 10 bytes"):
                opened.read_range(offset, length)
        with pytest.raises(InvalidInputError, match="before the start"):
            opened.seek(-1)
        with pytest.raises(InvalidInputError, match="whence"):
            opened.seek(0, 3)
    opened.close()
    for use in (opened.read, opened.tell, lambda: opened.seek(0), lambda: opened.read_range(0, 1)):
        with pytest.raises(ValueError, match="closed"):
            use()
    assert io.BufferedReader(blob()).readline() == b"0123456789"


def test_what_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance_format.write_dataset(table(payloads(10)), path)
    with pytest.raises(InvalidInputError, match="has descriptions of blobs"):
        lance_format.write_dataset(lance_format.dataset(path).to_table(), tmp_path / "copy")
    nothing = pa.array([{"data": None, "uri": None}], _EXTENSION.type)
    with pytest.raises(InvalidInputError, match="a blob without bytes"):
        lance_format.write_dataset(pa.table([nothing], schema=pa.schema([_EXTENSION])), tmp_path / "n")
    with pytest.raises(NotSupportedError, match="cannot hold"):
        lance_format.write_dataset(
            pa.table([nothing], schema=pa.schema([_EXTENSION])), tmp_path / "n", data_storage_version="2.1"
        )
    for version, outer in (
        ("2.1", pa.list_(FIELD)),
        ("2.2", pa.map_(pa.string(), FIELD)),
        ("2.2", pa.list_(pa.field("i", pa.struct([FIELD])), 2)),
    ):
        with pytest.raises(NotSupportedError, match="blobs within"):
            LanceFileWriter(tmp_path / "f", pa.schema([pa.field("c", outer)]), version=version)
    text = FIELD.with_type(pa.large_string())
    with pytest.raises(InvalidInputError, match="column 'b' is large_string, and the metadata 'lance-encoding:blob'"):
        lance_format.write_dataset({"b": ["not bytes"]}, tmp_path / "s", pa.schema([text]))


def test_structs_that_only_claim_to_be_blobs_are_structs(tmp_path: Path) -> None:
    for number, storage in enumerate(([("data", pa.int32()), ("uri", pa.string())], [("x", pa.int32())])):
        field = _EXTENSION.with_type(pa.struct(storage))
        data = pa.table([pa.array([{storage[0][0]: 1}], field.type)], schema=pa.schema([field]))
        lance_format.write_dataset(data, tmp_path / str(number))
        assert lance_format.dataset(tmp_path / str(number)).to_table().to_pylist() == data.to_pylist()


def test_rows_that_are_not_there(tmp_path: Path) -> None:
    lance_format.write_dataset(table(payloads(10)), tmp_path / "t")
    ours = lance_format.dataset(tmp_path / "t")
    for arguments, message in (
        ({}, "0 of ids"),
        ({"ids": [1], "indices": [1]}, "2 of ids"),
        ({"indices": [10]}, "no row 10"),
        ({"addresses": [10]}, "no row 10"),
        ({"addresses": [0, 1 << 32]}, "no row 4294967296"),
        ({"addresses": [-1]}, "no row id -1"),
        ({"ids": [10]}, "no row 10"),
        ({"ids": ["a"]}, "whole numbers"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            ours.take_blobs("b", **arguments)
    with pytest.raises(InvalidInputError, match="'n' is no column of blobs"):
        ours.take_blobs("n", indices=[0])
    with pytest.raises(InvalidInputError, match="blob_handling is 'binary'"):
        ours.to_table(blob_handling="binary")
    assert ours.take_blobs("b", indices=[]) == []


def test_files_of_the_extension(tmp_path: Path) -> None:
    values = [b"one", None, b""]
    column = pa.array([value if value is None else {"data": value, "uri": None} for value in values], _EXTENSION.type)
    with LanceFileWriter(tmp_path / "f.lance", pa.schema([_EXTENSION])) as writer:
        writer.write_batch(pa.record_batch([column], schema=pa.schema([_EXTENSION])))
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table()["b"].to_pylist() == values
