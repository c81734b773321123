"""The cache of what random access looks up: its bound, its order, and that nothing depends on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format.errors import InvalidInputError
from lance_format.file import DEFAULT_CACHE_BYTES, LanceFileReader, LanceFileWriter, SearchCache
from tests.file.counting import CountedFile

_ROWS = 20_000
_TABLE = pa.table(
    {
        "id": np.random.default_rng(0).integers(0, 2**60, _ROWS),
        "kind": [f"kind number {row % 50}" for row in range(_ROWS)],
        "tags": [[f"tag {row % 9}"] * (row % 4) for row in range(_ROWS)],
        "large": [f"{row}" * 100 for row in range(_ROWS)],
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with LanceFileWriter(tmp_path / "a.lance", _TABLE.schema, data_cache_bytes=400_000) as writer:
        for start in range(0, _ROWS, 1000):
            writer.write_batch(_TABLE.slice(start, 1000))
    return tmp_path / "a.lance"


@given(sizes=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3000)), max_size=60), capacity=st.integers(0, 8000))
def test_never_holds_more_than_it_may(sizes: list[tuple[int, int]], capacity: int) -> None:
    cache = SearchCache(capacity)
    for key, size in sizes:
        cache.put((key,), (key, size), size)
        assert cache.size_bytes <= capacity
        assert cache.get((key,)) in ((key, size), None)
    held = [found for key in range(10) if isinstance(found := cache.get((key,)), tuple)]
    assert len(held) == len(cache)
    assert sum(size for _, size in held) <= cache.size_bytes <= capacity
    assert all(dict(sizes)[key] == size for key, size in held), "an older entry came back"


def test_keeps_what_was_used_last() -> None:
    cache = SearchCache(5000)
    for key in "abc":
        cache.put((key,), key, 1000)
    assert cache.get(("a",)) == "a"
    cache.put(("d",), "d", 1000)
    assert [cache.get((key,)) for key in "abcd"] == ["a", None, "c", "d"]
    cache.put(("a",), "too large", 5000)
    assert cache.get(("a",)) is None
    assert cache.get(("c",)) == "c"


def test_threads_may_share_one() -> None:
    cache = SearchCache(20_000)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for key, size in zip(rng.integers(0, 40, 3000).tolist(), rng.integers(0, 2000, 3000).tolist(), strict=True):
            found = cache.get((key,))
            assert found in (key, None)
            cache.put((key,), key, size)

    threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for key in range(40):
        cache.put((key,), key, 0)
    one = SearchCache()
    one.put(("alone",), None, 0)
    assert cache.size_bytes == len(cache) * one.size_bytes, "bytes of entries that are gone are still counted"


@pytest.mark.parametrize("size", [-1, 1.5, "64", True])
def test_sizes_that_are_none(size: object, tmp_path: Path, path: Path) -> None:
    with pytest.raises(InvalidInputError, match="metadata_cache_size_bytes"):
        LanceFileReader(path, metadata_cache_size_bytes=size)
    lance_format.write_dataset(_TABLE.slice(0, 10), tmp_path / "table")
    with pytest.raises(InvalidInputError, match="metadata_cache_size_bytes"):
        lance_format.dataset(tmp_path / "table", metadata_cache_size_bytes=size)


@pytest.mark.parametrize("capacity", [0, 1000, 20_000, DEFAULT_CACHE_BYTES])
def test_rows_are_the_same_with_any_cache(path: Path, capacity: int) -> None:
    reader = LanceFileReader(path, metadata_cache_size_bytes=capacity)
    rows = [0, 3, 3, 999, 7777, _ROWS - 1]
    for _ in range(2):
        assert reader.take_rows(rows).to_table().equals(_TABLE.take(rows))
        assert reader.read_range(5000, 3000).to_table().equals(_TABLE.slice(5000, 3000))
        assert reader.read_all().to_table().equals(_TABLE)


def test_files_that_share_a_cache_do_not_mix(path: Path, tmp_path: Path) -> None:
    other = _TABLE.take(pa.array(np.arange(_ROWS)[::-1].copy()))
    with LanceFileWriter(tmp_path / "b.lance", _TABLE.schema) as writer:
        writer.write_batch(other)
    cache = SearchCache()
    for _ in range(2):
        for name, table in (("a.lance", _TABLE), ("b.lance", other)):
            assert CountedFile(tmp_path / name, cache).take([17, 4000])[0].equals(table.take([17, 4000]))


def test_what_is_cached_is_not_read_again(path: Path) -> None:
    cache = SearchCache()
    first = CountedFile(path, cache)
    assert first.opened[0] == 1
    _, cold, _ = first.take([1234])
    table, warm, _ = first.take([1234])
    assert cold > warm
    again = CountedFile(path, cache)
    assert again.opened == (0, 0)
    found, requests, _ = again.take([1234])
    assert requests == warm
    assert found.equals(table)


def test_cached_entries_do_not_hold_on_to_what_was_read(path: Path) -> None:
    """Sizes of entries are their memory: no entry is a view of a request."""
    cache = SearchCache()
    CountedFile(path, cache).take(list(range(0, _ROWS, 500)))

    def arrays(found: object) -> list[np.ndarray]:
        if isinstance(found, np.ndarray):
            return [found]
        names = getattr(found, "__slots__", ())
        return [array for name in names for array in arrays(getattr(found, name))]

    held = [array for entry, _ in cache._entries.values() for array in arrays(entry)]
    assert len(held) > 20
    for array in held:
        while isinstance(array.base, np.ndarray):
            array = array.base
        assert array.base is None
        assert array.nbytes <= cache.size_bytes


_FORK = """
import os, signal
from lance_format.file import SearchCache
cache = SearchCache()
cache.put(("a",), "a", 10)
with cache._lock:
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        cache.put(("b",), "b", 10)
        os._exit(0 if (cache.get(("a",)), cache.get(("b",)), len(cache)) == (None, "b", 1) else 1)
assert os.waitpid(child, 0)[1] == 0
assert cache.get(("a",)) == "a"
"""


def test_a_forked_process_does_not_wait_for_threads_that_it_lacks() -> None:
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
