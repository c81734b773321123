"""Row ids and row versions: each library reads those of the other, and both write the same."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyroaring
import pytest

from lance_format.proto import table_pb2
from lance_format.table.row_ids.index import RowIdIndex, row_addresses
from lance_format.table.row_ids.row_id_sequence import (
    RowIdSequence,
    parse_partial_row_ids,
    parse_row_ids,
    serialize_row_ids,
)
from lance_format.table.row_ids.row_version_sequence import (
    RowVersionSequence,
    parse_row_versions,
    serialize_row_versions,
)
from lance_format.table.row_ids.segments import (
    Array,
    EncodedArray,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    SortedArray,
    U64Segment,
)
from tests.table.builders import with_checksum

CREATED, UPDATED = "_row_created_at_version", "_row_last_updated_at_version"
Fragment = table_pb2.DataFragment


def rows(keys: list[int], text: str = "new") -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "s": pa.array([f"{text} {key}" for key in keys])})


def create(path: Path, num_rows: int = 60, max_rows_per_file: int = 20) -> lance.LanceDataset:
    return lance.write_dataset(
        rows(list(range(num_rows))), str(path), enable_stable_row_ids=True, max_rows_per_file=max_rows_per_file
    )


def section(data: bytes, position: int) -> bytes:
    (size,) = struct.unpack_from("<I", data, position)
    return data[position + 4 : position + 4 + size]


def manifest_path(path: Path, version: int) -> Path:
    return path / "_versions" / f"{2**64 - 1 - version:020}.manifest"


def read_manifest(path: Path, version: int) -> tuple[table_pb2.Manifest, table_pb2.Transaction]:
    data = manifest_path(path, version).read_bytes()
    manifest = table_pb2.Manifest.FromString(section(data, struct.unpack_from("<q", data, len(data) - 16)[0]))
    return manifest, table_pb2.Transaction.FromString(section(data, manifest.transaction_section))


def edit_manifest(path: Path, version: int, edit: Callable[[table_pb2.Manifest], None]) -> None:
    """Change a manifest behind pylance's back."""
    file = manifest_path(path, version)
    data = file.read_bytes()
    (position,) = struct.unpack_from("<q", data, len(data) - 16)
    manifest = read_manifest(path, version)[0]
    edit(manifest)
    body = manifest.SerializeToString()
    file.write_bytes(with_checksum(data[:position] + struct.pack("<I", len(body)) + body + data[-16:]))


def deleted_rows(path: Path, fragment: Fragment) -> np.ndarray:
    if not fragment.HasField("deletion_file"):
        return np.zeros(0, np.int64)
    deletion = fragment.deletion_file
    suffix = "bin" if deletion.file_type else "arrow"
    content = (path / f"_deletions/{fragment.id}-{deletion.read_version}-{deletion.id}.{suffix}").read_bytes()
    if deletion.file_type:
        return np.array(pyroaring.BitMap.deserialize(content), np.int64)
    return np.sort(pa.ipc.open_file(content).read_all().column(0).to_numpy()).astype(np.int64)


def row_ids(fragment: Fragment) -> RowIdSequence:
    return parse_row_ids(fragment.inline_row_ids, fragment.physical_rows)


def created(fragment: Fragment) -> RowVersionSequence:
    return parse_row_versions(fragment.inline_created_at_versions, fragment.physical_rows)


def updated(fragment: Fragment) -> RowVersionSequence:
    return parse_row_versions(fragment.inline_last_updated_at_versions, fragment.physical_rows)


