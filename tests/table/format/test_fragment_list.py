"""Fragments as arrays and as values: both agree for any manifest."""

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format.errors import CorruptFileError, LanceError
from lance_format.proto import table_pb2
from lance_format.table.format import fragment_arrays as fragment_columns
from lance_format.table.format import fragment_list
from lance_format.table.format.fragment import FragmentMetadata, load_fragment
from lance_format.table.format.fragment_arrays import FragmentColumns, columns_of, scan_fragments
from lance_format.table.format.fragment_list import FragmentList
from tests.table.builders import rows, some_fragment

UINT32 = st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1))
UINT64 = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1))
FIELD_IDS = st.one_of(st.integers(0, 300), st.just(-2), st.integers(-(2**31), 2**31 - 1))
NAMES = st.one_of(st.from_regex(r"[0-9a-f]{8}\.lance", fullmatch=True), st.text(max_size=4), st.just("x" * 256))
UNKNOWN = st.sampled_from([b"", b"\xc2\x3e\x03new", b"\x58\x01", b"\x5a\x02ab", b"\x5d\0\0\0\0", b"\x5b\x08\x01\x5c"])


@st.composite
def data_files(draw: st.DrawFn) -> table_pb2.DataFile:
    fields = draw(st.lists(FIELD_IDS, max_size=4))
    columns = draw(st.one_of(st.just([]), st.just(list(range(len(fields)))), st.lists(FIELD_IDS, max_size=4)))
    file = table_pb2.DataFile(path=draw(NAMES), fields=fields, column_indices=columns)
    file.file_major_version, file.file_minor_version = draw(UINT32), draw(UINT32)
    file.file_size_bytes = draw(UINT64)
    if draw(st.booleans()):
        file.base_id = draw(UINT32)
    file.MergeFromString(draw(UNKNOWN))
    return file


@st.composite
def fragments(draw: st.DrawFn) -> bytes:
    message = table_pb2.DataFragment(id=draw(UINT64), files=draw(st.lists(data_files(), max_size=3)))
    message.physical_rows = draw(UINT64)
    if draw(st.booleans()):
        deletion = message.deletion_file
        deletion.file_type = draw(st.integers(0, 2))  # type: ignore[assignment]
        deletion.read_version, deletion.id, deletion.num_deleted_rows = draw(UINT64), draw(UINT64), draw(UINT64)
        if draw(st.booleans()):
            deletion.base_id = draw(UINT32)
    if draw(st.booleans()):
        message.inline_row_ids = draw(st.binary(max_size=3))
    if draw(st.booleans()):
        message.external_created_at_versions.path = draw(NAMES)
    message.MergeFromString(draw(UNKNOWN))
    return message.SerializeToString()


def plain(chosen: random.Random, index: int) -> bytes:
    """Return a fragment of the kind that tables have."""
    numbers = iter(range(chosen.choice([0, 100, 1000]), 10**6))
    message = table_pb2.DataFragment(id=index, physical_rows=chosen.choice([0, 7, 300, 2**32]))
    for _ in range(chosen.randint(1, 3)):
        held = [next(numbers) if chosen.random() < 0.8 else -2 for _ in range(chosen.randint(1, 5))]
        file = message.files.add(path=f"{chosen.getrandbits(64):x}.lance", fields=held, column_indices=range(len(held)))
        file.file_major_version, file.file_minor_version = 2, chosen.choice([0, 1, 2])
        file.file_size_bytes = chosen.choice([0, 1, 10**12])
        if chosen.random() < 0.3:
            file.base_id = chosen.randint(0, 3)
    if chosen.random() < 0.5:
        message.deletion_file.CopyFrom(
            table_pb2.DeletionFile(
                file_type=chosen.choice(["ARROW_ARRAY", "BITMAP"]),
                read_version=index,
                id=chosen.getrandbits(64),
                num_deleted_rows=chosen.randint(0, message.physical_rows),
            )
        )
    if chosen.random() < 0.5:
        message.inline_row_ids = message.inline_created_at_versions = chosen.randbytes(9)
        message.inline_last_updated_at_versions = chosen.randbytes(200)
    return message.SerializeToString()


