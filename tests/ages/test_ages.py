"""Files and tables that earlier releases of pylance write are read, and changed; `make ages` installs them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format
from lance_format import NotSupportedError
from lance_format.file import LanceFileReader
from tests.ages import write_by_release
from tests.arrays import same_values

_ROOT = Path(__file__).parents[2]
_ENVIRONMENTS = sorted(path.name for path in _ROOT.glob(".venv-pylance-*"))
_FILTERS: dict[str, Any] = {
    "id < 100": lambda row: row["id"] < 100,
    "id in (1, 2, 3, 690)": lambda row: row["id"] in (1, 2, 3, 690),
    "id between 40 and 60 or key = 'key 3'": lambda row: 40 <= row["id"] <= 60 or row["key"] == "key 3",
    "key = 'updated'": lambda row: row["key"] == "updated",
    "text like '%runn%'": lambda row: "runn" in row["text"],
}

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not _ENVIRONMENTS, reason="make ages installs the releases")]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("environment", _ENVIRONMENTS)
def test_what_a_release_writes_is_read(environment: str, seed: int, tmp_path: Path) -> None:
    python = _ROOT / environment / "bin/python"
    # A panic of the reference ends the process. What it has saved by then is read.
    subprocess.run([python, write_by_release.__file__, tmp_path, str(seed)], capture_output=True, check=False)
    found = sorted(tmp_path.glob("*.arrow"))
    assert tmp_path / "table.arrow" in found
    for saved in found:
        path = saved.with_suffix("")
        with pa.ipc.open_file(str(saved)) as stored:
            expected = stored.read_all()
        if path.is_dir():
            _check_table(path, expected)
        else:
            _check_file(path, expected)


def _check_file(path: Path, expected: pa.Table) -> None:
    try:
        reader = LanceFileReader(path)
        rows = reader.read_all().to_table()
    except NotSupportedError:  # Of a format that was not stable then: pylance refuses it, too.
        with pytest.raises(Exception, match=r"."):
            lance.file.LanceFileReader(str(path)).read_all().to_table()
        return
    _assert_same(rows, expected)
    some = sorted({0, expected.num_rows // 2, expected.num_rows - 1})
    _assert_same(reader.take_rows(some).to_table(), expected.take(some))


def _check_table(path: Path, expected: pa.Table) -> None:
    try:
        _assert_same(lance_format.dataset(path).to_table(), expected)
    except NotSupportedError:
        with pytest.raises(Exception, match=r"."):
            lance.dataset(str(path)).to_table()
        return
    lance_format.dataset(path).verify()
    for _ in range(2):
        _check_answers(path)
        table = lance_format.dataset(path)
        table.delete("id = 3")
        table.update({"key": "'ours'"}, "id < 20")
        if table.data_storage_version != "0.1":
            table.insert(table.to_table(limit=5))
        table.optimize.compact_files()
        table.optimize.optimize_indices()
    _assert_same(lance_format.dataset(path).to_table(), lance.dataset(str(path)).to_table())


def _check_answers(path: Path) -> None:
    ours, reference = lance_format.dataset(path), lance.dataset(str(path))
    rows = ours.to_table(columns=["id", "key", "text"]).to_pylist()
    for condition, holds in _FILTERS.items():
        found = ours.to_table(filter=condition, columns=["id"])["id"].to_pylist()
        assert sorted(found) == sorted(row["id"] for row in rows if holds(row)), condition
    indexed = {column for index in ours.list_indices() for column in index["fields"] if index["type"] == "Inverted"}
    for word in ("alpha", "run", "straße", "x9 foo") if indexed else ():
        query = {"full_text_query": word, "columns": ["id", "_score"]}
        ids = [sorted(opened.to_table(**query)["id"].to_pylist()) for opened in (ours, reference)]
        assert ids[0] == ids[1], word


def _assert_same(found: pa.Table, expected: pa.Table) -> None:
    assert (found.schema.names, found.schema.types) == (expected.schema.names, expected.schema.types)
    assert same_values(found, expected)