def check_version(path: Path, version: int) -> None:
    """Check that a version's sequences say what pylance's columns do."""
    fragments = read_manifest(path, version)[0].fragments
    shown = lance.dataset(str(path), version=version).to_table(columns=["_rowid", "_rowaddr", CREATED, UPDATED])
    live = [(fragment, deleted_rows(path, fragment)) for fragment in fragments]
    for name, read in (("_rowid", row_ids), (CREATED, created), (UPDATED, updated)):
        values = [read(fragment).delete(deleted).to_numpy() for fragment, deleted in live]
        assert np.concatenate([np.zeros(0, np.uint64), *values]).tolist() == shown[name].to_pylist()
    index = RowIdIndex([(fragment.id, row_ids(fragment).runs(), deleted) for fragment, deleted in live])
    found = row_addresses(*index.find(shown["_rowid"].to_numpy()))
    assert found.tolist() == shown["_rowaddr"].to_pylist()
    gone = [row_ids(fragment).take(deleted) for fragment, deleted in live]
    dead = np.setdiff1d(np.concatenate([np.zeros(0, np.uint64), *gone]), shown["_rowid"].to_numpy())
    assert (index.find(dead)[0] == -1).all()
    for fragment in fragments:
        assert serialize_row_ids(row_ids(fragment)) == fragment.inline_row_ids


def check_successor(path: Path, version: int) -> None:
    """Check that from its transaction we would give the rows of a version the ids and versions that pylance did."""
    before = read_manifest(path, version - 1)[0]
    after, transaction = read_manifest(path, version)
    kind = transaction.WhichOneof("operation")
    next_row_id = before.next_row_id
    made_by = {}
    for fragment in before.fragments:
        made_by |= dict(zip(row_ids(fragment).to_numpy().tolist(), created(fragment).to_numpy().tolist(), strict=True))
    added = [fragment for fragment in after.fragments if fragment.id not in {old.id for old in before.fragments}]
    new = list(getattr(transaction, kind).new_fragments if kind == "update" else added)
    if kind == "rewrite":
        for group in transaction.rewrite.groups:
            check_rewrite(path, group)
    elif kind in ("append", "update", "overwrite"):
        for fragment, committed in zip(new, added, strict=True):
            num_rows = committed.physical_rows
            moved = parse_partial_row_ids(fragment.inline_row_ids if kind == "update" else b"", num_rows)
            num_new = num_rows - len(moved)
            ours = RowIdSequence.concatenate([moved, RowIdSequence.from_range(next_row_id, next_row_id + num_new)])
            next_row_id += num_new
            assert ours.to_numpy().tolist() == row_ids(committed).to_numpy().tolist()
            versions = np.array([made_by.get(row_id, version) for row_id in ours.to_numpy().tolist()], np.uint64)
            stored = serialize_row_versions(RowVersionSequence.from_array(versions))
            assert stored == committed.inline_created_at_versions
            latest = RowVersionSequence.constant(version, num_rows)
            assert serialize_row_versions(latest) == committed.inline_last_updated_at_versions
    assert after.next_row_id == next_row_id


def check_rewrite(path: Path, group: table_pb2.Transaction.Rewrite.RewriteGroup) -> None:
    old = [(fragment, deleted_rows(path, fragment)) for fragment in group.old_fragments]
    kept = RowIdSequence.concatenate(row_ids(fragment).delete(deleted) for fragment, deleted in old)
    made = RowVersionSequence.concatenate(created(fragment).delete(deleted) for fragment, deleted in old)
    changed = RowVersionSequence.concatenate(updated(fragment).delete(deleted) for fragment, deleted in old)
    start = 0
    for fragment in group.new_fragments:
        stop = start + fragment.physical_rows
        assert kept.slice(start, stop).to_numpy().tolist() == row_ids(fragment).to_numpy().tolist()
        assert created(fragment) == made.slice(start, stop)
        assert updated(fragment) == changed.slice(start, stop)
        start = stop
    assert start == len(kept)


