"""Which compression reads which encoding in which context: one table, and one of what is not read, with reasons."""

from __future__ import annotations

from collections.abc import Callable

from lance_format.compression import bitpacking, flat, rle, variable
from lance_format.compression.codec import Context, Decompressor
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2

_NOT_YET = "not implemented yet"
_NEVER_THERE = "the format does not allow it here"

DECOMPRESSORS: dict[tuple[str, Context], Callable[[encodings_pb2.CompressiveEncoding], Decompressor]] = {
    ("flat", Context.MINI_BLOCK): flat.parse,
    ("flat", Context.BLOCK): flat.parse,
    ("inline_bitpacking", Context.MINI_BLOCK): bitpacking.parse_inline,
    ("inline_bitpacking", Context.BLOCK): bitpacking.parse_inline,
    ("out_of_line_bitpacking", Context.BLOCK): bitpacking.parse_out_of_line,
    ("rle", Context.BLOCK): rle.parse_block,
    ("variable", Context.MINI_BLOCK): variable.parse,
}
"""Parsers of encodings, by the name of the protobuf member and the context."""

COMPRESSORS: frozenset[tuple[str, Context]] = frozenset(
    {
        ("flat", Context.MINI_BLOCK),
        ("flat", Context.BLOCK),
        ("inline_bitpacking", Context.MINI_BLOCK),
        ("out_of_line_bitpacking", Context.BLOCK),
        ("variable", Context.MINI_BLOCK),
    }
)
"""What is written."""

UNSUPPORTED: dict[tuple[str, Context], str] = {
    ("flat", Context.PER_VALUE): _NOT_YET,
    ("variable", Context.BLOCK): _NOT_YET,
    ("variable", Context.PER_VALUE): _NOT_YET,
    **{("constant", context): "no known writer uses it" for context in Context},
    ("out_of_line_bitpacking", Context.MINI_BLOCK): _NEVER_THERE,
    ("out_of_line_bitpacking", Context.PER_VALUE): _NOT_YET,
    ("inline_bitpacking", Context.PER_VALUE): _NEVER_THERE,
    **{("fsst", context): _NOT_YET for context in Context},
    **{("dictionary", context): "pages keep dictionaries in their layout" for context in Context},
    ("rle", Context.MINI_BLOCK): _NOT_YET,
    ("rle", Context.PER_VALUE): _NEVER_THERE,
    **{("byte_stream_split", context): _NOT_YET for context in Context},
    **{("general", context): _NOT_YET for context in Context},
    **{("fixed_size_list", context): _NOT_YET for context in Context},
    **{("packed_struct", context): _NOT_YET for context in Context},
    **{("variable_packed_struct", context): _NOT_YET for context in Context},
    **{("range", context): "part of the unstable file format 2.3" for context in Context},
    **{("delta", context): "part of the unstable file format 2.3" for context in Context},
}
"""What is not read, and why."""


def parse_decompressor(encoding: encodings_pb2.CompressiveEncoding, context: Context) -> Decompressor:
    """Build the decompressor of an encoding.

    Raises
    ------
    CorruptFileError
        If the encoding says nothing or contradicts itself.
    NotSupportedError
        If it is valid, but not read in this context.
    """
    name = encoding.WhichOneof("compression")
    if name is None:
        raise CorruptFileError(f"{context.value} have an encoding that is empty or unknown")
    parse = DECOMPRESSORS.get((name, context))
    if parse is None:
        reason = UNSUPPORTED[name, context]
        raise NotSupportedError(f"encoding {name!r} of {context.value} cannot be read: {reason}")
    return parse(encoding)
