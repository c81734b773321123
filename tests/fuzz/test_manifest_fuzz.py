"""Manifests and transactions that were cut or flipped: a typed error, or the same rows."""

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import lance_format
from lance_format import LanceError
from lance_format.errors import CorruptFileError
from lance_format.proto import table_pb2
from lance_format.table.format import fragment_list
from lance_format.table.format.manifest_file import parse_manifest
from lance_format.table.transaction.transaction import parse_transaction
from tests.table.builders import changed_manifest, rows

pytestmark = pytest.mark.system

NUM_FLIPS = 2000
NUM_READ = 400
"""Of those, how many of each kind a table is read through; `test_campaign` reads as many as a night allows."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz") / "t"
    lance_format.write_dataset(rows(0, 50), path, max_rows_per_file=20)
    lance_format.write_dataset(rows(50, 60), path, mode="append")
    return path


def manifest_path(table: Path) -> Path:
    return table / "_versions" / "18446744073709551613.manifest"


def flips(data: bytes, seed: int, count: int, bits: tuple[int, ...] = (1, 1, 2, 8)) -> Iterator[bytes]:
    chosen = random.Random(seed)
    for _ in range(count):
        broken = bytearray(data)
        for _ in range(chosen.choice(bits)):
            broken[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
        yield bytes(broken)


def test_manifests_cut_anywhere(table: Path) -> None:
    data = manifest_path(table).read_bytes()
    for size in range(len(data)):
        with pytest.raises(LanceError):
            parse_manifest(data[:size], path="p", version=2, verifies=False)
        with pytest.raises(LanceError):
            parse_manifest(data[size + 1 :], path="p", version=2, verifies=False)


@pytest.fixture(params=["parsed", "scanned"])
def _fragments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse fragments one by one, as in small manifests, or scan them together, as in large ones."""
    if request.param == "scanned":
        monkeypatch.setattr(fragment_list, "_FEW", 0)


def read_through(table: Path, broken: bytes) -> list[int | None] | None:
    """Return the first column as the table shows it through a broken manifest, None for a typed error."""
    try:
        parse_manifest(broken, path="p", version=2, verifies=False)
    except LanceError:
        return None
    path = manifest_path(table)
    whole = path.read_bytes()
    path.write_bytes(broken)
    try:
        opened = lance_format.dataset(table, 2, verify_checksums=False)
        opened.versions()
        first = opened.schema.names[0]
        values: list[int | None] = opened.to_table([first])[first].to_pylist()
    except LanceError:
        return None
    finally:
        path.write_bytes(whole)
    return values


@pytest.mark.usefixtures("_fragments")
def test_manifests_with_one_bit_flipped_lose_no_row(table: Path) -> None:
    """Without its checksum, a flip may rename a column; but no row is lost or found."""
    data = manifest_path(table).read_bytes()
    for broken in flips(data, 4, NUM_READ, (1,)):
        with pytest.raises(LanceError):
            parse_manifest(broken, path="p", version=2)
    results = [read_through(table, broken) for broken in flips(data, 1, NUM_READ, (1,))]
    assert {len(values) for values in results if values is not None} == {60}
    assert results.count(None) > NUM_READ // 4


@pytest.mark.usefixtures("_fragments")
def test_manifests_with_many_bits_flipped(table: Path) -> None:
    for broken in flips(manifest_path(table).read_bytes(), 2, NUM_READ, (2, 8, 30)):
        read_through(table, broken)


@pytest.mark.usefixtures("_fragments")
def test_flipped_manifests_are_parsed_or_refused(table: Path) -> None:
    data = manifest_path(table).read_bytes()
    for broken in [*flips(data, 1, NUM_FLIPS // 2, (1,)), *flips(data, 2, NUM_FLIPS // 2, (2, 8, 30))]:
        with contextlib.suppress(LanceError):
            parse_manifest(broken, path="p", version=2, verifies=False)


def test_manifests_of_random_bytes() -> None:
    chosen = random.Random(2)
    for size in [*range(40), *(chosen.randrange(5000) for _ in range(200))]:
        body = chosen.randbytes(size)
        for data in (body, body + (0).to_bytes(8, "little") + b"\0\0\2\0LANC"):
            with pytest.raises(LanceError):
                parse_manifest(data, path="p", version=1, verifies=False)


def test_transactions_cut_and_flipped(table: Path) -> None:
    (path,) = (table / "_transactions").glob("1-*.txn")
    data = path.read_bytes()
    for broken in [*(data[:size] for size in range(len(data))), *flips(data, 3, NUM_FLIPS)]:
        with contextlib.suppress(LanceError):
            parse_transaction(broken, verifies=False)


@pytest.mark.parametrize(("seconds", "nanos"), [(2**62, 0), (-(2**62), 0), (253_402_300_800, 0), (0, -1), (0, 10**9)])
def test_manifests_of_no_time(table: Path, seconds: int, nanos: int) -> None:
    def change(message: table_pb2.Manifest) -> None:
        message.timestamp.seconds, message.timestamp.nanos = seconds, nanos

    data = changed_manifest(manifest_path(table).read_bytes(), change)
    with pytest.raises(CorruptFileError, match="after 1970"):
        parse_manifest(data, path="p", version=2, verifies=False)