def test_compaction_encodes_rows_as_pylance_does(tmp_path: Path) -> None:
    create(tmp_path, 10_000, 500)
    chosen = np.random.default_rng(4)
    shares = np.repeat([0.0, 0.002, 0.02, 0.3, 0.97], 4)
    deleted = np.flatnonzero(chosen.random(10_000) < np.repeat(chosen.permutation(shares), 500))
    lance.dataset(str(tmp_path)).delete(f"k in ({', '.join(map(str, deleted))})")
    lance.dataset(str(tmp_path)).optimize.compact_files(
        target_rows_per_fragment=1300, materialize_deletions_threshold=0.0
    )
    kinds = set()
    for group in read_manifest(tmp_path, 4)[1].rewrite.groups:
        kept = RowIdSequence.concatenate(
            row_ids(old).delete(deleted_rows(tmp_path, old)) for old in group.old_fragments
        )
        start = 0
        for fragment in group.new_fragments:
            ours = kept.slice(start, start + fragment.physical_rows)
            assert serialize_row_ids(ours) == fragment.inline_row_ids
            kinds |= {type(segment) for segment in ours.segments}
            start += fragment.physical_rows
    assert kinds == {Range, RangeWithHoles, RangeWithBitmap, SortedArray}


class History:
    """A table that random operations of pylance change."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = str(path)
        self.random = random.Random(seed)
        self.next_key = 60
        create(path)

    def some_keys(self) -> list[int]:
        return self.random.sample(range(self.next_key), self.random.choice([2, 9, 30]))

    def new_keys(self) -> list[int]:
        start, self.next_key = self.next_key, self.next_key + self.random.choice([1, 7, 40])
        return list(range(start, self.next_key))

    def append(self) -> None:
        lance.write_dataset(rows(self.new_keys()), self.path, mode="append", max_rows_per_file=20)

    def delete(self) -> None:
        lance.dataset(self.path).delete(f"k in ({', '.join(map(str, self.some_keys()))})")

    def update(self) -> None:
        lance.dataset(self.path).update({"s": "'updated'"}, where=f"k in ({', '.join(map(str, self.some_keys()))})")

    def merge(self) -> None:
        keys = sorted({*self.some_keys(), *self.new_keys()}, key=lambda _: self.random.random())
        merge = lance.dataset(self.path).merge_insert("k")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(rows(keys, "merged"))

    def compact(self) -> None:
        lance.dataset(self.path).optimize.compact_files(
            target_rows_per_fragment=self.random.choice([15, 33, 1000]), materialize_deletions_threshold=0.0
        )

    def overwrite(self) -> None:
        lance.write_dataset(rows(self.new_keys()), self.path, mode="overwrite", max_rows_per_file=20)

    def step(self) -> None:
        steps = [self.append, self.delete, self.delete, self.update, self.update, self.merge, self.merge, self.compact]
        self.random.choice([*steps, *steps, self.overwrite])()


@pytest.mark.parametrize("seed", range(5))
def test_all_that_pylance_writes(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed)
    for _ in range(14):
        history.step()
    history.compact()
    last = lance.dataset(history.path).version
    for version in range(1, last + 1):
        check_version(tmp_path, version)
    for version in range(2, last + 1):
        check_successor(tmp_path, version)


def test_fragments_that_are_large(tmp_path: Path) -> None:
    create(tmp_path, 50_000, 20_000).update({"s": "'updated'"}, where="k % 3 = 1")
    keys = random.Random(1).sample(range(60_000), 20_000)
    merge = lance.dataset(str(tmp_path)).merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows(keys))
    lance.dataset(str(tmp_path)).optimize.compact_files(target_rows_per_fragment=30_000)
    for version in range(2, lance.dataset(str(tmp_path)).version + 1):
        check_version(tmp_path, version)
        check_successor(tmp_path, version)


IDS = [3, 4, 5, 7, 20, 21, 26]


def encoded(width: int, base: int, values: list[int]) -> EncodedArray:
    offsets = np.array(values, np.uint64) - np.uint64(base)
    return EncodedArray(base, width, offsets.astype(f"<u{width}").tobytes())


HOLES = [value for value in range(3, 27) if value not in IDS]
BITMAP = sum(1 << (value - 3) for value in IDS).to_bytes(3, "little")
EVERY_SEGMENT: list[tuple[U64Segment, list[int]]] = [
    (Range(2**40, 2**40 + 7), list(range(2**40, 2**40 + 7))),
    (RangeWithBitmap(3, 27, BITMAP), IDS),
    *((RangeWithHoles(3, 27, encoded(width, 0, HOLES)), IDS) for width in (2, 4, 8)),
    *((SortedArray(encoded(width, 0, IDS)), IDS) for width in (2, 4, 8)),
    *((Array(encoded(width, 0, IDS[::-1])), IDS[::-1]) for width in (2, 4, 8)),
    (Array(encoded(2, 3, IDS)), IDS),
    (SortedArray(EncodedArray.of(np.array([5, 2**64 - 2], np.uint64))), [5, 2**64 - 2]),
]


@pytest.mark.parametrize(("segment", "values"), EVERY_SEGMENT)
def test_pylance_reads_every_segment(tmp_path: Path, segment: U64Segment, values: list[int]) -> None:
    sequence = RowIdSequence((Range(100, 101), segment))
    expected = [100, *values]
    create(tmp_path, len(expected))

    def edit(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[0].inline_row_ids = serialize_row_ids(sequence)
        versions = RowVersionSequence.concatenate(
            [RowVersionSequence.constant(7, 1), RowVersionSequence.constant(2, len(values))]
        )
        manifest.fragments[0].inline_created_at_versions = serialize_row_versions(versions)

    edit_manifest(tmp_path, 1, edit)
    check_version(tmp_path, 1)
    table = lance.dataset(str(tmp_path))
    assert table.to_table(columns=["_rowid"])["_rowid"].to_pylist() == expected
    assert table.to_table(columns=[CREATED])[CREATED].to_pylist() == [7, *[2] * len(values)]
    table.delete("k = 2")
    check_version(tmp_path, 2)
    table.optimize.compact_files(materialize_deletions_threshold=0.0)
    check_rewrite(tmp_path, read_manifest(tmp_path, 4)[1].rewrite.groups[0])


def test_pylance_goes_on_from_our_sequences(tmp_path: Path) -> None:
    create(tmp_path, 60, 20)
    mixed = RowIdSequence.concatenate(
        [RowIdSequence.from_array(np.array([25, 24, 28], np.uint64)), RowIdSequence.from_range(1000, 1017)]
    )

    def edit(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[1].inline_row_ids = serialize_row_ids(mixed)
        for fragment in manifest.fragments:
            versions = np.random.default_rng(fragment.id).integers(1, 4, 20).astype(np.uint64)
            fragment.inline_created_at_versions = serialize_row_versions(RowVersionSequence.from_array(versions))
        manifest.next_row_id = 2000

    edit_manifest(tmp_path, 1, edit)
    lance.dataset(str(tmp_path)).update({"s": "'updated'"}, where="k in (3, 20, 21, 30, 31, 59)")
    merge = lance.dataset(str(tmp_path)).merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows([70, 4, 21, 22, 71]))
    lance.dataset(str(tmp_path)).optimize.compact_files()
    for version in range(2, 6):
        check_version(tmp_path, version)
        check_successor(tmp_path, version)


def test_rows_of_which_the_table_does_not_tell_the_versions_are_of_version_1(tmp_path: Path) -> None:
    table = create(tmp_path, 20, 10)
    lance.write_dataset(rows([20]), str(tmp_path), mode="append")

    def edit(manifest: table_pb2.Manifest) -> None:
        for fragment in manifest.fragments:
            fragment.ClearField("created_at_version_sequence")
            fragment.ClearField("last_updated_at_version_sequence")

    edit_manifest(tmp_path, 2, edit)
    table = lance.dataset(str(tmp_path)).to_table(columns=[CREATED, UPDATED])
    assert set(table[CREATED].to_pylist()) == set(table[UPDATED].to_pylist()) == {1}
