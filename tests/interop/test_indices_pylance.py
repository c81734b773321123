"""Indices that pylance makes: listed, kept by our operations, dropped."""

import warnings
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError
from tests.interop.test_table_pylance import assert_same

KINDS = [("a", "BTREE"), ("s.x", "BITMAP"), ("t", "INVERTED"), ("l", "LABEL_LIST"), ("t", "NGRAM"), ("a", "ZONEMAP")]


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    vectors = pa.array([[float(n)] * 8 for n in numbers], pa.list_(pa.float32(), 8))
    columns = {"a": numbers, "s": [{"x": n % 9} for n in numbers], "t": [f"word {n}" for n in numbers]}
    return pa.table({**columns, "l": [[f"tag {n}"] for n in numbers], "v": vectors})


def listed_by_pylance(path: Path) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = [dict(index) for index in lance.dataset(str(path)).list_indices()]
    return [{**index, "fragment_ids": set(index["fragment_ids"])} for index in found]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = lance.write_dataset(rows(0, 300), str(tmp_path), max_rows_per_file=100)
    for column, kind in KINDS:
        table.create_scalar_index(column, kind, name=f"{kind} of {column}")
    table.create_index("v", "IVF_PQ", num_partitions=1, num_sub_vectors=2)
    return tmp_path


def test_they_are_listed(path: Path) -> None:
    ours, theirs = lance_format.dataset(path).list_indices(), listed_by_pylance(path)
    assert sorted(ours, key=lambda index: str(index["name"])) == sorted(theirs, key=lambda index: str(index["name"]))
    assert lance_format.dataset(path).has_index
    assert not lance_format.dataset(path, 1).has_index


def test_they_are_described(path: Path) -> None:
    table = lance_format.dataset(path)
    for kind in ("IVF_FLAT", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ"):
        assert table.create_index("v", kind, name=kind, num_partitions=1) is table
    table.delete("a < 7")
    table.insert(rows(300, 330))
    table.optimize.optimize_indices(index_names=["BTREE of a"], num_indices_to_merge=0)
    ours, theirs = table.describe_indices(), lance.dataset(path).describe_indices()
    assert [index.name for index in ours] == [index.name for index in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        for name in ("index_type", "type_url", "fields", "field_names", "num_rows_indexed", "total_size_bytes"):
            assert getattr(mine, name) == getattr(other, name)
        assert mine.details.items() <= other.details.items() or mine.index_type == "IVF_RQ"
        assert mine.num_segments == len(other.segments) == 1 + (mine.name == "BTREE of a")
        for part, same in zip(mine.segments, other.segments, strict=True):
            for name in ("uuid", "index_version", "dataset_version_at_last_update", "created_at", "size_bytes"):
                assert getattr(part, name) == getattr(same, name)
            assert part.fragment_ids == set(same.fragment_ids)
    rotated = next(index for index in ours if index.index_type == "IVF_RQ")
    assert rotated.details == {"metric_type": "L2", "compression": {"type": "rq", "num_bits": 5}}
    for name in ("v_idx", "IVF_FLAT", "IVF_RQ", "IVF_HNSW_PQ"):
        counts, other = (library.dataset(path).stats.index_stats(name) for library in (lance_format, lance))
        assert counts["index_type"] == other["index_type"]
        assert counts["indices"][0].items() <= other["indices"][0].items()
        assert sum(partition["size"] for partition in counts["indices"][0]["partitions"]) == 300


def test_vectors_of_bytes_are_listed_too(tmp_path: Path) -> None:
    vectors = pa.array([[n % 256] * 16 for n in range(300)], pa.list_(pa.uint8(), 16))
    table = lance.write_dataset(pa.table({"v": vectors}), tmp_path)
    table.create_index("v", "IVF_FLAT", num_partitions=1, metric="hamming")
    ours = lance_format.dataset(tmp_path)
    assert [index["type"] for index in ours.list_indices()] == ["IVF_FLAT"]
    (index,) = ours.describe_indices()
    assert (index.index_type, index.num_rows_indexed, index.details) == ("IVF_FLAT", 300, {})


def test_they_are_dropped(path: Path) -> None:
    table = lance_format.dataset(path)
    table.drop_index("BTREE of a")
    with pytest.raises(InvalidInputError, match="the indices are BITMAP"):
        table.drop_index("BTREE of a")
    assert "BTREE of a" not in {index["name"] for index in listed_by_pylance(path)}
    assert lance.dataset(str(path)).count_rows("a = 7") == 1
    for index in listed_by_pylance(path):
        table.drop_index(index["name"])
    assert not listed_by_pylance(path)
    assert_same(path)


def test_what_we_do_to_the_table_they_answer_rightly(path: Path) -> None:
    table = lance_format.dataset(path)
    lance_format.write_dataset(rows(300, 350), path, mode="append")
    table.delete("a % 10 = 3")
    table.update({"t": "'changed'", "a": "a + 1000"}, "a % 10 = 4")
    lance_format.dataset(path).optimize.compact_files(target_rows_per_fragment=150)
    table = lance_format.dataset(path)
    table.alter_columns({"path": "t", "name": "text"})
    table.drop_columns(["l"])
    reference = lance.dataset(str(path))
    everything = reference.to_table()
    for predicate in ("a = 7", "a = 1004", "a = 4", "a = 23", "a between 50 and 60", "s.x = 3", "text = 'changed'"):
        found = reference.to_table(filter=predicate).sort_by("a")
        assert found == reference.scanner(filter=predicate, use_scalar_index=False).to_table().sort_by("a"), predicate
        assert found == lance_format.dataset(path).to_table(filter=predicate).sort_by("a"), predicate
    nearest = reference.to_table(nearest={"column": "v", "q": [200.0] * 8, "k": 1})
    assert nearest["a"].to_pylist() == [200]
    assert reference.count_rows() == everything.num_rows
    assert not [index for index in listed_by_pylance(path) if index["fields"] == ["l"]]
    names = [index["name"] for index in listed_by_pylance(path) if index["fields"] != ["s.x"]]
    reference.optimize.optimize_indices(index_names=names)  # pylance 14 cannot go on with one of a nested field.
    assert lance.dataset(str(path)).to_table(filter="a = 1004")["text"].to_pylist() == ["changed"]
    assert_same(path)
