"""Copying files of any size, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lance_format.byte_io import ByteRange, RangeReader
from lance_format.object_store.store import ObjectStore

CHUNK_BYTES = 8 * 1024 * 1024


def read_chunks(reader: RangeReader) -> Iterator[bytes]:
    """Yield the content of a file, in pieces of `CHUNK_BYTES`."""
    for start in range(0, reader.size_bytes, CHUNK_BYTES):
        yield reader.read_ranges([ByteRange(start, min(CHUNK_BYTES, reader.size_bytes - start))])[0]


def write_chunks(store: ObjectStore, path: str, chunks: Iterable[bytes]) -> None:
    """Write a file from chunks. It replaces an existing file when it is complete; an exception leaves nothing of it.

    Parameters
    ----------
    store : ObjectStore
    path : str
    chunks : iterable of bytes
    """
    writer = store.open_writer(path)
    try:
        for chunk in chunks:
            writer.write(chunk)
        writer.close()
    except BaseException:
        writer.abort()
        raise