def assert_same(some: FragmentColumns, other: FragmentColumns) -> None:
    for column in dataclasses.fields(FragmentColumns):
        np.testing.assert_array_equal(getattr(some, column.name), getattr(other, column.name), column.name)


def scan_as_values_do(monkeypatch: pytest.MonkeyPatch, stored: list[bytes], *, may_parse: bool = True) -> None:
    """Scan fragments, each as one of many, and compare with what they are once they are parsed, or refused."""
    with monkeypatch.context() as patch:
        if not may_parse:
            patch.setattr(fragment_columns, "load_fragment", None)
        try:
            expected = columns_of(map(load_fragment, stored))
        except (LanceError, DecodeError) as error:
            with pytest.raises(type(error)):
                scan_fragments(stored)
        else:
            assert_same(scan_fragments(stored), expected)


@pytest.mark.slow
@given(st.lists(fragments(), min_size=1, max_size=3))
def test_whatever_fragments_hold(stored: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        scan_as_values_do(patch, stored)
        for each in stored:
            scan_as_values_do(patch, [plain(random.Random(1), 0), each])


def test_fragments_of_tables_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(5)
    scan_as_values_do(monkeypatch, [plain(chosen, index) for index in range(500)], may_parse=False)


def test_fragments_of_which_some_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(6)
    stored = [plain(chosen, index) for index in range(40)]
    large = table_pb2.DataFragment.FromString(stored[7])
    large.inline_row_ids = bytes(5000)
    many = table_pb2.DataFragment(
        id=3, files=[table_pb2.DataFile(path=f"{index}", fields=[index]) for index in range(80)]
    )
    scan_as_values_do(monkeypatch, [*stored, large.SerializeToString(), many.SerializeToString()])
    monkeypatch.setattr(fragment_columns, "_CHUNK", 3)
    scan_as_values_do(monkeypatch, stored)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_fragments(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chosen = random.Random(seed)
    for index in range(400):
        damaged = bytearray(plain(chosen, index))
        for _ in range(chosen.choice([1, 1, 2, 5])):
            damaged[chosen.randrange(len(damaged))] = chosen.choice([0, 1, 0x7F, 0x80, 0xFF, chosen.randrange(256)])
        if chosen.random() < 0.2:
            del damaged[chosen.randrange(len(damaged)) :]
        scan_as_values_do(monkeypatch, [bytes(damaged)])


def listed(*ids: int) -> FragmentList:
    made = FragmentList(some_fragment(10 + fragment_id, fragment_id) for fragment_id in ids)
    return FragmentList.parse(made.serialize())


def ids_of(fragments: FragmentList) -> list[int]:
    assert_same(fragments.columns, columns_of(fragments))
    assert fragments.ids == {fragment.id for fragment in fragments}
    return [fragment.id for fragment in fragments]


def test_lists_are_sequences() -> None:
    table = listed(3, 1, 7)
    assert [fragment.id for fragment in table] == [3, 1, 7]
    assert (table[-1].id, table[1:][0].id, len(table)) == (7, 1, 3)
    assert table[0] is table[0]
    assert table[0] in table
    assert table == tuple(table) == FragmentList(table) == table
    assert table != listed(3, 1)
    assert table != listed(3, 1, 8)
    found = table.find(7)
    assert found is table[2]
    assert table.find(2) is None
    with pytest.raises(IndexError):
        table[3]


def test_lists_made_of_lists() -> None:
    table = listed(3, 1, 7)
    changed = dataclasses.replace(table[1], physical_rows=5)
    elsewhere = some_fragment(1, 99)
    after = table.changed([changed, elsewhere], frozenset({3, 100}))
    assert ids_of(after) == [1, 7]
    assert (after[0], after[1]) == (changed, table[2])
    assert ids_of(table.changed([changed], frozenset({1}))) == [3, 7]
    assert ids_of(table.extended([elsewhere])) == [3, 1, 7, 99]
    assert ids_of(table.extended([elsewhere]).by_id()) == [1, 3, 7, 99]
    assert ids_of(FragmentList().extended([])) == []
    assert ids_of(table) == [3, 1, 7]


def test_counting_rows_looks_at_the_last_fragment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lance_format.write_dataset(rows(0, 300), tmp_path / "t", max_rows_per_file=3)
    table.delete("a >= 260")
    looked_at: list[bytes] = []
    monkeypatch.setattr(fragment_list, "load_fragment", lambda data: looked_at.append(data) or load_fragment(data))
    again = lance_format.dataset(tmp_path / "t")
    assert again.count_rows() == 260
    assert again.get_version()["metadata"]["total_rows"] == "260"
    assert len(looked_at) == 1
    assert again.take([0]).num_rows == 1
    assert len(looked_at) == 2


@pytest.mark.parametrize("seed", range(30))
def test_fragments_of_a_near_version_are_taken_over(seed: int) -> None:
    chosen = random.Random(seed)
    ids = iter(range(10**6))
    before = [plain(chosen, next(ids)) for _ in range(chosen.choice([0, 1, 5, 60, 70, 300]))]
    after = before.copy()
    for _ in range(chosen.choice([0, 1, 3])):
        start = chosen.randint(0, len(after))
        added = [plain(chosen, next(ids)) for _ in range(chosen.choice([0, 1, 80]))]
        after[start : start + chosen.choice([0, 1, 100])] = added
    known = FragmentList.parse(before)
    for position in chosen.sample(range(len(before)), len(before) // 2):
        assert known[position].id == position
    made, expected = FragmentList.parse(after, known), FragmentList.parse(after)
    assert made.serialize() == after
    assert made == expected
    assert made.columns.base_ids >= expected.columns.base_ids
    assert_same(dataclasses.replace(made.columns, base_ids=expected.columns.base_ids), expected.columns)
    assert known.serialize() == before


def test_only_new_fragments_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lance_format.write_dataset(rows(0, 200), tmp_path, max_rows_per_file=2)
    table.delete("a = 80")
    seen: list[bytes] = []
    for name in ("load_fragment", "scan_fragments"):
        real = getattr(fragment_list, name)
        monkeypatch.setattr(fragment_list, name, lambda stored, real=real: seen.append(stored) or real(stored))
    for change in (lambda: table.insert(rows(200, 202)), lambda: table.delete("a in (3, 7)")):
        change()
        seen.clear()
        assert lance_format.dataset(tmp_path).version == table.version
        assert 1 <= len(seen) <= 3
        assert all(isinstance(each, bytes) for each in seen)


def test_a_fragment_that_is_taken_over_may_be_listed_once_only() -> None:
    stored = [plain(random.Random(index), index) for index in range(100)]
    with pytest.raises(CorruptFileError, match="fragment 7 is listed twice"):
        FragmentList.parse([*stored, stored[7]], FragmentList.parse(stored))


def test_what_is_not_changed_is_not_touched() -> None:
    """Bytes that another writer would spell differently stay, whether anybody looked at the fragment or not."""
    spelled = table_pb2.DataFragment(files=[table_pb2.DataFile(path="a", fields=[0])], physical_rows=3)
    odd = b"\x20\x83\x00" + spelled.SerializeToString()[:-2]
    table = FragmentList.parse([odd, listed(1).serialize()[0]])
    assert table.serialize()[0] == odd
    assert table[0].physical_rows == 3
    assert table.extended([some_fragment(1, 2)]).changed(removed=frozenset({1})).serialize()[0] == odd
    carried: FragmentMetadata = dataclasses.replace(table[0], physical_rows=4)
    assert FragmentList([carried]).serialize()[0] != odd
