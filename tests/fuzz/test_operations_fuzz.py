"""Transactions, index sections, deletion files and manifests that were damaged, or that lie: typed errors only."""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lance_format
from lance_format import CorruptFileError, LanceError, VersionNotFoundError
from lance_format.proto import table_pb2
from lance_format.table.format.index_metadata import parse_index_section, serialize_index_section
from lance_format.table.transaction.conflicts import MATRIX, check_conflict
from lance_format.table.transaction.operations import OtherOperation
from lance_format.table.transaction.transaction import Transaction, parse_transaction, serialize_transaction
from tests.table.builders import changed_manifest, rows
from tests.table.transaction.test_conflicts import OPERATIONS, index

pytestmark = pytest.mark.system

NUM_MUTATIONS = 400


def mutations(data: bytes, seed: int, count: int = NUM_MUTATIONS) -> Iterator[bytes]:
    """Yield data cut anywhere, with bits flipped, bytes put in, taken out and repeated, and random bytes."""
    chosen = random.Random(seed)
    for size in range(len(data)):
        yield data[:size]
    for _ in range(count):
        broken = bytearray(data)
        for _ in range(chosen.choice((1, 1, 2, 8))):
            place = chosen.randrange(len(broken) + 1)
            match chosen.randrange(5):
                case 0 if place < len(broken):
                    broken[place] ^= 1 << chosen.randrange(8)
                case 1:
                    broken[place : place + 1] = bytes([chosen.choice((0, 1, 0x7F, 0x80, 0xFF))])
                case 2:
                    broken[place:place] = chosen.randbytes(chosen.choice((1, 2, 10)))
                case 3:
                    del broken[place : place + chosen.choice((1, 2, 5))]
                case _:
                    broken[place:place] = broken[place : place + chosen.choice((1, 4, 20))]
        yield bytes(broken)
    for _ in range(count // 4):
        yield chosen.randbytes(chosen.randrange(60))


def test_the_operations_are_all_there() -> None:
    assert {name.partition(" ")[0] for name in OPERATIONS} == MATRIX.keys()


@pytest.mark.parametrize("name", OPERATIONS)
def test_transactions(name: str) -> None:
    """An operation that parses can be compared with any other, and serialized again."""
    data = serialize_transaction(Transaction(4, OPERATIONS[name]))
    parsed = 0
    for broken in mutations(data, 1):
        try:
            transaction = parse_transaction(broken, verifies=False)
        except LanceError:
            continue
        parsed += 1
        for own in (OPERATIONS["delete"], OPERATIONS["update_config"], OPERATIONS["create_index"]):
            with contextlib.suppress(LanceError):
                check_conflict(Transaction(4, own), transaction, 5)
        if not isinstance(transaction.operation, OtherOperation):
            assert parse_transaction(serialize_transaction(transaction)) == transaction
            with contextlib.suppress(LanceError):
                check_conflict(transaction, Transaction(4, OPERATIONS["update"]), 5)
    assert parsed > 20


def test_index_sections() -> None:
    data = serialize_index_section((index(), index("j", (1, 2), (1, 2, 70_000)), index("k", (1,), None)))
    parsed = 0
    for broken in mutations(data, 2, 10 * NUM_MUTATIONS):
        with contextlib.suppress(LanceError):
            indices = parse_index_section(broken)
            parsed += 1
            assert [item.covers_any([1, 5]) for item in indices] == [
                item.fragment_ids is None or bool({1, 5} & set(item.fragment_ids)) for item in indices
            ]
            assert parse_index_section(serialize_index_section(indices)) == indices
    assert parsed > NUM_MUTATIONS


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two fragments of 40 and 20 rows, every fourth deleted, with stable row ids."""
    path = tmp_path / "t"
    lance_format.write_dataset(rows(0, 60), path, max_rows_per_file=40, enable_stable_row_ids=True)
    lance_format.dataset(path).delete("a % 4 = 0")
    return path


def manifest_path(table: Path) -> Path:
    return table / "_versions" / "18446744073709551613.manifest"


def read_all(table: Path) -> list[dict[str, Any]]:
    """Read the rows in every way that needs a part of the manifest."""
    opened = lance_format.dataset(table, verify_checksums=False)
    opened.versions()
    taken = opened.take(range(min(opened.count_rows(), 60)))
    found = opened.to_table(["a", "s", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"])
    assert found.select(["a", "s"]) == taken
    return opened.take_rows(found["_rowid"].to_pylist()).to_pylist()


Change = Callable[[table_pb2.Manifest], None]


def change_manifest(table: Path, change: Change) -> None:
    manifest_path(table).write_bytes(changed_manifest(manifest_path(table).read_bytes(), change))


def set_of_fragment(**values: Any) -> Change:
    def change(message: table_pb2.Manifest) -> None:
        for name, value in values.items():
            setattr(message.fragments[0], name, value)

    return change


LIES: dict[str, Change] = {
    "a fragment twice": lambda message: message.fragments.append(message.fragments[0]),
    "another version": lambda message: setattr(message, "version", 3),
    "fewer rows": set_of_fragment(physical_rows=39),
    "more rows": set_of_fragment(physical_rows=41),
    "very many rows": set_of_fragment(physical_rows=2**32),
    "impossibly many rows": set_of_fragment(physical_rows=2**60),
    "rows without number": set_of_fragment(physical_rows=5),
    "a smaller file": lambda message: setattr(message.fragments[0].files[0], "file_size_bytes", 100),
    "a larger file": lambda message: setattr(message.fragments[0].files[0], "file_size_bytes", 10**6),
    "the file of another fragment": lambda message: setattr(
        message.fragments[0].files[0], "path", message.fragments[1].files[0].path
    ),
    "a file elsewhere": lambda message: setattr(message.fragments[0].files[0], "path", "../../etc/passwd"),
    "fewer deletions": lambda message: setattr(message.fragments[0].deletion_file, "num_deleted_rows", 9),
    "more deletions": lambda message: setattr(message.fragments[0].deletion_file, "num_deleted_rows", 11),
    "more deletions than rows": lambda message: setattr(message.fragments[0].deletion_file, "num_deleted_rows", 50),
    "fewer row ids": set_of_fragment(inline_row_ids=b"\x0a\x06\x0a\x04\x08\x00\x10\x05"),
    "no row ids": lambda message: message.fragments[0].ClearField("inline_row_ids"),
    "a broken row id sequence": set_of_fragment(inline_row_ids=b"\x0a\xff\xff"),
    "versions of fewer rows": set_of_fragment(inline_created_at_versions=b"\x0a\x06\x0a\x04\x08\x00\x10\x05"),
    "row ids of another fragment": lambda message: setattr(
        message.fragments[0], "inline_row_ids", message.fragments[1].inline_row_ids
    ),
    "columns beyond the file": lambda message: message.fragments[0].files[0].column_indices.__setitem__(0, 7),
    "one column twice": lambda message: message.fragments[0].files[0].fields.__setitem__(0, 1),
}


@pytest.mark.parametrize("lie", LIES)
def test_manifests_that_lie(table: Path, lie: str) -> None:
    assert len(read_all(table)) == 45
    change_manifest(table, LIES[lie])
    with pytest.raises(CorruptFileError):
        read_all(table)


def test_a_version_that_is_gone(table: Path) -> None:
    with pytest.raises(VersionNotFoundError):
        lance_format.dataset(table, 9)


@pytest.mark.parametrize("num_rows", [60, 30_000], ids=["arrow", "bitmap"])
def test_deletion_files(tmp_path: Path, num_rows: int) -> None:
    """A read gives the manifest's number of rows, or a typed error; without their checksum the rows may be others."""
    path = tmp_path / "t"
    lance_format.write_dataset(rows(0, num_rows), path)
    lance_format.dataset(path).delete("a % 4 = 0")
    (file,) = (path / "_deletions").iterdir()
    whole = file.read_bytes()
    opened = lance_format.dataset(path, verify_checksums=False, metadata_cache_size_bytes=0)
    assert opened.to_table(["a"]).num_rows == num_rows * 3 // 4
    cut = [whole[:size] for size in range(0, len(whole), max(len(whole) // 200, 1))]
    damaged = [*cut, *list(mutations(whole, 3, NUM_MUTATIONS))[len(whole) :]]
    read = 0
    for broken in damaged:
        file.write_bytes(broken)
        with contextlib.suppress(LanceError):
            assert opened.to_table(["a"]).num_rows == num_rows * 3 // 4
            read += 1
    assert read < len(damaged) * 3 // 4
