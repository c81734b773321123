"""Small tables and values for the tests of this directory."""

import itertools
from collections.abc import Callable, Sequence

import pyarrow as pa

import lance_format
from lance_format.checksums import checksum64
from lance_format.datatypes import Schema
from lance_format.object_store import ObjectStore, resolve
from lance_format.proto import table_pb2
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.layout import new_data_file_name
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.transaction.operations import Append, Overwrite
from lance_format.table.transaction.transaction import Transaction
from lance_format.version import STABLE

SCHEMA = pa.schema([pa.field("a", pa.int64()), pa.field("s", pa.string())])


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table({"a": numbers, "s": [f"row {number}" for number in numbers]}, schema=SCHEMA)


def open_store(path: object) -> tuple[ObjectStore, str]:
    return resolve(str(path))


def open_directory(path: object) -> TableDirectory:
    return TableDirectory.at(str(path))


def some_fragment(num_rows: int = 10, fragment_id: int = 0) -> FragmentMetadata:
    file = DataFile(new_data_file_name("0123456789abcdef"), (0, 1), (0, 1), 2, 2, 1000)
    return FragmentMetadata(fragment_id, (file,), num_rows)


def creation(*fragments: FragmentMetadata) -> Transaction:
    return Transaction(0, Overwrite(tuple(fragments), Schema.from_arrow(SCHEMA), STABLE))


def append(read_version: int, *fragments: FragmentMetadata) -> Transaction:
    return Transaction(read_version, Append(tuple(fragments)))


def column(path: object, name: str = "a") -> list[int]:
    values: Sequence[int] = lance_format.dataset(str(path)).to_table([name])[name].to_pylist()
    return sorted(values)


def changed_manifest(data: bytes, change: Callable[[table_pb2.Manifest], object]) -> bytes:
    """Return the content of a manifest's file with another manifest in it."""
    position = int.from_bytes(data[-16:-8], "little")
    message = table_pb2.Manifest.FromString(data[position + 4 : -16])
    change(message)
    body = message.SerializeToString()
    return with_checksum(data[:position] + len(body).to_bytes(4, "little") + body + data[-16:])


def with_checksum(data: bytes) -> bytes:
    """Return the content of a manifest's file with the right checksum if it has any."""
    if data[4:12] != b"LANCESUM":
        return data
    return data[:12] + checksum64(data[20:]).to_bytes(8, "little") + data[20:]


def data_files(path: object) -> list[str]:
    store, root = open_store(path)
    directories = ("data", "_transactions", "_versions", "_deletions")
    return list(itertools.chain(*(sorted(store.list_names(f"{root}/{name}")) for name in directories)))
