"""Searches for nearest neighbours, exact and by indices of pylance, find what pylance finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_format
from lance_format import CorruptFileError
from lance_format.errors import InvalidInputError
from lance_format.proto import table_pb2
from lance_format.table.format.index_metadata import parse_index
from lance_format.table.transaction.operations import CreateIndex

DIMENSION = 8
FLOAT = pa.float32()


def _vectors(rng: np.random.Generator, count: int, number: pa.DataType, *, with_nulls: bool = True) -> pa.Array:
    if number == pa.uint8():
        values = pa.array(rng.integers(0, 256, count * DIMENSION), number)
    else:
        found = rng.normal(size=count * DIMENSION)
        found[rng.random(found.size) < 0.01] = 0
        values = pa.array(found.astype(number.to_pandas_dtype()), number)
    mask = pa.array(rng.random(count) < 0.05) if with_nulls else None
    return pa.FixedSizeListArray.from_arrays(values, DIMENSION, mask=mask)


def _rows(rng: np.random.Generator, first: int, count: int, number: pa.DataType = FLOAT) -> pa.Table:
    numbers = range(first, first + count)
    group = pa.array(rng.integers(0, 5, count))
    return pa.table({"id": pa.array(numbers), "v": _vectors(rng, count, number), "c": group})


def _assert_same(ours: pa.Table, reference: pa.Table) -> None:
    assert ours.schema.names == reference.schema.names
    assert ours.schema.types == reference.schema.types
    assert ours.num_rows == reference.num_rows
    for name in ours.schema.names:
        if pa.types.is_floating(ours.schema.field(name).type):
            np.testing.assert_allclose(ours[name].to_numpy(), reference[name].to_numpy(), rtol=1e-4, atol=1e-4)
        elif name != "v":
            assert ours[name] == reference[name]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("nearest") / "t.lance"
    lance.write_dataset(_rows(np.random.default_rng(1), 0, 1000), root, max_rows_per_file=300)
    return root


QUERY = [0.3, -0.2, 1.0, 0.1, 0.0, -1.2, 0.4, 0.8]
SEARCHES: list[dict[str, Any]] = [
    {},
    {"k": 5},
    {"metric": "Cosine"},
    {"metric": "dot"},
    {"metric": "euclidean"},
    {"distance_range": (1.8, 3.0), "k": 500},
    {"distance_range": (None, 2.5)},
    {"k": 3000},
    {"q": [QUERY, QUERY[::-1]], "k": 3},
    {"q": [float("nan")] * DIMENSION},
    {"q": [0] * DIMENSION, "metric": "cosine"},
]
SCANS: list[dict[str, Any]] = [
    {},
    {"columns": ["id"]},
    {"columns": ["_distance", "id"]},
    {"columns": {"next": "id + 1", "twice": "_distance * 2"}},
    {"columns": []},
    {"columns": ["id"], "with_row_id": True, "with_row_address": True},
    {"filter": "c < 2"},
    {"filter": "c < 2", "prefilter": True},
    {"filter": "_distance < 2.5"},
    {"limit": 3, "offset": 2},
    {"order_by": ["id"]},
    {"disable_scoring_autoprojection": True},
]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("scan", SCANS, ids=str)
def test_exact(path: Path, search: dict[str, Any], scan: dict[str, Any]) -> None:
    nearest = {"column": "v", "q": QUERY, "k": 10, **search}
    ours = lance_format.dataset(path).to_table(nearest=nearest, **scan)
    _assert_same(ours, lance.dataset(path).to_table(nearest=nearest, **scan))


@pytest.mark.parametrize(
    ("number", "metrics"),
    [
        (pa.float16(), ("l2", "cosine", "dot", None)),
        (pa.float32(), ("l2", "cosine", "dot", None)),
        (pa.float64(), ("l2", "cosine", "dot", None)),
        (pa.uint8(), ("hamming", None)),
    ],
    ids=str,
)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_types_of_numbers(tmp_path: Path, number: pa.DataType, metrics: tuple[str | None, ...], version: str) -> None:
    rng = np.random.default_rng(7)
    rows = _rows(rng, 0, 400, number)
    lance.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=150, data_storage_version=version)
    query = rng.integers(0, 256, DIMENSION) if number == pa.uint8() else rng.normal(size=DIMENSION)
    for metric in metrics:
        nearest = {"column": "v", "q": query, "k": 20, "metric": metric}
        ours = lance_format.dataset(tmp_path / "t.lance").to_table(nearest=nearest)
        reference = lance.dataset(tmp_path / "t.lance").to_table(nearest=nearest)
        tolerance = 2e-2 if number == pa.float16() else 1e-4
        np.testing.assert_allclose(ours["_distance"], reference["_distance"], rtol=tolerance, atol=tolerance)
        if number != pa.float16():
            assert ours["id"] == reference["id"]


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("queries", [QUERY, [QUERY], [QUERY, QUERY[::-1]]], ids=["vector", "one", "two"])
def test_several_vectors_per_row(tmp_path: Path, metric: str, queries: list[Any]) -> None:
    rng = np.random.default_rng(3)
    items = _vectors(rng, 300, pa.float32(), with_nulls=False)
    offsets = np.sort(np.concatenate([[0, 300], rng.integers(0, 300, 120)])).astype(np.int32)
    column = pa.ListArray.from_arrays(pa.array(offsets), items, mask=pa.array(rng.random(121) < 0.05))
    rows = pa.table({"id": pa.array(range(121)), "v": column})
    lance.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=50)
    nearest = {"column": "v", "q": queries, "k": 40, "metric": metric}
    ours = lance_format.dataset(tmp_path / "t.lance").to_table(nearest=nearest)
    _assert_same(ours, lance.dataset(tmp_path / "t.lance").to_table(nearest=nearest))


def test_null_and_special_vectors(tmp_path: Path) -> None:
    ones = [1.0] * DIMENSION
    vectors = [ones, None, [np.nan] * DIMENSION, [0.0] * DIMENSION, [*ones[1:], None], [np.inf] * DIMENSION]
    rows = pa.table({"id": pa.array(range(6)), "v": pa.array(vectors, pa.list_(pa.float32(), DIMENSION))})
    lance.write_dataset(rows, tmp_path / "t.lance")
    for metric in ("l2", "cosine", "dot"):
        nearest = {"column": "v", "q": ones, "k": 10, "metric": metric}
        ours = lance_format.dataset(tmp_path / "t.lance").to_table(nearest=nearest)
        _assert_same(ours, lance.dataset(tmp_path / "t.lance").to_table(nearest=nearest))


def test_fields_below_structs(tmp_path: Path) -> None:
    vectors = _vectors(np.random.default_rng(2), 50, pa.float32(), with_nulls=False)
    group = pa.StructArray.from_arrays([vectors], ["v"], mask=pa.array(np.arange(50) % 7 == 0))
    lance.write_dataset(pa.table({"id": pa.array(range(50)), "s": group}), tmp_path / "t.lance")
    nearest = {"column": "s.v", "q": QUERY, "k": 20}
    ours = lance_format.dataset(tmp_path / "t.lance").to_table(columns=["id"], nearest=nearest)
    _assert_same(ours, lance.dataset(tmp_path / "t.lance").to_table(columns=["id"], nearest=nearest))


KINDS: list[tuple[str, dict[str, Any]]] = [
    ("IVF_FLAT", {}),
    ("IVF_SQ", {}),
    ("IVF_PQ", {"num_sub_vectors": 4}),
    ("IVF_PQ", {"num_sub_vectors": 4, "num_bits": 4}),
    ("IVF_HNSW_FLAT", {}),
    ("IVF_HNSW_SQ", {}),
    ("IVF_HNSW_PQ", {"num_sub_vectors": 4}),
]


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=str)
def test_distances_by_an_index(tmp_path: Path, kind: str, parameters: dict[str, Any], metric: str) -> None:
    rng = np.random.default_rng(4)
    path = tmp_path / "t.lance"
    reference = lance.write_dataset(_rows(rng, 0, 1500), path, max_rows_per_file=400)
    reference.create_index("v", kind, num_partitions=4, metric=metric, **parameters)
    reference, ours = lance.dataset(path), lance_format.dataset(path)
    assert "by the index 'v_idx'" in ours.scanner(nearest={"column": "v", "q": QUERY}).explain_plan()
    for query in rng.normal(size=(5, DIMENSION)):
        # Pylance finds by graphs what its search reaches; a large `ef` reaches all.
        nearest = {"column": "v", "q": query, "k": 10, "nprobes": 2, "ef": 2000}
        expected, found = (table.to_table(["id"], nearest=nearest) for table in (reference, ours))
        distances = expected["_distance"].to_numpy()
        if metric == "cosine" and "FLAT" not in kind:
            distances = distances / 2  # Pylance returns squared distances of unit vectors.
        tolerance = 0.05 if parameters.get("num_bits") == 4 else 1e-4  # Pylance rounds sums of half bytes.
        np.testing.assert_allclose(found["_distance"].to_numpy(), distances, rtol=tolerance, atol=tolerance)
        if tolerance < 0.01:
            assert len(set(found["id"].to_pylist()) & set(expected["id"].to_pylist())) >= 9


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("num_bits", range(1, 10))
def test_distances_by_rotated_codes(tmp_path: Path, num_bits: int, metric: str) -> None:
    rng = np.random.default_rng(4)
    path = tmp_path / "t.lance"
    reference = lance.write_dataset(_rows(rng, 0, 1500), path, max_rows_per_file=400)
    reference.create_index("v", "IVF_RQ", num_partitions=4, metric=metric, num_bits=num_bits)
    reference, ours = lance.dataset(path), lance_format.dataset(path)
    assert "by the index 'v_idx'" in ours.scanner(nearest={"column": "v", "q": QUERY}).explain_plan()
    for query in rng.normal(size=(5, DIMENSION)):
        nearest = {"column": "v", "q": query, "nprobes": 2}
        theirs = reference.to_table(["id"], nearest={**nearest, "k": 10, "approx_mode": "accurate"})
        found = ours.to_table(["id"], nearest={**nearest, "k": 1500})
        expected = theirs["_distance"].to_numpy() / (2 if metric == "cosine" else 1)
        distances = found["_distance"].to_numpy()
        # Pylance rounds, and leaves out rows that are too far by their signs.
        np.testing.assert_array_less(distances[:10], expected + 1e-3 * np.abs(expected) + 1e-3)
        places = [found["id"].to_pylist().index(number) for number in theirs["id"].to_pylist()]
        np.testing.assert_allclose(distances[places], expected, rtol=1e-3, atol=1e-3)


def _change(path: Path, rng: np.random.Generator, first: int) -> int:
    """Change a table by pylance, and return the number of the next row."""
    table, share = lance.dataset(path), int(rng.integers(2, 9))
    match rng.choice(["append", "append and index", "delete", "update", "move", "compact", "index"]):
        case "append":
            lance.write_dataset(_rows(rng, first, 100), path, mode="append")
            return first + 100
        case "append and index":
            lance.write_dataset(_rows(rng, first, 100), path, mode="append").optimize.optimize_indices()
            return first + 100
        case "delete":
            table.delete(f"id % {share} = 1")
        case "update":
            table.update({"c": "c + 1"}, where=f"id % {share} = 0")
        case "move":
            moved = table.to_table(filter=f"id % {share} = 0", limit=60)
            moved = moved.set_column(1, "v", _rows(rng, 0, 60)["v"].slice(0, moved.num_rows))
            table.merge_insert("id").when_matched_update_all().execute(moved)
        case "compact":
            table.optimize.compact_files(target_rows_per_fragment=600)
        case _:
            table.optimize.optimize_indices()
    return first


@pytest.mark.parametrize("seed", range(24))
def test_changed_tables(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path, count = tmp_path / "t.lance", int(rng.integers(300, 1500))
    kind, parameters = KINDS[int(rng.integers(len(KINDS)))]
    metric = str(rng.choice(["l2", "cosine", "dot"]))
    stable = bool(rng.random() < 0.5)
    table = lance.write_dataset(_rows(rng, 0, count), path, max_rows_per_file=250, enable_stable_row_ids=stable)
    table.create_index("v", kind, num_partitions=4, metric=metric, **parameters)
    for _ in range(rng.integers(5)):
        count = _change(path, rng, count)
    ours = lance_format.dataset(path)
    assert ours.verify().problems == ()
    for _ in range(4):
        scan: dict[str, Any] = {"columns": ["id", "c"]}
        if rng.random() < 0.6:
            scan |= {"filter": f"c < {rng.integers(6)}", "prefilter": bool(rng.random() < 0.7)}
        nearest = {"column": "v", "q": rng.normal(size=DIMENSION), "k": int(rng.integers(1, 30)), "metric": metric}
        exact = ours.to_table(nearest={**nearest, "use_index": False}, **scan)
        _assert_same(exact, lance.dataset(path).to_table(nearest={**nearest, "use_index": False}, **scan))
        # All partitions are searched, and the distances of all candidates are computed.
        found = ours.to_table(nearest={**nearest, "nprobes": 4, "refine_factor": 3000}, **scan)
        _assert_same(found, exact)


def test_fast_search_leaves_out_new_fragments(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    path = tmp_path / "t.lance"
    lance.write_dataset(_rows(rng, 0, 500), path).create_index("v", "IVF_FLAT", num_partitions=2)
    lance.write_dataset(_rows(rng, 500, 500), path, mode="append")
    nearest = {"column": "v", "q": QUERY, "k": 50}
    for fast in (False, True):
        found = lance_format.dataset(path).to_table(["id"], nearest=nearest, fast_search=fast)
        assert (max(found["id"].to_pylist()) >= 500) != fast
        _assert_same(found, lance.dataset(path).to_table(["id"], nearest=nearest, fast_search=fast))


@pytest.mark.parametrize(
    ("known", "other"),
    [
        (b"IVF_RQ", b"IVF_XQ"),
        (b"raw_query", b"new_query"),
        (b'_type\\":\\"fast', b'_type\\":\\"slow'),
        (b'packed\\":true', b'packet\\":true'),
        (b"raw_query", b"res_query"),
        (b'num_bits\\":5', b'num_bits\\":0'),
    ],
)
def test_an_index_of_an_unknown_form_is_not_used(tmp_path: Path, known: bytes, other: bytes) -> None:
    rng = np.random.default_rng(9)
    table = lance.write_dataset(_rows(rng, 0, 600), tmp_path / "t.lance")
    table.create_index("v", "IVF_RQ", num_partitions=2)
    changed = [file for file in tmp_path.glob("t.lance/_indices/*/*.idx") if known in file.read_bytes()]
    assert len(changed) == 1
    changed[0].write_bytes(changed[0].read_bytes().replace(known, other))
    ours = lance_format.dataset(tmp_path / "t.lance")
    nearest = {"column": "v", "q": QUERY}
    assert "without an index" in ours.scanner(nearest=nearest).explain_plan()
    assert ours.to_table(nearest=nearest) == ours.to_table(nearest={**nearest, "use_index": False})


def test_an_index_of_the_oldest_form_is_not_used(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    path = tmp_path / "t.lance"
    table = lance.write_dataset(_rows(rng, 0, 600), path)
    table.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2, index_file_version="LEGACY")
    nearest = {"column": "v", "q": QUERY}
    for is_known in (False, True):
        ours = lance_format.dataset(path)
        assert ("by the index" in ours.scanner(nearest=nearest).explain_plan()) == is_known
        exact = ours.to_table(nearest={**nearest, "use_index": False})
        assert ours.to_table(nearest={**nearest, "refine_factor": 100}) == exact
        assert [index["type"] for index in ours.list_indices()] == ["IVF_PQ"]
        assert not ours.verify().damaged_indices
        ours.optimize.optimize_indices()
        assert lance_format.dataset(path).to_table(nearest={**nearest, "refine_factor": 100}) == exact
        lance_format.dataset(path).optimize.optimize_indices(retrain=True)  # It becomes one of a known form.


UNKNOWN: dict[str, Callable[[table_pb2.IndexMetadata], object]] = {
    "no details": lambda message: message.ClearField("index_details"),
    "details of another kind": lambda message: setattr(message.index_details, "type_url", "/lance.NewIndexDetails"),
    "a later version": lambda message: setattr(message, "index_version", 2),
    "no bitmap": lambda message: message.ClearField("fragment_bitmap"),
    "of two columns": lambda message: message.fields.append(0),
}
KNOWN: dict[str, Callable[[table_pb2.IndexMetadata], object]] = {
    "no version": lambda message: message.ClearField("index_version"),
    "malformed details": lambda message: setattr(message.index_details, "value", b"\xff"),
    "empty details": lambda message: setattr(message.index_details, "value", b""),
    "no sizes of files": lambda message: message.ClearField("files"),
}


@pytest.mark.parametrize("what", [*UNKNOWN, *KNOWN])
def test_an_index_is_described_otherwise(tmp_path: Path, what: str) -> None:
    rng = np.random.default_rng(9)
    lance.write_dataset(_rows(rng, 0, 600), tmp_path / "t.lance").create_index("v", "IVF_FLAT", num_partitions=2)
    table = lance_format.dataset(tmp_path / "t.lance")
    (index,) = table._table.manifest.indices
    message = table_pb2.IndexMetadata()
    message.CopyFrom(index.message)
    (UNKNOWN | KNOWN)[what](message)
    table._table.commit(CreateIndex((parse_index(message),), (index,)))
    nearest = {"column": "v", "q": QUERY}
    for _ in range(2):
        table = lance_format.dataset(tmp_path / "t.lance")
        assert ("by the index" in table.scanner(nearest=nearest).explain_plan()) == (what in KNOWN)
        exact = table.to_table(["id"], nearest={**nearest, "use_index": False})
        assert table.to_table(["id"], nearest={**nearest, "nprobes": 2}) == exact
        lance_format.write_dataset(_rows(rng, 600, 100), tmp_path / "t.lance", mode="append")


def test_another_metric_than_that_of_the_index(tmp_path: Path) -> None:
    table = lance.write_dataset(_rows(np.random.default_rng(9), 0, 600), tmp_path / "t.lance")
    table.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2, metric="cosine")
    ours = lance_format.dataset(tmp_path / "t.lance")
    nearest = {"column": "v", "q": QUERY, "metric": "l2"}
    assert ours.to_table(nearest=nearest) == ours.to_table(nearest={**nearest, "use_index": False})
    assert (
        ours.scanner(nearest={**nearest, "metric": None})
        .explain_plan()
        .splitlines()[0]
        .endswith("10 rows by v, cosine, by the index 'v_idx'")
    )


@pytest.mark.parametrize("name", ["index.idx", "auxiliary.idx"])
@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_SQ", "IVF_FLAT", "IVF_RQ"])
def test_damaged_files(tmp_path: Path, name: str, kind: str) -> None:
    rng = np.random.default_rng(10)
    table = lance.write_dataset(_rows(rng, 0, 600), tmp_path / "t.lance")
    table.create_index("v", kind, num_partitions=2, **({"num_sub_vectors": 2} if kind == "IVF_PQ" else {}))
    (file,) = tmp_path.glob(f"t.lance/_indices/*/{name}")
    content = file.read_bytes()
    nearest = {"column": "v", "q": QUERY}
    for place in sorted(rng.integers(0, len(content), 60).tolist()):
        damaged = bytearray(content)
        damaged[place] ^= int(rng.integers(1, 256))
        file.write_bytes(damaged)
        try:
            found = lance_format.dataset(tmp_path / "t.lance").to_table(["id"], nearest=nearest)
        except lance_format.LanceError:
            continue
        assert found.num_rows <= 10  # The format has no checksums: codes and ids may be others.
    file.write_bytes(content[:100])
    with pytest.raises(CorruptFileError, match="verify with repair=True makes the index again"):
        lance_format.dataset(tmp_path / "t.lance").to_table(nearest=nearest)
    file.unlink()
    with pytest.raises(lance_format.DatasetNotFoundError, match=name):
        lance_format.dataset(tmp_path / "t.lance").to_table(nearest=nearest)


def test_batches_of_queries_by_an_index(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    table = lance.write_dataset(_rows(rng, 0, 900), tmp_path / "t.lance", max_rows_per_file=300)
    table.create_index("v", "IVF_FLAT", num_partitions=3)
    lance.write_dataset(_rows(rng, 900, 100), tmp_path / "t.lance", mode="append")
    nearest = {"column": "v", "q": rng.normal(size=(3, DIMENSION)), "k": 4, "nprobes": 3}
    ours = lance_format.dataset(tmp_path / "t.lance").to_table(["id"], nearest=nearest)
    _assert_same(ours, lance.dataset(tmp_path / "t.lance").to_table(["id"], nearest=nearest))


def test_the_limit_is_the_default_of_k(path: Path) -> None:
    table, nearest = lance_format.dataset(path), {"column": "v", "q": QUERY}
    assert table.to_table(nearest=nearest).num_rows == 10
    expected = table.to_table(nearest={**nearest, "k": 25})
    assert table.to_table(nearest=nearest, limit=25) == expected
    assert table.to_table(nearest=nearest, limit=20, offset=5) == expected.slice(5)


def test_a_column_of_the_name_of_the_distance(tmp_path: Path) -> None:
    rows = pa.table({"_distance": pa.array(range(9)), "v": _vectors(np.random.default_rng(1), 9, pa.float32())})
    table = lance_format.write_dataset(rows, tmp_path / "t.lance")
    with pytest.raises(InvalidInputError, match="has a column '_distance'"):
        table.to_table(nearest={"column": "v", "q": QUERY})


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("num_to_merge", [None, 0])
def test_an_index_without_rows_has_no_files(tmp_path: Path, kind: str, num_to_merge: int | None) -> None:
    vectors = np.random.default_rng(5).normal(size=(300, 4)).astype(np.float32)
    table = pa.table({"id": range(300), "v": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 4)})
    reference = lance.write_dataset(table, tmp_path)
    reference.create_index("v", kind, num_partitions=1, num_sub_vectors=2, train=False)
    nearest = {"column": "v", "q": vectors[7], "k": 3}
    ours = lance_format.dataset(tmp_path)
    assert ours.to_table(["id"], nearest=nearest) == lance.dataset(tmp_path).to_table(["id"], nearest=nearest)
    assert ours.verify().problems == ()
    ours.optimize.optimize_indices(num_indices_to_merge=num_to_merge)
    nearest["refine_factor"] = 100
    found = [library.dataset(tmp_path).to_table(["id"], nearest=nearest)["id"] for library in (lance_format, lance)]
    assert found[0] == found[1]
    assert len(ours.list_indices()) == 1
    assert "by the index" in ours.scanner(nearest=nearest).explain_plan()
