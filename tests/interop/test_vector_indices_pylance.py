"""Vector indices that are made here: pylance searches by them, and finds what we find."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

import lance_format
from lance_format import (
    ChecksumError,
    CorruptFileError,
    IndexConfig,
    InvalidInputError,
    LanceDataset,
    NotSupportedError,
)
from lance_format.vectors.rotated_codes import MatrixRotation, RotatedCodes, Rotation
from lance_format.vectors.sign_codes import SignCodes
from lance_format.vectors.training import VectorModel

DIMENSION = 8
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("IVF_FLAT", {}),
    ("IVF_SQ", {}),
    ("IVF_PQ", {"num_sub_vectors": 4}),
    ("IVF_PQ", {"num_sub_vectors": 2, "num_bits": 4}),
    ("IVF_HNSW_FLAT", {"m": 10, "ef_construction": 60}),
    ("IVF_HNSW_SQ", {}),
    ("IVF_HNSW_PQ", {"num_sub_vectors": 4, "max_level": 3}),
    ("IVF_RQ", {}),
    ("IVF_RQ", {"num_bits": 1}),
]
GRAPH_KINDS = [(kind, parameters) for kind, parameters in KINDS if "HNSW" in kind]
METRICS = ("l2", "cosine", "dot")
FLOAT = pa.float32()


def _rows(rng: np.random.Generator, first: int, count: int, number: pa.DataType = FLOAT) -> pa.Table:
    numbers = rng.normal(size=(count, DIMENSION))
    numbers[rng.random(count) < 0.02] = 0
    numbers[rng.random(count) < 0.02, 3] = np.nan
    values = pa.array(numbers.ravel().astype(number.to_pandas_dtype()), number)
    vectors = pa.FixedSizeListArray.from_arrays(values, DIMENSION, mask=pa.array(rng.random(count) < 0.05))
    group = pa.array(rng.integers(0, 5, count))
    return pa.table({"id": pa.array(range(first, first + count)), "v": vectors, "c": group})


def _found(table: Any, query: Any, metric: str, kind: str, **search: Any) -> list[tuple[int, Any]]:
    nearest = {"column": "v", "q": query, "k": 10, "metric": metric, **search}
    if "HNSW" in kind:
        nearest["ef"] = 4000  # More than any test has rows, so that graphs lead to all.
    if isinstance(table, lance.LanceDataset) and kind == "IVF_RQ":
        nearest["approx_mode"] = "accurate"  # Without it, pylance rounds what the bits of codes add up to.
    found = table.to_table(["id"], nearest=nearest)
    distances = found["_distance"].to_numpy()
    if (
        isinstance(table, lance.LanceDataset)
        and metric == "cosine"
        and not kind.endswith("FLAT")
        and "refine_factor" not in search
    ):
        distances = distances / 2  # Pylance returns squared distances of unit vectors.
    error = 2e-3 if kind == "IVF_RQ" else 1e-4
    return list(zip(found["id"].to_pylist(), [pytest.approx(x, rel=1e-3, abs=error) for x in distances], strict=True))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=str)
@pytest.mark.parametrize("stable", [False, True])
def test_both_search_by_them(tmp_path: Path, kind: str, parameters: dict[str, Any], metric: str, stable: bool) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "t.lance"
    ours = lance_format.write_dataset(_rows(rng, 0, 1500), path, max_rows_per_file=400, enable_stable_row_ids=stable)
    ours.create_index("v", kind, metric=metric, num_partitions=5, **parameters)
    reference = lance.dataset(path)
    (described,) = reference.describe_indices()
    assert (described.index_type, described.num_rows_indexed) == (kind, 1500)
    statistics = reference.stats.index_stats("v_idx")
    assert statistics["indices"][0]["metric_type"] == metric
    assert statistics["indices"][0]["num_partitions"] == 5
    for query in rng.normal(size=(4, DIMENSION)):
        theirs, mine = (_found(table, query, metric, kind, nprobes=2) for table in (reference, ours))
        if parameters.get("num_bits") != 4:  # Pylance rounds sums of half bytes.
            assert [found[1] for found in mine] == [found[1].expected for found in theirs]
        exact = _found(ours, query, metric, kind, use_index=False)
        refined = [_found(x, query, metric, kind, nprobes=5, refine_factor=150) for x in (reference, ours)]
        assert [[found[0] for found in each] for each in refined] == [[found[0] for found in exact]] * 2


@pytest.mark.parametrize("seed", range(20))
def test_changes_by_both(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    path, count = tmp_path / "t.lance", int(rng.integers(300, 1200))
    kind, parameters = KINDS[int(rng.choice([0, 1, 2, 4, 5, 6, 7]))]
    metric = str(rng.choice(METRICS))
    stable = bool(rng.random() < 0.5)
    rows = _rows(rng, 0, count)
    table = lance_format.write_dataset(rows, path, max_rows_per_file=250, enable_stable_row_ids=stable)
    table.create_index("v", kind, metric=metric, num_partitions=4, **parameters)
    for _ in range(rng.integers(1, 6)):
        library: Any = rng.choice([lance, lance_format])
        table, share = library.dataset(path), int(rng.integers(2, 9))
        match rng.choice(["append", "delete", "update", "move", "compact", "index", "retrain"]):
            case "append":
                library.write_dataset(_rows(rng, count, 150), path, mode="append")
                count += 150
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
            case "index":
                table.optimize.optimize_indices()
            case _:
                table.optimize.optimize_indices(retrain=True)
    ours, reference = lance_format.dataset(path), lance.dataset(path)
    assert ours.verify().problems == ()
    assert ours.scanner(nearest={"column": "v", "q": [1] * DIMENSION}).explain_plan().count("by the index 'v_idx'") == 1
    for query in rng.normal(size=(3, DIMENSION)):
        exact = _found(ours, query, metric, kind, use_index=False)
        last = exact[-1][1].expected
        for table in (ours, reference):
            found = _found(table, query, metric, kind, nprobes=1000, refine_factor=300)
            assert [distance.expected for _, distance in found] == [distance for _, distance in exact]
            # Of rows as far away as the last one, any may be found.
            wanted = {number for number, distance in exact if distance != last}
            assert wanted <= {number for number, _ in found}


@pytest.mark.parametrize("number", [pa.float16(), pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_HNSW_FLAT", "IVF_RQ"])
def test_types_of_numbers(tmp_path: Path, number: pa.DataType, kind: str) -> None:
    rng = np.random.default_rng(3)
    table = lance_format.write_dataset(_rows(rng, 0, 600, number), tmp_path / "t.lance")
    table.create_index("v", kind, num_partitions=3)
    query = rng.normal(size=DIMENSION)
    exact = [found[0] for found in _found(table, query, "l2", kind, use_index=False)]
    for library in (lance_format, lance):
        found = _found(library.dataset(tmp_path / "t.lance"), query, "l2", kind, nprobes=3, refine_factor=60)
        assert [row[0] for row in found] == exact


@pytest.mark.parametrize("num_bits", [1, 2, 5, 9])
def test_pylance_merges_partitions_of_rotated_codes(tmp_path: Path, num_bits: int) -> None:
    rng, path = np.random.default_rng(3), tmp_path / "t.lance"
    table = lance_format.write_dataset(_rows(rng, 0, 300), path)
    table.create_index("v", "IVF_RQ", num_partitions=3, num_bits=num_bits)
    table.insert(_rows(rng, 300, 360))
    lance.dataset(path).optimize.optimize_indices()
    query = rng.normal(size=DIMENSION)
    exact = [found[0] for found in _found(table, query, "l2", "IVF_RQ", use_index=False)]
    for library in (lance_format, lance):
        found = _found(library.dataset(path), query, "l2", "IVF_RQ", nprobes=3, refine_factor=60)
        assert [row[0] for row in found] == exact


def test_tasks(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    path = tmp_path / "t.lance"
    table = lance_format.write_dataset(_rows(rng, 0, 2000), path, max_rows_per_file=300)
    config = IndexConfig("IVF_PQ", {"num_partitions": 6, "num_sub_vectors": 4, "distance_type": "cosine"})
    plan = pickle.loads(pickle.dumps(table.plan_scalar_index("v", config, split_size_bytes=1)))
    assert len(plan.tasks) == 7
    results = [pickle.loads(pickle.dumps(task.execute(table))) for task in plan.tasks]
    plan.commit(table, results)
    table = lance_format.dataset(path)
    (index,) = table.list_indices()
    assert index["fragment_ids"] == set(range(7))
    assert len(list(path.glob("_indices/*/*.idx"))) == 2  # Those of the tasks are gone.
    other = lance_format.write_dataset(table.to_table(), tmp_path / "u.lance")
    other.create_scalar_index("v", config)
    for query in rng.normal(size=(3, DIMENSION)):
        # Samples differ, so that the models do.
        for each in (table, other):
            found = _found(each, query, "cosine", "IVF_PQ", nprobes=6, refine_factor=200)
            assert found == _found(each, query, "cosine", "IVF_PQ", use_index=False)


@pytest.mark.parametrize("bounds", [(3.0, None), (8.0, 9.0), (None, 2.0)], ids=str)
def test_a_range_of_distances(tmp_path: Path, bounds: tuple[float | None, float | None]) -> None:
    rng = np.random.default_rng(10)
    table = lance_format.write_dataset(_rows(rng, 0, 1500), tmp_path / "t.lance", max_rows_per_file=400)
    table.create_index("v", "IVF_FLAT", num_partitions=4)
    exact = _found(table, [0.1] * DIMENSION, "l2", "IVF_FLAT", distance_range=bounds, use_index=False)
    assert exact
    for library in (lance_format, lance):
        found = library.dataset(tmp_path / "t.lance")
        assert _found(found, [0.1] * DIMENSION, "l2", "IVF_FLAT", distance_range=bounds, nprobes=4) == exact


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=str)
@pytest.mark.parametrize("appends", [False, True])
def test_measured_distances_decide_on_the_upper_bound(
    tmp_path: Path, kind: str, parameters: dict[str, Any], metric: str, appends: bool
) -> None:
    rng = np.random.default_rng(16)
    table = lance_format.write_dataset(_rows(rng, 0, 1500), tmp_path / "t.lance")
    table.create_index("v", kind, metric=metric, num_partitions=4, **parameters)
    if appends:
        table = lance_format.write_dataset(_rows(rng, 1500, 9), tmp_path / "t.lance", mode="append")
    nearest = {"column": "v", "metric": metric, "k": 100}
    for query in rng.normal(size=(5, DIMENSION)):
        exact = {**nearest, "q": query, "use_index": False}
        bounds = (None, table.to_table(nearest=exact)["_distance"][40].as_py())
        expected = table.to_table(["id"], nearest={**exact, "distance_range": bounds})
        refined = {**nearest, "q": query, "nprobes": 4, "refine_factor": 15, "distance_range": bounds}
        assert table.to_table(["id"], nearest=refined) == expected


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("rotated_by", ["signs", "matrix"])
@pytest.mark.parametrize("num_bits", [None, 1, 4])
def test_rotated_codes_of_other_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_bits: int | None, rotated_by: str, metric: str
) -> None:
    """Early releases compared signs only, relative to the centroid, and rotated by a matrix."""
    rng = np.random.default_rng(17)
    matrix = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0].astype(np.float32)
    rotation = Rotation.at_random(DIMENSION, rng) if rotated_by == "signs" else MatrixRotation(matrix)
    codes: Any = SignCodes(DIMENSION, metric, rotation)
    if num_bits is not None:
        codes = RotatedCodes(DIMENSION, metric, num_bits, rotation)

    def trained(*arguments: Any) -> VectorModel:
        return dataclasses.replace(real(*arguments), codes=codes)

    real = VectorModel.trained
    monkeypatch.setattr(VectorModel, "trained", trained)
    table = lance_format.write_dataset(_rows(rng, 0, 1500), tmp_path / "t.lance", max_rows_per_file=400)
    table.create_index("v", "IVF_RQ", metric=metric, num_partitions=5, num_bits=num_bits or 1)
    monkeypatch.undo()
    reference = lance.dataset(tmp_path / "t.lance")
    for _ in range(2):
        ours = lance_format.dataset(tmp_path / "t.lance")
        assert ours.verify().problems == ()
        assert "by the index" in ours.scanner(nearest={"column": "v", "q": [1] * DIMENSION}).explain_plan()
        for query in rng.normal(size=(4, DIMENSION)):
            theirs, mine = (_found(table, query, metric, "IVF_RQ", nprobes=2) for table in (reference, ours))
            assert [found[1] for found in mine] == [found[1].expected for found in theirs]
        lance_format.write_dataset(_rows(rng, 1500, 300), tmp_path / "t.lance", mode="append")
        lance_format.dataset(tmp_path / "t.lance").optimize.optimize_indices(num_indices_to_merge=1)
        reference = lance.dataset(tmp_path / "t.lance")


def test_equal_rows_make_equal_models(tmp_path: Path) -> None:
    rows = _rows(np.random.default_rng(5), 0, 700)
    found = []
    for name in "ab":
        table = lance_format.write_dataset(rows, tmp_path / f"{name}.lance")
        table.create_index("v", "IVF_PQ", num_partitions=3)
        found.append(table.to_table(["id"], nearest={"column": "v", "q": [0.5] * DIMENSION, "k": 50}))
    assert found[0] == found[1]


@pytest.mark.parametrize("count", [0, 1, 3, 300])
@pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=str)
def test_few_rows(tmp_path: Path, count: int, kind: str, parameters: dict[str, Any]) -> None:
    rng = np.random.default_rng(6)
    path = tmp_path / "t.lance"
    table = lance_format.write_dataset(_rows(rng, 0, 300).slice(0, count), path)
    table.create_index("v", kind, **parameters)
    table = lance_format.write_dataset(_rows(rng, 300, 200), path, mode="append")
    table.optimize.optimize_indices()
    query = rng.normal(size=DIMENSION)
    exact = [found[0] for found in _found(table, query, "l2", kind, use_index=False)]
    for library in (lance_format, lance):
        found = _found(library.dataset(path), query, "l2", kind, nprobes=30, refine_factor=100)
        assert [row[0] for row in found] == exact


def test_sizes_of_partitions(tmp_path: Path) -> None:
    vectors = np.random.default_rng(7).random((1000, 8), np.float32)
    table = lance.write_dataset(pa.table({"v": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 8)}), tmp_path)
    ours = lance_format.dataset(tmp_path)
    for size, given in ((500, None), (300, None), (2000, None), (500, 3)):
        parameters = {"target_partition_size": size, "num_partitions": given, "num_sub_vectors": 2}
        ours.create_index("v", "IVF_PQ", replace=True, **parameters)
        table.create_index("v", "IVF_PQ", name="theirs", replace=True, **parameters)
        table.checkout_version(table.latest_version)
        mine, theirs = (table.stats.index_stats(name)["indices"][0] for name in ("v_idx", "theirs"))
        assert mine["num_partitions"] == theirs["num_partitions"] == (given or max(1000 // size, 1))
        ours = lance_format.dataset(tmp_path)
        described = (*ours.describe_indices(), *table.describe_indices())
        assert [index.details["target_partition_size"] for index in described] == [size] * 4
    for name in ("v_idx", "theirs"):
        ours.optimize.optimize_indices(index_names=[name], retrain=True)
        assert ours.stats.index_stats(name)["indices"][0]["num_partitions"] == 2
        assert next(i for i in ours.describe_indices() if i.name == name).details["target_partition_size"] == 500


@pytest.mark.parametrize("num_partitions", [301, 2**32 - 1])
@pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=str)
def test_more_partitions_than_rows(tmp_path: Path, kind: str, parameters: dict[str, Any], num_partitions: int) -> None:
    rng = np.random.default_rng(11)
    path = tmp_path / "t.lance"
    rows = _rows(rng, 0, 300)
    table = lance_format.write_dataset(rows, path, max_rows_per_file=100)
    table.create_index("v", kind, num_partitions=num_partitions, sample_rate=num_partitions, **parameters)
    table = lance_format.write_dataset(_rows(rng, 300, 100), path, mode="append")
    table.optimize.optimize_indices()
    (described,) = lance.dataset(path).stats.index_stats("v_idx")["indices"][:1]
    assert described["num_partitions"] == np.isfinite(np.stack(rows["v"].drop_null().to_numpy())).all(axis=1).sum()
    query = rng.normal(size=DIMENSION)
    exact = [found[0] for found in _found(table, query, "l2", kind, use_index=False)]
    for library in (lance_format, lance):
        found = _found(library.dataset(path), query, "l2", kind, nprobes=400, refine_factor=100)
        assert [row[0] for row in found] == exact


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=str)
@pytest.mark.parametrize("number", [pa.float32(), pa.float64()], ids=str)
def test_numbers_whose_squares_are_too_large(
    tmp_path: Path, number: pa.DataType, kind: str, parameters: dict[str, Any], metric: str
) -> None:
    rng = np.random.default_rng(12)
    rows = _rows(rng, 0, 500, number)
    numbers = np.stack([np.zeros(DIMENSION) if each is None else np.array(each) for each in rows["v"].to_pylist()])
    large = rng.random(500) < 0.1
    numbers[large] *= 1e30 if number == FLOAT else 1e300
    values = pa.array(numbers.ravel().astype(number.to_pandas_dtype()), number)
    rows = rows.set_column(1, "v", pa.FixedSizeListArray.from_arrays(values, DIMENSION))
    path = tmp_path / "t.lance"
    table = lance_format.write_dataset(rows, path)
    table.create_index("v", kind, metric=metric, num_partitions=4, **parameters)
    query = rng.normal(size=DIMENSION)
    found = _found(table, query, metric, kind, nprobes=4, refine_factor=50)
    if metric == "l2":
        assert found == _found(table, query, metric, kind, use_index=False)
    assert metric == "cosine" or not large[[number for number, _ in found]].any()
    for query in numbers[large][:2]:  # Their distances are infinite.
        assert len(_found(table, query, metric, kind, nprobes=4)) <= 10


def test_fields_below_structs_and_names(tmp_path: Path) -> None:
    rows = _rows(np.random.default_rng(7), 0, 400)
    group = pa.StructArray.from_arrays([rows["v"].combine_chunks()], ["v"], mask=pa.array(np.arange(400) % 9 == 0))
    table = lance_format.write_dataset(pa.table({"id": rows["id"], "s": group}), tmp_path / "t.lance")
    table.create_index("s.v", "IVF_FLAT", name="near", num_partitions=2)
    nearest = {"column": "s.v", "q": [0.1] * DIMENSION, "k": 30}
    found = table.to_table(["id"], nearest={**nearest, "nprobes": 2})
    assert found == table.to_table(["id"], nearest={**nearest, "use_index": False})
    assert (
        found["id"].to_pylist()
        == lance.dataset(tmp_path / "t.lance").to_table(["id"], nearest=nearest)["id"].to_pylist()
    )
    with pytest.raises(InvalidInputError, match="there is an index 'near' already"):
        table.create_index("s.v", "IVF_FLAT", name="near")
    table.create_index("s.v", "IVF_SQ", name="near", replace=True)
    assert len(table.list_indices()) == 1


def test_an_index_is_repaired(tmp_path: Path) -> None:
    table = lance_format.write_dataset(_rows(np.random.default_rng(8), 0, 500), tmp_path / "t.lance")
    table.create_index("v", "IVF_PQ", metric="dot", num_sub_vectors=2)
    for file in tmp_path.glob("t.lance/_indices/*/index.idx"):
        file.write_bytes(b"nothing")
    lance_format.dataset(tmp_path / "t.lance").verify(repair=True)
    table = lance_format.dataset(tmp_path / "t.lance")
    lines = table.scanner(nearest={"column": "v", "q": [1] * DIMENSION}).explain_plan().splitlines()
    assert lines[0] == "LanceNearest: 10 rows by v, dot, by the index 'v_idx'"


@pytest.mark.parametrize("name", ["index.idx", "auxiliary.idx"])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_RQ"])
def test_damage_is_found_by_checksums_and_located(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / "t.lance"
    table = lance_format.write_dataset(_rows(np.random.default_rng(13), 0, 400), path)
    table.create_index("v", kind, num_partitions=2)
    (file,) = path.glob(f"_indices/*/{name}")
    whole = file.read_bytes()
    nearest = {"column": "v", "q": [1] * DIMENSION, "nprobes": 2}
    for place in np.random.default_rng(14).integers(0, len(whole) - 100, 60).tolist():
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ChecksumError) as raised:
            lance_format.dataset(path).to_table(["id"], nearest=nearest)
        assert (raised.value.path or "").endswith(f"{file.parent.name}/{name}")
        assert raised.value.offset is not None
        assert raised.value.what.startswith("index 'v_idx': ")
        assert raised.value.what.endswith("only the index is affected: verify with repair=True makes the index again")
        assert "restore the file" not in raised.value.what


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("index.idx", b"lance:index"),
        ("index.idx", b"lance:ivf"),
        ("auxiliary.idx", b"lance:ivf"),
        ("auxiliary.idx", b"storage_metadata"),
    ],
)
def test_damaged_files_without_checksums_are_named(tmp_path: Path, name: str, key: bytes) -> None:
    table = lance.write_dataset(_rows(np.random.default_rng(15), 0, 400), tmp_path / "t.lance")
    table.create_index("v", "IVF_SQ", num_partitions=2)
    (file,) = tmp_path.glob(f"t.lance/_indices/*/{name}")
    file.write_bytes(file.read_bytes().replace(key, b"x" + key[1:]))
    with pytest.raises(CorruptFileError, match=f"{file.parent.name}/{name}"):
        lance_format.dataset(tmp_path / "t.lance").to_table(nearest={"column": "v", "q": [1] * DIMENSION})


@pytest.mark.parametrize(
    ("kind", "parameters"), [*GRAPH_KINDS, ("IVF_HNSW_SQ", {"m": 4, "ef_construction": 4})], ids=str
)
@pytest.mark.parametrize("metric", METRICS)
def test_graphs(tmp_path: Path, kind: str, parameters: dict[str, Any], metric: str) -> None:
    """Each partition has a graph of all its vectors, which lead to each other."""
    path = tmp_path / "t.lance"
    table = lance_format.write_dataset(_rows(np.random.default_rng(13), 0, 1500), path)
    table.create_index("v", kind, metric=metric, num_partitions=3, **parameters)
    (file,) = path.glob("_indices/*/index.idx")
    reader = LanceFileReader(str(file))
    nodes, metadata = reader.read_all().to_table(), reader.metadata().schema.metadata
    graphs = [json.loads(text) for text in json.loads(metadata[b"lance:hnsw"])]
    most = parameters.get("m", 20)
    start = 0
    for graph in graphs:
        assert graph["params"] == {
            "m": most,
            "ef_construction": parameters.get("ef_construction", 150),
            "max_level": parameters.get("max_level", 7),
            "prefetch_distance": 2,
        }
        offsets = graph["level_offsets"]
        assert len(offsets) == 1 + graph["params"]["max_level"]
        for level, (first, end) in enumerate(itertools.pairwise(offsets)):
            found = nodes.slice(start + first, end - first)
            ids = found["__vector_id"].to_pylist()
            assert ids[:1] in ([], [graph["entry_point"]])
            assert level or ids == list(range(offsets[1]))
            for node, neighbors, distances in zip(*(column.to_pylist() for column in found.columns), strict=True):
                assert len(neighbors) == len(distances) <= (most if level else 3 * most + 1)
                assert len(set(neighbors) - {node}) == len(neighbors)
                assert set(neighbors) <= set(ids)
        leads_to = nodes.slice(start, offsets[1])["__neighbors"].to_pylist()
        led_from: list[list[int]] = [[] for _ in leads_to]
        for node, neighbors in enumerate(leads_to):
            for neighbor in neighbors:
                led_from[neighbor].append(node)
        for edges in (leads_to, led_from):
            reached, left = {0}, [0]
            while left:
                left += set(edges[left.pop()]) - reached
                reached.update(left)
            assert len(reached) == offsets[1]
        start += offsets[-1]
    assert start == nodes.num_rows


def test_tasks_write_parts_with_graphs(tmp_path: Path) -> None:
    """They stay parts of the index, since their graphs take long to make, and are as few as possible."""
    path = tmp_path / "t.lance"
    rng = np.random.default_rng(14)
    table = lance_format.write_dataset(_rows(rng, 0, 2000), path, max_rows_per_file=100)
    plan = table.plan_scalar_index("v", IndexConfig("IVF_HNSW_SQ", {"num_partitions": 4}), split_size_bytes=1)
    assert [len(task.positions) for task in plan.tasks] == [4] * 5
    plan.commit(table, [pickle.loads(pickle.dumps(task.execute(table))) for task in plan.tasks])
    table = lance_format.dataset(path)
    assert {frozenset(index["fragment_ids"]) for index in table.list_indices()} == {
        frozenset(range(first, first + 4)) for first in range(0, 20, 4)
    }
    query = rng.normal(size=DIMENSION)
    exact = _found(table, query, "l2", "IVF_HNSW_SQ", use_index=False)
    for library in (lance_format, lance):
        found = _found(library.dataset(path), query, "l2", "IVF_HNSW_SQ", nprobes=4, refine_factor=40)
        assert found == exact
    table.optimize.optimize_indices(retrain=True)
    assert len(table.list_indices()) == 1


@pytest.mark.parametrize("num_distinct", [1, 2, 40])
def test_graphs_of_equal_vectors(tmp_path: Path, num_distinct: int) -> None:
    numbers = np.random.default_rng(15).normal(size=(num_distinct, DIMENSION)).astype(np.float32)
    vectors = np.repeat(numbers, 1200 // num_distinct, axis=0)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    table = lance_format.write_dataset(pa.table({"v": column}), tmp_path / "t.lance")
    table.create_index("v", "IVF_HNSW_SQ", num_partitions=2)
    nearest = {"column": "v", "q": numbers[0], "k": 10, "ef": 100}
    found = lance.dataset(tmp_path / "t.lance").to_table(nearest=nearest)
    assert found["_distance"].to_pylist() == pytest.approx([0] * 10, abs=1e-3)


WRONG_GRAPHS: list[tuple[dict[str, Any], str]] = [
    ({"m": 3}, "m is 3; a whole number from 4 to 1024"),
    ({"m": 1025}, "m is 1025; a whole number from 4 to 1024"),
    ({"m": "20"}, "m is '20'"),
    ({"ef_construction": 0}, "ef_construction is 0"),
    ({"ef_construction": 19}, "ef_construction is 19; a whole number from m, 20, to"),
    ({"ef_construction": 2**20}, "ef_construction is 1048576; a whole number from m, 20, to 65536"),
    ({"max_level": 65}, "max_level is 65; a whole number from 1 to 64"),
    ({"num_sub_vectors": 2}, "parameter 'num_sub_vectors' of IVF_HNSW_SQ indices is unknown"),
]


def test_both_names_of_the_metric(tmp_path: Path) -> None:
    table = lance_format.write_dataset(_rows(np.random.default_rng(9), 0, 20), tmp_path / "t.lance")
    config = IndexConfig("IVF_FLAT", {"metric": "dot", "distance_type": "dot"})
    with pytest.raises(InvalidInputError, match="metric and distance_type are given; they are the same: leave one out"):
        table.create_scalar_index("v", config)
    with pytest.raises(InvalidInputError, match=r"distance_type is 'l3'; use one of l2, cosine, dot$"):
        table.create_scalar_index("v", IndexConfig("IVF_FLAT", {"distance_type": "l3"}))
    table.create_scalar_index("v", IndexConfig("IVF_FLAT", {"distance_type": "Euclidean"}))


@pytest.mark.parametrize(("parameters", "message"), WRONG_GRAPHS, ids=str)
def test_wrong_parameters_of_graphs(tmp_path: Path, parameters: dict[str, Any], message: str) -> None:
    table = lance_format.write_dataset(_rows(np.random.default_rng(9), 0, 20), tmp_path / "t.lance")
    with pytest.raises(InvalidInputError, match=message):
        table.create_index("v", "IVF_HNSW_SQ", **parameters)
    with pytest.raises(InvalidInputError, match="parameter 'm' of IVF_SQ indices is unknown"):
        table.create_index("v", "IVF_SQ", m=20)


WRONG: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("id", {}, NotSupportedError, "column 'id' is of type int64, which IVF_PQ indices made here cannot hold"),
    ("v", {"metric": "hamming"}, InvalidInputError, "metric is 'hamming'; use one of l2, cosine, dot$"),
    ("v", {"metric": "near"}, InvalidInputError, "metric is 'near'; use one of"),
    ("v", {"metric": 3}, InvalidInputError, "metric is 3; text is needed"),
    ("v", {"num_partitions": -1}, InvalidInputError, "num_partitions is -1"),
    ("v", {"num_partitions": 2**32}, InvalidInputError, "num_partitions is 4294967296; a whole number from 1 to"),
    ("v", {"num_partitions": 10**400}, InvalidInputError, "num_partitions is 1000"),
    ("v", {"max_iters": 2**32}, InvalidInputError, "max_iters is 4294967296; a whole number from 1 to 4294967295"),
    ("v", {"num_sub_vectors": 2**31}, InvalidInputError, "num_sub_vectors is 2147483648, which does not divide"),
    ("v", {"num_sub_vectors": 16}, InvalidInputError, "num_sub_vectors is 16, which does not divide the 8 numbers"),
    ("v", {"num_sub_vectors": 3}, InvalidInputError, "num_sub_vectors is 3, which does not divide the 8 numbers"),
    ("v", {"num_bits": 5}, InvalidInputError, "num_bits is 5; 4 and 8 are possible"),
    ("v", {"num_bits": 4, "num_sub_vectors": 1}, InvalidInputError, "codes of 4 bits need an even number of them"),
    ("v", {"sample_rate": 0}, InvalidInputError, "sample_rate is 0"),
    ("v", {"colour": 1}, InvalidInputError, "colour"),
]


@pytest.mark.parametrize(("column", "parameters", "kind", "message"), WRONG, ids=str)
def test_wrong_parameters(
    tmp_path: Path, column: str, parameters: dict[str, Any], kind: type[Exception], message: str
) -> None:
    table: LanceDataset = lance_format.write_dataset(_rows(np.random.default_rng(9), 0, 20), tmp_path / "t.lance")
    with pytest.raises(kind, match=message):
        table.create_index(column, "IVF_PQ", **parameters)
    assert not list(tmp_path.glob("t.lance/_indices/*"))
