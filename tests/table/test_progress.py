"""Progress of long operations: it grows to its totals, which are those of the table."""

from __future__ import annotations

import contextlib
import itertools
import os
import pty
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, LanceDataset, NotSupportedError, Progress


def _rows(number: int) -> pa.Table:
    return pa.table({"id": range(number), "name": [str(index) * 10 for index in range(number)]})


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    path = tmp_path / "t"
    for number in range(3):
        lance_format.write_dataset(_rows(20_000), path, mode="append" if number else "create")
    found = lance_format.dataset(path)
    found.delete("id < 100")
    return found


def _files(dataset: LanceDataset) -> set[Path]:
    return {path for path in Path(dataset.uri).rglob("*") if path.is_file()}


def _check(states: list[Progress], step: str, rows: int | None, size_bytes: int | None) -> None:
    assert states
    assert {state.step for state in states} == {step}
    for before, after in itertools.pairwise(states):
        assert before.rows <= after.rows
        assert before.size_bytes <= after.size_bytes
    last = states[-1]
    assert (last.total_rows, last.total_bytes) == (rows, size_bytes)
    assert last.rows == (last.rows if rows is None else rows)
    assert last.size_bytes == (last.size_bytes if size_bytes is None else size_bytes)
    if rows:
        assert any(state.rows > 0 for state in states[:-1])


def _data_bytes(dataset: LanceDataset) -> int:
    return sum(file.file_size_bytes or 0 for fragment in dataset.get_fragments() for file in fragment.data_files())


def test_writes(tmp_path: Path) -> None:
    rows, states = _rows(30_000), list[Progress]()
    written = lance_format.write_dataset(rows, tmp_path / "t", max_rows_per_file=10_000, progress=states.append)
    _check(states, "write", 30_000, sum(batch.nbytes for batch in rows.to_batches()))
    assert len(states) > 3
    states.clear()
    written.insert(rows, progress=states.append)
    _check(states, "write", 30_000, sum(batch.nbytes for batch in rows.to_batches()))
    states.clear()
    lance_format.write_dataset(iter(rows.to_batches(1000)), tmp_path / "u", rows.schema, progress=states.append)
    _check(states, "write", None, None)
    assert states[-1].rows == 30_000
    assert states[-1].size_bytes >= rows.nbytes * 0.9


def test_compactions(dataset: LanceDataset) -> None:
    states, size = list[Progress](), _data_bytes(dataset)
    dataset.optimize.compact_files(progress=states.append)
    _check(states, "compact", 59_700, size)
    states.clear()
    dataset.optimize.compact_files(progress=states.append)
    assert states[-1] == Progress("compact", 0, 0, 0, 0)


def test_indices(dataset: LanceDataset) -> None:
    states, size = list[Progress](), _data_bytes(dataset)
    dataset.create_scalar_index("id", "ZONEMAP", progress=states.append)
    _check(states, "index", 60_000, size)
    dataset.insert(_rows(5_000))
    states.clear()
    dataset.optimize.optimize_indices(progress=states.append)
    _check(states, "index", 5_000, _data_bytes(dataset) - size)


def test_checks(dataset: LanceDataset) -> None:
    states = list[Progress]()
    dataset.validate(progress=states.append)
    _check(states, "verify", 60_000, _data_bytes(dataset))
    states.clear()
    dataset.verify(progress=states.append)
    _check(states, "verify", 60_000, _data_bytes(dataset))


def test_cleanups(dataset: LanceDataset) -> None:
    dataset.optimize.compact_files()
    states, before = list[Progress](), _files(dataset)
    dataset.cleanup_old_versions(retain_versions=1, progress=states.append)
    _check(states, "clean up", None, states[-1].total_bytes)
    assert (states[-1].total_bytes or 0) > 0
    assert _files(dataset) < before


def test_clones(dataset: LanceDataset, tmp_path: Path) -> None:
    states = list[Progress]()
    copy = dataset.deep_clone(tmp_path / "copy", dataset.version, progress=states.append)
    last = states[-1]
    assert (last.rows, last.total_rows, last.total_bytes) == (60_000, 60_000, _data_bytes(dataset))
    assert all(state.size_bytes <= _data_bytes(dataset) for state in states)
    assert copy.count_rows() == 59_700


def test_the_cleanup_after_a_write_is_not_counted(tmp_path: Path) -> None:
    options = {"interval": 1, "retain_versions": 1}
    lance_format.write_dataset(_rows(10), tmp_path / "t", auto_cleanup_options=options)
    states = list[Progress]()
    for _ in range(3):
        states.clear()
        lance_format.write_dataset(_rows(10), tmp_path / "t", mode="overwrite", progress=states.append)
    assert states[-1].size_bytes == states[-1].total_bytes == sum(batch.nbytes for batch in _rows(10).to_batches())


def test_an_exception_of_the_function_ends_the_operation_and_leaves_no_file(dataset: LanceDataset) -> None:
    def fail(state: Progress) -> None:
        if state.rows:
            raise ZeroDivisionError

    before, version = _files(dataset), dataset.version
    operations: list[Callable[[], object]] = [
        lambda: dataset.insert(_rows(10), progress=fail),
        lambda: dataset.optimize.compact_files(progress=fail),
        lambda: dataset.create_scalar_index("id", "ZONEMAP", progress=fail),
    ]
    for operation in operations:
        with pytest.raises(ZeroDivisionError):
            operation()
    assert (_files(dataset), lance_format.dataset(dataset.uri).version) == (before, version)
    states = list[Progress]()
    dataset.validate(progress=states.append)  # The failed ones left no meter behind.
    assert {state.step for state in states} == {"verify"}


def test_anything_else_is_refused(dataset: LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="progress"):
        dataset.validate(progress=7)  # type: ignore[arg-type]


def test_a_bar_is_for_terminals(
    dataset: LanceDataset, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.validate(progress=True)
    assert capfd.readouterr() == ("", "")
    reading, writing = pty.openpty()
    shown: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(reading, shown))
    reader.start()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(writing, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        dataset.validate(progress=True)
        monkeypatch.undo()
    reader.join()
    text = b"".join(shown).decode()
    assert "verify" in text
    assert "60,000 rows" in text


def _read_all(terminal: int, found: list[bytes]) -> None:
    with contextlib.suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as file:  # EIO once it is closed
        while data := file.read(4096):
            found.append(data)


def test_without_rich_the_error_names_the_extra(dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(NotSupportedError, match=r"pip install 'pyspark-lance\[cli\]'"):
        dataset.validate(progress=True)
