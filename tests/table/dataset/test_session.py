"""Tables that are opened with a session share what finds their rows."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError, LanceError, Session

ROWS = pa.table({"n": [row * 7919**4 % 2**61 for row in range(100_000)]})


def test_the_end_of_a_file_is_read_once(tmp_path: Path) -> None:
    written = lance_format.write_dataset(ROWS, tmp_path / "table")
    session = Session()
    opened = lance_format.dataset(tmp_path / "table", session=session)
    opened.take([7])
    assert opened.session().is_same_as(session)
    assert session.size_bytes() > 0
    file = tmp_path / "table" / "data" / written.get_fragments()[0].data_files()[0].path
    content = file.read_bytes()
    file.write_bytes(content[:-100] + bytes(100))
    again = lance_format.dataset(tmp_path / "table", session=session)
    assert again.take([7, 99_999]) == ROWS.take([7, 99_999])
    with pytest.raises(LanceError, match=file.name):
        lance_format.dataset(tmp_path / "table").take([7])


def test_tables_do_not_mix(tmp_path: Path) -> None:
    session = Session(metadata_cache_size_bytes=100_000)
    tables = [ROWS, pa.table({"n": ["text"] * 1000}), ROWS.slice(50_000)]
    for number, table in enumerate(tables):
        lance_format.write_dataset(table, tmp_path / str(number))
    for _ in range(3):
        for number, table in enumerate(tables):
            opened = lance_format.dataset(tmp_path / str(number), session=session)
            assert opened.take([999, 3]) == table.take([999, 3])
            assert opened.to_table(filter="n IS NOT NULL").equals(table)
    assert session.size_bytes() <= 100_000


def test_a_session_of_no_bytes_keeps_nothing(tmp_path: Path) -> None:
    lance_format.write_dataset(ROWS, tmp_path)
    session = Session(metadata_cache_size_bytes=0)
    assert lance_format.dataset(tmp_path, session=session).take([7]) == ROWS.take([7])
    assert session.size_bytes() == 0
    assert not session.is_same_as(Session())
    with pytest.raises(InvalidInputError, match="metadata_cache_size_bytes"):
        Session(metadata_cache_size_bytes=-1)
    with pytest.raises(InvalidInputError, match="session"):
        lance_format.dataset(tmp_path, session="none")  # type: ignore[arg-type]


def test_indices_have_a_cache_of_their_own(tmp_path: Path) -> None:
    table = lance_format.write_dataset(ROWS, tmp_path)
    table.create_scalar_index("n", "BTREE")
    value = ROWS["n"][7].as_py()
    for session, keeps in ((Session(), True), (Session(index_cache_size_bytes=0), False)):
        opened = lance_format.dataset(tmp_path, session=session)
        for _ in range(2):
            assert opened.to_table(filter=f"n = {value}") == ROWS.slice(7, 1)
        assert (session.cache.of_indices.size_bytes > 0) == keeps
        assert pickle.loads(pickle.dumps(opened)).session().__repr__() == repr(session)
    assert repr(session) == f"Session(index_cache_size_bytes=0, metadata_cache_size_bytes={64 << 20})"
    assert repr(Session(metadata_cache_size_bytes=5)) == (
        "Session(index_cache_size_bytes=20, metadata_cache_size_bytes=5)"
    )
    with pytest.raises(InvalidInputError, match="index_cache_size_bytes"):
        Session(index_cache_size_bytes=-1)
    assert lance_format.dataset(tmp_path, index_cache_size_bytes=7).session().cache.of_indices.capacity_bytes == 7
