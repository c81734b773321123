"""Damage to bytes and to protobuf messages, from a seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import any_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from lance_format.byte_io import FILE_REQUESTS, ByteRange
from lance_format.file.container.footer import FileMetadata, TailReader, read_metadata, read_version, serialize_end
from lance_format.proto import array_encodings_pb2, encodings_pb2, file_pb2

NUMBERS = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    9,
    15,
    16,
    17,
    24,
    31,
    32,
    33,
    63,
    64,
    65,
    100,
    127,
    128,
    255,
    256,
    257,
    1000,
    1023,
    1024,
)
NUMBERS += (1025, 4096, 65535, 65536, 2**20, 2**24, 2**28, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**34, 2**40, 2**48)
NUMBERS += (2**58, 2**60, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1, -1, -2, -(2**31), -(2**63))
_TEXTS = (
    *("", "int8", "int32", "int64", "uint8", "bool", "null", "string", "binary", "large_string", "float", "double"),
    *("halffloat", "date64:ms", "time32:s", "time64:ns", "timestamp:us:UTC", "timestamp:us:nowhere", "duration:ns"),
    *("json", "struct", "list", "list.struct", "large_list", "large_list.struct", "map", "blob", "\0", "é" * 50),
    *(
        "decimal:128:38:5",
        "decimal:256:76:-9",
        "decimal:128:99999999999999999999:1",
        "decimal:128:5",
        "decimal:128:0:0",
    ),
    *("fixed_size_binary:0", "fixed_size_binary:3", "fixed_size_binary:8", "fixed_size_binary:2147483647"),
    *(
        "fixed_size_list:float:3",
        "fixed_size_list:int8:2147483647",
        "fixed_size_list:string:2",
        "fixed_size_list:bool:7",
    ),
    *(
        "fixed_size_list:struct:2",
        "fixed_size_list:struct:2147483647",
        "fixed_size_list:null:2",
        "fixed_size_list:x:-1",
    ),
    *("dict:string:int8:false", "dict:int64:int64:false", "dict:null:int8:false", "dict:string:string:false"),
    *("fixed_size_list:dict:int32:int32:false:3", "dict:fixed_size_list:int8:3:int8:false", "fixed_size_list:" * 2000),
    *("dict:dict:string:int8:false:int8:false", "dict:bool:int8:false", "dict:" * 900 + "int8" + ":int8:false" * 900),
    *("fixed_size_list:" * 60 + "int8" + ":2" * 60, "fixed_size_list:fixed_size_binary:2147483647:2147483647"),
)
_MAX_NESTING = 90

Pool = dict[str, list[Message]]
"""Messages in the samples, by the name of their type."""


@dataclass
class Container:
    """A file taken apart; it can be reassembled around damaged messages."""

    data: bytes
    metadata: FileMetadata
    descriptor: file_pb2.FileDescriptor
    columns: list[file_pb2.ColumnMetadata]

    def build(self) -> bytes:
        """Return a file whose footer and tables are right."""
        descriptor = self.descriptor.SerializeToString()
        start = -(-len(self.data) // 64) * 64
        buffers = [ByteRange(start, len(descriptor)), *self.metadata.global_buffers[1:]]
        columns = [column.SerializeToString() for column in self.columns]
        head = self.data.ljust(start, b"\0") + descriptor
        return head + b"".join(serialize_end(columns, buffers, len(head), self.metadata.version))


class MemoryReader:
    """A `RangeReader` over bytes."""

    request_shape = FILE_REQUESTS

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.path = "memory"
        self.size_bytes = len(data)

    def read_ranges(self, ranges: list[ByteRange]) -> list[bytes]:
        assert all(0 <= wanted.offset <= wanted.end <= self.size_bytes for wanted in ranges), "a range is not checked"
        return [self._data[wanted.offset : wanted.end] for wanted in ranges]

    def close(self) -> None:
        """Do nothing."""


def open_container(data: bytes) -> Container:
    tail = TailReader(MemoryReader(data))
    metadata = read_metadata(tail, read_version(tail))
    columns = [file_pb2.ColumnMetadata.FromString(data[entry.offset : entry.end]) for entry in metadata.columns]
    first = metadata.global_buffers[0]
    descriptor = file_pb2.FileDescriptor.FromString(data[first.offset : first.end])
    return Container(data[: min(entry.offset for entry in metadata.columns)], metadata, descriptor, columns)


def copy_container(container: Container) -> Container:
    return Container(
        container.data, container.metadata, copy.deepcopy(container.descriptor), copy.deepcopy(container.columns)
    )


Layout = encodings_pb2.PageLayout | array_encodings_pb2.ArrayEncoding


def layout_of(page: file_pb2.ColumnMetadata.Page) -> Layout:
    wrapped = any_pb2.Any.FromString(page.encoding.direct.encoding)
    if wrapped.type_url.endswith("ArrayEncoding"):
        return array_encodings_pb2.ArrayEncoding.FromString(wrapped.value)
    return encodings_pb2.PageLayout.FromString(wrapped.value)


def set_layout(page: file_pb2.ColumnMetadata.Page, layout: Layout) -> None:
    wrapped = any_pb2.Any.FromString(page.encoding.direct.encoding)
    wrapped.value = layout.SerializeToString()
    page.encoding.direct.encoding = wrapped.SerializeToString()


def encoding_of(column: file_pb2.ColumnMetadata) -> encodings_pb2.ColumnEncoding:
    """Return the metadata of a column, including its zone index."""
    wrapped = any_pb2.Any.FromString(column.encoding.direct.encoding)
    return encodings_pb2.ColumnEncoding.FromString(wrapped.value)


def set_encoding(column: file_pb2.ColumnMetadata, encoding: encodings_pb2.ColumnEncoding) -> None:
    wrapped = any_pb2.Any.FromString(column.encoding.direct.encoding)
    wrapped.value = encoding.SerializeToString()
    column.encoding.direct.encoding = wrapped.SerializeToString()


def walk(message: Message) -> Iterator[Message]:
    """Yield a message and all within it."""
    yield message
    for field, value in message.ListFields():
        if field.type != FieldDescriptor.TYPE_MESSAGE or field.message_type.GetOptions().map_entry:
            continue
        for child in value if field.is_repeated else [value]:
            yield from walk(child)


def collect(pool: Pool, message: Message) -> None:
    for found in walk(message):
        kept = pool.setdefault(found.DESCRIPTOR.full_name, [])
        if found not in kept:
            kept.append(copy.deepcopy(found))


def damage_bytes(rng: random.Random, data: bytes, where: tuple[int, int] | None = None) -> bytes:
    """Flip, overwrite, move, cut or insert bytes, mostly few and mostly at the start of the range."""
    begin, end = where or (0, len(data))
    broken = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if end <= begin:
            break
        span = rng.choice((end - begin, min(end - begin, 64), min(end - begin, 16)))
        position = begin + rng.randrange(span)
        if rng.random() < 0.2:
            position = end - 1 - rng.randrange(span)
        width = rng.choice((1, 2, 4, 8))
        kind = rng.randrange(5)
        if kind == 0:
            broken[position] ^= 1 << rng.randrange(8)
        elif kind == 1:
            word = (rng.choice(NUMBERS) % (1 << 8 * width)).to_bytes(width, "little")
            place = begin + (position - begin) // width * width
            broken[place : min(place + width, end)] = word[: max(min(width, end - place), 0)]
        elif kind == 2:
            old = int.from_bytes(broken[position : position + width], "little")
            word = ((old + rng.choice((-8, -1, 1, 8, 255))) % (1 << 8 * width)).to_bytes(width, "little")
            broken[position : position + width] = word[: len(broken) - position]
        elif kind == 3:
            size = min(rng.randrange(1, 64), end - position)
            source = begin + rng.randrange(end - begin - size + 1)
            broken[position : position + size] = broken[source : source + size]
        else:
            size = min(rng.randrange(1, 64), end - position)
            broken[position : position + size] = rng.randbytes(size)
    return bytes(broken)


def damage_message(rng: random.Random, message: Message, pool: Pool) -> None:
    """Change fields of a message, or of messages within it, in place."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        target = rng.choice(list(walk(message)))
        fields = target.DESCRIPTOR.fields
        if not fields:
            continue
        present = [field for field, _ in target.ListFields()]
        field = rng.choice(present) if present and rng.random() < 0.7 else rng.choice(fields)
        try:
            _damage_field(rng, target, field, pool)
        except ValueError:
            continue  # the number does not fit the field


