"""ZONEMAP indices that were cut or flipped, or that lie: a typed error, or the rows that there are without them."""

import dataclasses
import random
import shutil
import uuid as uuids
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError, DatasetNotFoundError, IndexConfig, LanceError
from lance_format.file import SearchCache
from lance_format.proto import table_pb2
from lance_format.table.dataset.dataset import LanceDataset
from lance_format.table.format.index_metadata import IndexMetadata, parse_index
from lance_format.table.indices.zones.zone_map import Zones
from lance_format.table.indices.zones.zone_map_file import write_zone_map
from lance_format.table.indices.zones.zone_map_index import load_zones
from lance_format.table.transaction.operations import CreateIndex
from lance_format.version import STABLE
from tests.table.builders import SCHEMA, rows

pytestmark = pytest.mark.system

NUM_FLIPS = 300
PREDICATES = ["a = 34", "a < 7", "a > 90 and s > 'row 5'", "s = 'row 55'", "a in (3, 12, 77) or s is null"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    table = lance_format.write_dataset(rows(0, 100), tmp_path_factory.mktemp("fuzz") / "t", max_rows_per_file=30)
    table.delete("a = 7 or a between 30 and 33 or a = 99")
    for column in ("a", "s"):
        table.create_scalar_index(column, IndexConfig("ZONEMAP", {"rows_per_zone": 8}))
    return table


def copy_of(table: LanceDataset, path: Path) -> LanceDataset:
    shutil.copytree(table.uri, path / "t")
    return lance_format.dataset(path / "t", verify_checksums=False)


def file_of(table: LanceDataset, index: IndexMetadata) -> Path:
    return Path(table.uri) / "_indices" / index.uuid / "zonemap.lance"


def found(table: LanceDataset, predicate: str, **options: Any) -> list[int]:
    """Return the matching rows; nothing that was read before is remembered."""
    fresh = LanceDataset(table.uri, dataclasses.replace(table._table, cache=SearchCache()))
    values: list[int] = fresh.to_table(["a"], filter=predicate, **options)["a"].to_pylist()
    return values


def unindexed(table: LanceDataset, predicate: str) -> list[int]:
    return found(table, predicate, use_scalar_index=False)


def test_files_cut_anywhere(table: LanceDataset, tmp_path: Path) -> None:
    damaged = copy_of(table, tmp_path)
    path = file_of(damaged, damaged._table.manifest.indices[0])
    data = path.read_bytes()
    for size in range(0, len(data), 11):
        path.write_bytes(data[:size])
        with pytest.raises(LanceError):
            found(damaged, "a = 34")
        assert unindexed(damaged, "a = 34") == [34]


def test_flips(table: LanceDataset, tmp_path: Path) -> None:
    """Damaged values of a page are undetectable, as in data files; other damage is refused or harmless."""
    damaged = copy_of(table, tmp_path)
    chosen = random.Random(1)
    refused = 0
    for index in damaged._table.manifest.indices:
        path = file_of(damaged, index)
        data = path.read_bytes()
        for _ in range(NUM_FLIPS):
            broken = bytearray(data)
            for _ in range(chosen.choice((1, 1, 2, 8))):
                broken[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
            path.write_bytes(broken)
            predicate = chosen.choice(PREDICATES)
            try:
                assert set(found(damaged, predicate)) <= set(unindexed(table, predicate))
            except LanceError:
                refused += 1
        path.write_bytes(data)
    assert refused > NUM_FLIPS / 4


def changed(zones: Zones, **columns: Any) -> Zones:
    return dataclasses.replace(zones, **columns)


def moved(zones: Zones, count: int) -> Zones:
    return changed(zones, starts=zones.starts + count)


LIES: dict[str, Callable[[Zones], Zones]] = {
    "beyond the fragment": lambda zones: moved(zones, 1),
    "far beyond": lambda zones: moved(zones, 2**31),
    "of unknown fragments": lambda zones: changed(zones, fragment_ids=zones.fragment_ids + 50),
    "all of one fragment": lambda zones: changed(zones, fragment_ids=np.zeros_like(zones.fragment_ids)),
    "twice": lambda zones: Zones.concatenate([zones, zones]),
    "overlapping": lambda zones: changed(zones, lengths=zones.lengths + 1),
    "none": lambda zones: zones.take(np.zeros(0, np.int64)),
    "the first of each": lambda zones: zones.take(np.flatnonzero(zones.starts == zones.starts.min())),
    "all but one": lambda zones: zones.take(np.arange(1, len(zones))),
    "nothing known": lambda zones: changed(zones, lower=pa.nulls(len(zones), pa.int64())),
}
CONTRADICTIONS: dict[str, Callable[[Zones], Zones]] = {
    "empty": lambda zones: changed(zones, lengths=zones.lengths * 0),
    "beyond all rows": lambda zones: moved(zones, 2**32),
    "more nulls than rows": lambda zones: changed(zones, null_counts=zones.null_counts + 100),
    "NaN of integers": lambda zones: changed(zones, nan_counts=zones.nan_counts + 1),
    "bounds that cross": lambda zones: changed(zones, lower=zones.upper, upper=zones.lower),
    "of strings": lambda zones: changed(
        zones, lower=zones.lower.cast(pa.string()), upper=zones.upper.cast(pa.string())
    ),
    "of other integers": lambda zones: changed(
        zones, lower=zones.lower.cast(pa.int32()), upper=zones.upper.cast(pa.int32())
    ),
}


def with_zones(table: LanceDataset, path: Path, change: Callable[[Zones], Zones]) -> LanceDataset:
    """Return a copy of a table, whose index of `a` has other zones."""
    lying = copy_of(table, path)
    index = lying._table.manifest.indices[0]
    loaded = load_zones(table._table, index, pa.int64())
    assert loaded is not None
    sink = lying._table.store.open_writer(str(file_of(lying, index)))
    write_zone_map(sink, change(loaded.zones), {}, 8, STABLE)
    return with_index(lying, lambda message: message.ClearField("files"))


def with_index(table: LanceDataset, change: Callable[[table_pb2.IndexMetadata], object]) -> LanceDataset:
    """Return a table with something else in its manifest about its index of `a`."""
    index = table._table.manifest.indices[0]
    message = table_pb2.IndexMetadata()
    message.CopyFrom(index.message)
    change(message)
    return LanceDataset(table.uri, table._table.commit(CreateIndex((parse_index(message),), (index,))))


@pytest.mark.parametrize("lie", LIES)
def test_zones_that_lie(table: LanceDataset, tmp_path: Path, lie: str) -> None:
    lying = with_zones(table, tmp_path, LIES[lie])
    for predicate in PREDICATES:
        assert found(lying, predicate) == unindexed(lying, predicate)
    lying.optimize.optimize_indices()
    assert found(lying, "a = 34") == [34]


@pytest.mark.parametrize("lie", CONTRADICTIONS)
def test_zones_that_contradict_themselves(table: LanceDataset, tmp_path: Path, lie: str) -> None:
    lying = with_zones(table, tmp_path, CONTRADICTIONS[lie])
    with pytest.raises(CorruptFileError, match=r"zonemap\.lance: index 'a_idx': "):
        found(lying, "a = 34")
    with pytest.raises(CorruptFileError, match="index 'a_idx'"):
        lying.optimize.optimize_indices(num_indices_to_merge=2)
    assert unindexed(lying, "a = 34") == [34]
    lying.create_scalar_index("a", "ZONEMAP")
    assert found(lying, "a = 34") == [34]


def details(value: bytes) -> Callable[[table_pb2.IndexMetadata], object]:
    def change(message: table_pb2.IndexMetadata) -> None:
        message.index_details.value = value

    return change


def fragments(*fragment_ids: int) -> Callable[[table_pb2.IndexMetadata], object]:
    def change(message: table_pb2.IndexMetadata) -> None:
        empty = parse_index(message).with_fragments(fragment_ids)
        message.fragment_bitmap = empty.message.fragment_bitmap

    return change


IGNORED: dict[str, Callable[[table_pb2.IndexMetadata], object]] = {
    "no bitmap": lambda message: message.ClearField("fragment_bitmap"),
    "an empty bitmap": fragments(),
    "fragments that there are not": fragments(7, 2**31),
    "no details": lambda message: message.ClearField("index_details"),
    "malformed details": details(b"\xff"),
    "details of a later release": details(b"\x28\x01"),
    "a later version": lambda message: setattr(message, "index_version", 1),
    "of two columns": lambda message: message.fields.append(1),
}


@pytest.mark.parametrize("what", IGNORED)
def test_what_a_manifest_says_is_not_enough(table: LanceDataset, tmp_path: Path, what: str) -> None:
    other = with_index(copy_of(table, tmp_path), IGNORED[what])
    scanner = other.scanner(filter="a = 34")
    assert scanner.to_table() == rows(34, 35)
    assert scanner.metrics is not None
    assert scanner.metrics.rows_scanned == 100
    other.optimize.optimize_indices()
    assert found(other, "a = 34") == [34]


def test_fragments_that_there_are_not_beside_others(table: LanceDataset, tmp_path: Path) -> None:
    other = with_index(copy_of(table, tmp_path), fragments(1, 2, 9))
    assert [task.ranges for task in other.scanner(filter="a = 34").plan_tasks()] == [
        ((0, 0, 30), (1, 0, 12), (3, 0, 10))
    ]
    for predicate in PREDICATES:
        assert found(other, predicate) == unindexed(other, predicate)


def test_an_index_of_another_column(table: LanceDataset, tmp_path: Path) -> None:
    def change(message: table_pb2.IndexMetadata) -> None:
        message.fields[0] = SCHEMA.get_field_index("s")

    copied = copy_of(table, tmp_path)
    copied.drop_index("s_idx")
    other = with_index(copied, change)
    with pytest.raises(CorruptFileError, match="column 'min' of string is expected; int64 is found"):
        found(other, "s = 'row 3'")


def test_an_index_without_a_file(table: LanceDataset, tmp_path: Path) -> None:
    def change(message: table_pb2.IndexMetadata) -> None:
        message.uuid.uuid = uuids.UUID(int=5).bytes

    other = with_index(copy_of(table, tmp_path), change)
    with pytest.raises(DatasetNotFoundError, match="of index 'a_idx' is missing"):
        found(other, "a = 34")
    other.drop_index("a_idx")
    assert found(other, "a = 34") == [34]
