"""A table that tests of the command line look at, and never change."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

import lance_format

ROWS = 20_000


def birds(begin: int, end: int) -> pa.Table:
    ids = range(begin, end)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"bird {number % 700}" for number in ids],
            "place": [{"x": number, "y": [number] * (number % 3)} for number in ids],
            "score": [number * 7919 % ROWS / ROWS for number in ids],
        }
    )


def add_fragments(dataset: lance_format.LanceDataset, number: int) -> lance_format.LanceDataset:
    """Append fragments that have the rows of the first one, whose data file gets more names."""
    (first, *_) = dataset.get_fragments()
    (file,) = first.data_files()
    directory = Path(dataset.uri) / "data"
    names = [f"{len(dataset.get_fragments()) + index:06}.lance" for index in range(number)]
    for name in names:
        (directory / name).hardlink_to(directory / file.path)
    added = [
        dataclasses.replace(first.metadata, files=(dataclasses.replace(file, path=name),), deletion_file=None)
        for name in names
    ]
    return lance_format.LanceDataset.commit(dataset, lance_format.LanceOperation.Append(added), dataset.version)


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a table with six versions, a tag, a branch, an index and properties."""
    path = tmp_path_factory.mktemp("cli") / "birds.lance"
    dataset = lance_format.write_dataset(birds(0, ROWS), path)
    dataset = lance_format.write_dataset(birds(ROWS, 2 * ROWS), path, mode="append", commit_message="daily load")
    dataset.tags.create("loaded")
    dataset.delete("id % 1000 = 7")
    dataset.update({"name": "'emu'"}, where="id = 5")
    dataset.create_branch("side", 2)
    dataset.create_scalar_index("id", "ZONEMAP")
    dataset.update_config({"owner": "zoo", "api.token": "s3cr3t"})
    return path