def _damage_field(rng: random.Random, message: Message, field: FieldDescriptor, pool: Pool) -> None:
    name = field.name
    if rng.random() < 0.1:
        message.ClearField(name)
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        getattr(message, name)[rng.choice(("lance-encoding:packed", "packed", "ARROW:extension:name"))] = b"true"
    elif field.is_repeated:
        _damage_repeated(rng, message, field, pool)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        getattr(message, name).CopyFrom(_other(rng, field, pool))
    else:
        setattr(message, name, _scalar(rng, field, getattr(message, name)))


def _other(rng: random.Random, field: FieldDescriptor, pool: Pool) -> Message:
    known = pool.get(field.message_type.full_name)
    chance = rng.random()
    if field.message_type.name == "CompressiveEncoding" and chance < 0.15:
        return nested_encoding(rng, rng.choice((2, 5, 20, _MAX_NESTING // 2)))
    if not known or chance < 0.25:
        empty: Message = GetMessageClass(field.message_type)()
        return empty
    return copy.deepcopy(rng.choice(known))


def nested_encoding(rng: random.Random, depth: int) -> encodings_pb2.CompressiveEncoding:
    """Return encodings within each other."""
    encoding = encodings_pb2.CompressiveEncoding(flat=encodings_pb2.Flat(bits_per_value=rng.choice((1, 8, 16, 32, 64))))
    for _ in range(depth):
        outer = encodings_pb2.CompressiveEncoding()
        kind = rng.choice(("general", "fsst", "fixed_size_list", "rle", "byte_stream_split", "packed_struct"))
        member = getattr(outer, kind)
        member.values.CopyFrom(encoding)
        if kind == "general":
            member.compression.scheme = rng.choice((1, 2))
        elif kind == "fixed_size_list":
            member.items_per_value = rng.choice((1, 2, 2**16))
        elif kind == "fsst":
            member.symbol_table = (b"\0\0\0\1TSSF").ljust(2312, b"\0")
        encoding = outer
    return encoding


def _damage_repeated(rng: random.Random, message: Message, field: FieldDescriptor, pool: Pool) -> None:
    items = getattr(message, field.name)
    kind = rng.randrange(5)
    is_message = field.type == FieldDescriptor.TYPE_MESSAGE
    if kind == 0 and len(items):
        del items[rng.randrange(len(items))]
    elif kind == 1 and len(items):
        again = copy.deepcopy(items[rng.randrange(len(items))])
        items.extend([again] * rng.choice((1, 1, 2, 40)))
    elif kind == 2 and len(items) > 1:
        moved = [copy.deepcopy(item) for item in items]
        rng.shuffle(moved)
        del items[:]
        items.extend(moved)
    elif kind == 3 and len(items) and not is_message:
        index = rng.randrange(len(items))
        items[index] = _scalar(rng, field, items[index])
    elif is_message:
        items.append(_other(rng, field, pool))
    else:
        items.append(_scalar(rng, field, 0 if field.type != FieldDescriptor.TYPE_STRING else ""))


def _scalar(rng: random.Random, field: FieldDescriptor, old: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_BOOL:
        return not old
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(_TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(rng, old)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 100, -1))
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return rng.choice((0.0, -1.0, float("nan"), 1e300))
    return rng.choice((rng.choice(NUMBERS), old + rng.choice((-8, -1, 1, 8, 64)), old * 2, old // 2))


def _bytes(rng: random.Random, old: bytes) -> bytes:
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: old[: rng.randrange(len(old) + 1)],
        lambda: damage_bytes(rng, old),
        lambda: damage_bytes(rng, old),
        lambda: old + rng.randbytes(rng.randrange(20)),
        lambda: rng.randbytes(rng.randrange(40)),
        lambda: bytes([rng.choice((0, 1, 255))]) * rng.choice((0, 1, 2, 4, 8, 16, 32, 33, 2312)),
    )
    return rng.choice(ways)()
