"""Streams that an early release of this library began go on, wherever its driver was killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pytest
from pyspark.sql import SparkSession

import lance_format
from connector.stream.source import LIMITS_BATCHES
from lance_format import last_batches
from tests.table.leftovers import leftovers

pytestmark = pytest.mark.system

_OLD = Path(__file__).parents[1] / "data" / "old_stream"
_LATEST = ["sink.lance/_versions/18446744073709551613.manifest", "sink.lance/_versions/latest_version_hint.json"]
STATES = {
    "between two batches": [],
    "before the commit of the checkpoint": ["checkpoint/commits/1"],
    "before the commit of the table": ["checkpoint/commits/1", *_LATEST],
    "in the first batch": ["checkpoint/commits", "checkpoint/offsets/1", "sink.lance"],
    "before the first commit of the checkpoint": ["checkpoint/commits", "checkpoint/offsets/1", *_LATEST],
}
"""What is not there yet when the driver is killed."""


def rows(first: int, last: int) -> dict[str, list[object]]:
    return {"id": list(range(first, last)), "v": [f"row {number}" for number in range(first, last)]}


@pytest.mark.skipif(not LIMITS_BATCHES, reason="Spark 4.3 wrote the checkpoint, with limited batches")
@pytest.mark.parametrize("state", STATES)
def test_a_stream_of_an_early_release_goes_on(planner: SparkSession, tmp_path: Path, state: str) -> None:
    place = Path(shutil.copytree(_OLD, tmp_path / "place"))
    for name in STATES[state]:
        path = place / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    source, sink = str(place / "source.lance"), str(place / "sink.lance")
    lance.write_dataset(lance_format.dataset(source).to_table().slice(0, 0), source, mode="append")
    lance_format.dataset(source).optimize.compact_files()
    lance_format.dataset(source).insert(rows(20, 24))
    for _ in range(2):  # the second time there is nothing new
        stream = planner.readStream.format("lance").option("maxFilesPerTrigger", 2).load(source)
        writer = stream.writeStream.format("lance").option("checkpointLocation", str(place / "checkpoint"))
        query = writer.trigger(availableNow=True).start(sink)
        query.awaitTermination()
    table = lance_format.dataset(sink)
    assert table.to_table().sort_by("id").to_pydict() == rows(0, 24)
    assert set(last_batches(table.config())) == {query.id}
    if not set(_LATEST) & set(STATES[state]):  # an unfinished commit leaves data files
        assert not leftovers(Path(sink))
