"""Verification reads indices as searches do: what they hold must be whole, and name rows of the table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError, LanceDataset
from lance_format.file import FileWriter
from lance_format.proto import index_pb2, table_pb2
from lance_format.table.format.index_metadata import parse_index
from lance_format.table.indices.part_rows import OrderedRows
from lance_format.table.indices.vectors import vector_file
from lance_format.table.transaction.operations import CreateIndex

ROWS, FEWER = 300, 100
KINDS = {
    "ZONEMAP": ("n", "zonemap.lance", None),
    "BTREE": ("n", "page_data.lance", "n >= 0"),
    "BITMAP": ("few", "bitmap_page_lookup.lance", "few = 2"),
    "LABEL_LIST": ("tags", "bitmap_page_lookup.lance", "array_has(tags, 't1')"),
    "NGRAM": ("text", "ngram_postings.lance", "contains(text, 'owl')"),
    "BLOOMFILTER": ("n", "bloomfilter.lance", None),
    "INVERTED": ("text", "part_0_docs.lance", None),
    "IVF_FLAT": ("v", "auxiliary.idx", None),
    "IVF_SQ": ("v", "auxiliary.idx", None),
    "IVF_PQ": ("v", "auxiliary.idx", None),
    "IVF_RQ": ("v", "auxiliary.idx", None),
}


def rows(count: int) -> pa.Table:
    numbers = np.arange(count)
    vectors = pa.array(np.random.default_rng(0).normal(size=8 * count).astype(np.float32))
    columns = {
        "n": numbers,
        "few": numbers % 5,
        "tags": [[f"t{number % 3}"] for number in numbers],
        "text": [f"owl {number}" for number in numbers],
        "v": pa.FixedSizeListArray.from_arrays(vectors, 8),
    }
    return pa.table(columns)


def indexed(path: Path, kind: str, count: int = ROWS, **options: Any) -> LanceDataset:
    dataset = lance_format.write_dataset(rows(count), path, **options)
    column = KINDS[kind][0]
    if column == "v":
        dataset.create_index(column, kind, num_partitions=2)
    else:
        dataset.create_scalar_index(column, kind)
    return dataset


def with_index_of_another(tmp_path: Path, kind: str, max_rows_per_file: int = ROWS, *, stable: bool = False) -> Path:
    """Write a table with an index of one that has more rows."""
    other = indexed(tmp_path / "other", kind, max_rows_per_file=max_rows_per_file, enable_stable_row_ids=stable)
    path = tmp_path / "t"
    dataset = lance_format.write_dataset(rows(FEWER), path, enable_stable_row_ids=stable)
    shutil.copytree(tmp_path / "other" / "_indices", path / "_indices")
    dataset._table.commit(CreateIndex(other._table.manifest.indices, ()))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_rows_beyond_the_last_of_a_fragment_are_found(tmp_path: Path, kind: str) -> None:
    path = with_index_of_another(tmp_path, kind)
    _, file, condition = KINDS[kind]
    dataset = lance_format.dataset(path)
    (problem,) = dataset.verify().problems
    assert (problem.path.rpartition("/")[2], problem.status) == (file, "inconsistent")
    assert problem.repair == "rebuild the index"
    assert "of fragment 0, which has 100; drop the index and make it again" in problem.detail
    if condition is not None:
        with pytest.raises(CorruptFileError, match=rf"{file}: index '\w+' names row \d+ of fragment 0, which has 100"):
            dataset.to_table(filter=condition)
    if kind == "INVERTED":
        with pytest.raises(CorruptFileError, match=rf"{file}: index '\w+' names row 299 of fragment 0, which has 100"):
            dataset.to_table(full_text_query="owl")
    assert len(dataset.verify(repair=True).rebuilt_indices) == 1
    assert lance_format.dataset(path).verify().problems == ()


@pytest.mark.parametrize("kind", KINDS)
def test_fragments_that_there_have_not_been_are_found(tmp_path: Path, kind: str) -> None:
    path = with_index_of_another(tmp_path, kind, max_rows_per_file=FEWER)
    (problem,) = lance_format.dataset(path).verify().problems
    assert problem.path.rpartition("/")[2] == KINDS[kind][1]
    assert "which there has not been; drop the index and make it again" in problem.detail


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"ZONEMAP", "BLOOMFILTER"}))
def test_ids_that_have_not_been_given_are_found(tmp_path: Path, kind: str) -> None:
    path = with_index_of_another(tmp_path, kind, stable=True)
    (problem,) = lance_format.dataset(path).verify().problems
    assert problem.path.rpartition("/")[2] == KINDS[kind][1]
    assert "ids up to 99 have been given" in problem.detail


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_moved_and_deleted_rows_are_no_problems(tmp_path: Path, kind: str, stable: bool) -> None:
    path = tmp_path / "t"
    dataset = indexed(path, kind, max_rows_per_file=100, enable_stable_row_ids=stable)

    def check() -> LanceDataset:
        changed = lance_format.dataset(path)
        assert changed.verify().problems == ()
        return changed

    check().delete("n >= 200")  # a whole fragment
    check().update({"few": "9"}, where="n % 7 = 1")
    changed = pa.table({"n": [3, 500], "few": [7, 8], "text": ["emu", "owl"]})
    check().merge_insert("n").when_matched_update_all().execute(changed.select(["n", "few"]).slice(0, 1))
    lance_format.write_dataset(rows(50), path, mode="append")
    check().optimize.compact_files(defer_index_remap=True)
    check().optimize.optimize_indices()
    check().restore()
    lance_format.dataset(path, version=dataset.version).restore()
    check().optimize.compact_files()
    check()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [(1000, "a value is not within the bounds of its page"), (None, "a page has another number of nulls")],
)
def test_values_that_contradict_their_page_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: int | None, message: str
) -> None:
    column = OrderedRows.column

    def stored(values: OrderedRows, start: int, stop: int) -> pa.Array:
        found = column(values, start, stop)
        return pa.concat_arrays([found[:-1], pa.array([wrong], found.type)])

    with monkeypatch.context() as patched:
        patched.setattr(OrderedRows, "column", stored)
        dataset = indexed(tmp_path / "t", "BTREE")
    (problem,) = dataset.verify().problems
    assert problem.path.endswith("page_data.lance")
    assert message in problem.detail
    assert dataset.verify(repair=True).rebuilt_indices == ("n_idx",)
    assert lance_format.dataset(dataset.uri).verify().problems == ()


def test_long_bounds_are_not_copied_for_each_row(tmp_path: Path) -> None:
    texts = [f"{number:05d}" for number in range(4095)] + ["z" * 600_000]
    dataset = lance_format.write_dataset({"text": texts}, tmp_path / "t")
    dataset.create_scalar_index("text", "BTREE")
    assert dataset.verify().problems == ()


def test_vectors_of_no_partition_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    describe = vector_file._describe

    def described(writer: FileWriter, message: index_pb2.IVF, entries: dict[str, str]) -> None:
        if message.lengths[0]:
            message.lengths[0] -= 1
        describe(writer, message, entries)

    with monkeypatch.context() as patched:
        patched.setattr(vector_file, "_describe", described)
        dataset = indexed(tmp_path / "t", "IVF_FLAT")
    (problem,) = dataset.verify().problems
    assert problem.detail.endswith("auxiliary.idx: partitions have 299 of 300 rows")


def test_a_missing_file_that_the_manifest_does_not_name_is_found(tmp_path: Path) -> None:
    dataset = indexed(tmp_path / "t", "BITMAP")
    (index,) = dataset._table.manifest.indices
    message = table_pb2.IndexMetadata()
    message.CopyFrom(index.message)
    del message.files[:]
    changed = dataset._table.commit(CreateIndex((parse_index(message),), (index,)))
    (tmp_path / "t" / "_indices" / index.uuid / "bitmap_page_lookup.lance").unlink()
    (problem,) = lance_format.dataset(dataset.uri, version=changed.manifest.version).verify().problems
    assert (problem.path, problem.status) == (f"_indices/{index.uuid}", "missing")
