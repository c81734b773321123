"""How much larger than its stored bytes what was compressed may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from lance_format.compression.byte_codecs import MOST_EXPANSION
from lance_format.compression.fsst import SYMBOL_BYTES
from lance_format.proto import encodings_pb2


def most_expansion(encoding: Message) -> int:
    """Return how many times their stored size byte strings may have.

    Parameters
    ----------
    encoding : Message
        A compression of values, or anything that holds one, such as the layout of a page.
    """
    inner = [most_expansion(held) for field, value in encoding.ListFields() for held in _messages(field, value)]
    return _own_expansion(encoding) * max(inner, default=1)


def _messages(field: FieldDescriptor, value: Any) -> Sequence[Message]:
    if isinstance(value, Message):
        return [value]
    return [] if field.message_type is None else value


def _own_expansion(encoding: Message) -> int:
    if isinstance(encoding, encodings_pb2.General):
        return MOST_EXPANSION.get(encoding.compression.scheme, 1)
    return SYMBOL_BYTES if isinstance(encoding, encodings_pb2.Fsst) else 1
