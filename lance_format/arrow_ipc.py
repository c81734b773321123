"""Arrow IPC files from untrusted sources: their memory is computed before decompression.

The bodies of a file's batches may be compressed, each buffer separately, and PyArrow expands them to the size they
claim. FlatBuffers hold the offsets of batches and buffers; this module reads the few fields it needs.

    │ ARROW1, padding │ message │ … │ message │ footer │ i32 bytes of the footer │ ARROW1 │

    message  │ i32 -1? │ i32 bytes │ FlatBuffer │ padding │ body: buffers, each with an i64 size if it is compressed │

https://arrow.apache.org/docs/format/Columnar.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lance_format.errors import CorruptFileError

_MAGIC = b"ARROW1"
_CONTINUATION = 0xFFFFFFFF
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_NOT_COMPRESSED = -1
_MIN_BUFFER_BYTES = 8
"""Minimum counted size of a buffer, so that few bytes cannot represent countless empty ones."""
# The positions of fields in their tables.
_FOOTER_DICTIONARIES, _FOOTER_BATCHES = 2, 3
_MESSAGE_KIND, _MESSAGE_HEADER = 1, 2
_DICTIONARY_DATA = 1
_BATCH_BUFFERS, _BATCH_COMPRESSION = 2, 3
_BLOCK = struct.Struct("<qi4xq")
_BUFFER = struct.Struct("<qq")


def read_file(content: bytes, max_bytes: int) -> pa.Table:
    """Read an Arrow IPC file, and check all of its values.

    Parameters
    ----------
    content : bytes
    max_bytes : int
        Maximum size of its decompressed buffers.

    Raises
    ------
    CorruptFileError
        If it is malformed, or larger.
    """
    size = 0
    for buffer in _buffer_sizes(content):
        size += max(buffer, _MIN_BUFFER_BYTES)
        if size > max_bytes:
            raise CorruptFileError(f"an Arrow file expands to more than the {max_bytes} bytes that fit")
    try:
        with pa.ipc.open_file(pa.py_buffer(content)) as file:
            table = file.read_all()
        table.validate(full=True)
    except (pa.ArrowException, ValueError, OSError, MemoryError) as error:  # ValueError: a name may be no text.
        raise CorruptFileError(f"malformed Arrow file: {error}") from error
    return table


def _buffer_sizes(content: bytes) -> Iterator[int]:
    """Yield the expanded size of each buffer of each batch, per mention of the batch in the footer."""
    if content[-len(_MAGIC) :] != _MAGIC:
        raise CorruptFileError("an Arrow file does not end with its magic bytes")
    size_at = len(content) - len(_MAGIC) - 4
    footer_at = size_at - _unpack("<i", content, size_at)
    footer = _root(content, footer_at)
    for field in (_FOOTER_DICTIONARIES, _FOOTER_BATCHES):
        for offset, metadata_size, _ in _vector(content, footer, field, _BLOCK):
            yield from _sizes_of_message(content, offset, offset + metadata_size)


def _sizes_of_message(content: bytes, position: int, body: int) -> Iterator[int]:
    first = _unpack("<I", content, position)
    message = _root(content, position + (8 if first == _CONTINUATION else 4))
    kind_at = _field(content, message, _MESSAGE_KIND)
    kind = _unpack("<B", content, kind_at) if kind_at else 0
    batch = _table(content, message, _MESSAGE_HEADER)
    if kind == _DICTIONARY_BATCH and batch:
        batch = _table(content, batch, _DICTIONARY_DATA)
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH) or not batch:
        raise CorruptFileError("the footer of an Arrow file names something that is no batch")
    is_compressed = bool(_field(content, batch, _BATCH_COMPRESSION))
    for offset, size in _vector(content, batch, _BATCH_BUFFERS, _BUFFER):
        expanded = _unpack("<q", content, body + offset) if is_compressed and size else _NOT_COMPRESSED
        if expanded < _NOT_COMPRESSED or size < 0:
            raise CorruptFileError(f"a buffer of an Arrow file has {min(size, expanded)} bytes")
        yield size if expanded == _NOT_COMPRESSED else expanded


def _unpack(layout: str, content: bytes, position: int) -> Any:
    if not 0 <= position <= len(content) - struct.calcsize(layout):
        raise CorruptFileError("an Arrow file refers to bytes outside of it", offset=position)
    return struct.unpack_from(layout, content, position)[0]


def _root(content: bytes, position: int) -> int:
    """Return the position of the outermost table of a FlatBuffer."""
    return position + int(_unpack("<I", content, position))


def _field(content: bytes, table: int, index: int) -> int:
    """Return the position of a field of a table, 0 if it is absent."""
    fields = table - _unpack("<i", content, table)
    slot = 4 + 2 * index
    if slot + 2 > _unpack("<H", content, fields):
        return 0
    offset = int(_unpack("<H", content, fields + slot))
    return table + offset if offset else 0


def _table(content: bytes, table: int, index: int) -> int:
    """Return the position of a table that is a field of another, 0 if it is absent."""
    position = _field(content, table, index)
    return _root(content, position) if position else 0


def _vector(content: bytes, table: int, index: int, item: struct.Struct) -> Iterator[tuple[int, ...]]:
    """Yield the items of a vector of structs, which is a field of a table."""
    position = _field(content, table, index)
    if not position:
        return
    position = _root(content, position)
    end = position + 4 + _unpack("<I", content, position) * item.size
    if end > len(content):
        raise CorruptFileError("an Arrow file has a list that ends after the file", offset=position)
    yield from item.iter_unpack(content[position + 4 : end])
