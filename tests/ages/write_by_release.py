"""Write random files and tables; run in an environment that has an earlier release of pylance.

    python tests/ages/write_by_release.py DIRECTORY SEED

Beside each there is what it holds, `….arrow`. What the release itself refuses, or cannot read again, is left out.
"""

import contextlib
import random
import sys
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.arrays import FLAT_TYPES, NULLS, STYLES, make_array
from tests.nested_arrays import RandomValues, random_type

FORMATS = ("2.0", "2.1")
WORDS = ("alpha", "beta", "gamma", "running", "runner", "the", "of", "straße", "x9", "foo-bar")


def _strings(rng: random.Random, count: int) -> pa.Array:
    make = rng.choice([lambda x: f"value {x}", lambda x: f"kind {x % 20}", lambda x: f"a text {x % 1000} " * 40])
    return pa.array([make(rng.randrange(10**7)) for _ in range(count)])


def _numbers(rng: random.Random, count: int) -> pa.Array:
    values = np.random.default_rng(rng.randrange(2**32))
    forms = (
        np.repeat(values.integers(0, 100, count // 50 + 1), 50)[:count],
        np.arange(count) % 100,
        values.integers(0, 3, count),
        np.full(count, 5),
    )
    mask = values.random(count) < 0.2 if rng.random() < 0.5 else None
    return pa.array(rng.choice(forms), mask=mask).cast(rng.choice([pa.int8(), pa.int32(), pa.uint32(), pa.uint64()]))


def _nested(rng: random.Random, count: int) -> pa.Array:
    values = RandomValues(rng, rng.choice([0, 0.2]), rng.choice([0, 0.3]), rng.choice([3, 20]), null_structs=False)
    some = values.array(random_type(rng, 2, maps=False), min(count, 1000))
    return pa.concat_arrays([some] * -(-count // len(some))).slice(0, count)


def _flat(rng: random.Random, count: int) -> pa.Array:
    kind = rng.choice(FLAT_TYPES)
    return make_array(kind, count, rng.choice(NULLS[:2]), rng.choice(STYLES), rng.randrange(100))


def _columns(rng: random.Random) -> pa.Table:
    count = rng.choice([1, 7, 300, 1025, 5000, 20_000])
    arrays, fields = [], []
    for number in range(rng.randint(1, 6)):
        arrays.append(rng.choice([_strings, _numbers, _nested, _flat])(rng, count))
        metadata = {}
        if rng.random() < 0.3:
            metadata["lance-encoding:compression"] = rng.choice(["zstd", "lz4", "fsst", "none"])
        fields.append(pa.field(f"c{number}", arrays[-1].type, metadata=metadata or None))
    return pa.table(arrays, pa.schema(fields))


def _save(table: pa.Table, path: str) -> None:
    with pa.ipc.new_file(f"{path}.arrow", table.schema) as file:
        file.write_table(table)


def write_file(path: str, version: str, rng: random.Random) -> None:
    table = _columns(rng)
    with LanceFileWriter(path, table.schema, version=version) as writer:
        for batch in table.to_batches(max_chunksize=rng.choice([10**5, 1000, 333])):
            writer.write_batch(batch)
    _save(LanceFileReader(path).read_all().to_table(), path)


def _rows(rng: random.Random, first: int, count: int) -> pa.Table:
    numbers = np.random.default_rng(first).random((count, 8), np.float32)
    columns = {
        "id": pa.array(range(first, first + count)),
        "key": pa.array([f"key {number % 37}" for number in range(count)]),
        "text": pa.array([" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(count)]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(numbers.reshape(-1)), 8),
    }
    return pa.table(columns)


def _change(path: str, rng: random.Random) -> None:
    dataset = lance.dataset(path)
    changes = {
        "append": lambda: lance.write_dataset(_rows(rng, 10**6 * dataset.version, 60), path, mode="append"),
        "delete": lambda: dataset.delete(f"id % {rng.choice([2, 7, 31])} = 1"),
        "update": lambda: dataset.update({"key": "'updated'"}, where=f"id % {rng.choice([3, 50])} = 0"),
        "merge": lambda: (
            dataset.merge_insert("id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute(_rows(rng, 690, 60))
        ),
        "add": lambda: dataset.add_columns({f"more{dataset.version}": "id + 1"}),
        "compact": lambda: dataset.optimize.compact_files(target_rows_per_fragment=rng.choice([10**6, 1000])),
        "optimize": lambda: dataset.optimize.optimize_indices(),
        "restore": lambda: lance.dataset(path, version=max(1, dataset.version - 1)).restore(),
        "vectors": lambda: dataset.create_index(
            "vector", rng.choice(["IVF_PQ", "IVF_SQ"]), num_partitions=2, num_sub_vectors=4, replace=True
        ),
    }
    for column, kind in (
        ("id", "BTREE"),
        ("key", "BITMAP"),
        ("text", "INVERTED"),
        ("id", "ZONEMAP"),
        ("text", "NGRAM"),
    ):
        changes[kind] = lambda column=column, kind=kind: dataset.create_scalar_index(column, kind, replace=True)
    changes[rng.choice(list(changes))]()


def write_table(path: str, rng: random.Random) -> None:
    options = {"data_storage_version": rng.choice(["2.0", "2.1", "legacy"])}
    if rng.random() < 0.5:
        options["enable_v2_manifest_paths"] = rng.random() < 0.5
    rows = _rows(rng, 0, 700)
    if options["data_storage_version"] == "legacy":
        rows = rows.drop_columns(["vector"])
    lance.write_dataset(rows, path, max_rows_per_file=rng.choice([700, 250, 90]), **options)
    for _ in range(rng.randint(0, 8)):
        with contextlib.suppress(BaseException):  # Panics of the reference are no `Exception`.
            _change(path, rng)
    _save(lance.dataset(path).to_table(), path)


def main() -> None:
    directory, seed = Path(sys.argv[1]), int(sys.argv[2])
    for version in FORMATS:
        with contextlib.suppress(BaseException):
            write_file(str(directory / f"{version}.lance"), version, random.Random(seed))
    with contextlib.suppress(BaseException):
        write_table(str(directory / "table"), random.Random(seed))


if __name__ == "__main__":
    main()
