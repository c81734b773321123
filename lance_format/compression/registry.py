"""Compressions by encoding and context: two tables of readers, and one of unsupported encodings with reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lance_format.compression import (
    bitpacking,
    byte_stream_split,
    constant,
    fixed_size_list,
    flat,
    fsst,
    general,
    packed_struct,
    planes,
    rle,
    variable,
    variable_packed_struct,
)
from lance_format.compression.byte_codecs import LZ4
from lance_format.compression.codec import Context, Decompressor, PerValueDecompressor
from lance_format.errors import CorruptFileError, NotSupportedError
from lance_format.proto import encodings_pb2

Parser: TypeAlias = Callable[[encodings_pb2.CompressiveEncoding], Decompressor]
PerValueParser: TypeAlias = Callable[[encodings_pb2.CompressiveEncoding], PerValueDecompressor]

_NEVER_THERE = "the format does not allow it here"


def _general(context: Context) -> Parser:
    def parse(encoding: encodings_pb2.CompressiveEncoding) -> Decompressor:
        scheme = general.parse_scheme(encoding)
        inner = encoding.general.values
        if scheme == LZ4 and context is Context.MINI_BLOCK and inner.WhichOneof("compression") == "byte_stream_split":
            return planes.parse(inner)
        limit = general.max_bits_per_value(inner)
        return general.GeneralDecompressor(scheme, parse_decompressor(inner, context), limit)

    return parse


def _general_per_value(encoding: encodings_pb2.CompressiveEncoding) -> PerValueDecompressor:
    scheme = general.parse_scheme(encoding)
    return general.GeneralPerValueDecompressor(scheme, parse_per_value_decompressor(encoding.general.values))


def _fsst(encoding: encodings_pb2.CompressiveEncoding) -> Decompressor:
    table = fsst.SymbolTable.parse(encoding.fsst.symbol_table)
    return fsst.FsstDecompressor(table, parse_decompressor(encoding.fsst.values, Context.MINI_BLOCK))


def _fsst_per_value(encoding: encodings_pb2.CompressiveEncoding) -> PerValueDecompressor:
    table = fsst.SymbolTable.parse(encoding.fsst.symbol_table)
    return fsst.FsstPerValueDecompressor(table, parse_per_value_decompressor(encoding.fsst.values))


def _variable_packed_struct(encoding: encodings_pb2.CompressiveEncoding) -> PerValueDecompressor:
    return variable_packed_struct.parse_fields(encoding, parse_per_value_decompressor)


DECOMPRESSORS: dict[tuple[str, Context], Parser] = {
    ("flat", Context.MINI_BLOCK): flat.parse,
    ("flat", Context.BLOCK): flat.parse,
    ("variable", Context.MINI_BLOCK): variable.parse,
    ("variable", Context.BLOCK): variable.parse_block,
    ("inline_bitpacking", Context.MINI_BLOCK): bitpacking.parse_inline,
    ("inline_bitpacking", Context.BLOCK): bitpacking.parse_inline,
    ("out_of_line_bitpacking", Context.BLOCK): bitpacking.parse_out_of_line,
    ("constant", Context.BLOCK): constant.parse,
    ("fsst", Context.MINI_BLOCK): _fsst,
    ("rle", Context.MINI_BLOCK): rle.parse,
    ("rle", Context.BLOCK): rle.parse_block,
    ("byte_stream_split", Context.MINI_BLOCK): byte_stream_split.parse,
    ("general", Context.MINI_BLOCK): _general(Context.MINI_BLOCK),
    ("general", Context.BLOCK): _general(Context.BLOCK),
    ("fixed_size_list", Context.MINI_BLOCK): fixed_size_list.parse,
    ("packed_struct", Context.MINI_BLOCK): packed_struct.parse,
}
"""Parsers of encodings of buffers, by the name of the protobuf member and the context."""

PER_VALUE_DECOMPRESSORS: dict[tuple[str, Context], PerValueParser] = {
    ("flat", Context.PER_VALUE): flat.parse_per_value,
    ("variable", Context.PER_VALUE): variable.parse_per_value,
    ("fsst", Context.PER_VALUE): _fsst_per_value,
    ("general", Context.PER_VALUE): _general_per_value,
    ("fixed_size_list", Context.PER_VALUE): fixed_size_list.parse_per_value,
    ("variable_packed_struct", Context.PER_VALUE): _variable_packed_struct,
}
"""Parsers of encodings of single values, keyed alike."""

READ: frozenset[tuple[str, Context]] = frozenset(DECOMPRESSORS) | frozenset(PER_VALUE_DECOMPRESSORS)
"""Encodings that are read."""

COMPRESSORS: frozenset[tuple[str, Context]] = frozenset(
    {
        ("flat", Context.MINI_BLOCK),
        ("flat", Context.BLOCK),
        ("flat", Context.PER_VALUE),
        ("variable", Context.MINI_BLOCK),
        ("variable", Context.BLOCK),
        ("variable", Context.PER_VALUE),
        ("inline_bitpacking", Context.MINI_BLOCK),
        ("out_of_line_bitpacking", Context.BLOCK),
        ("fsst", Context.MINI_BLOCK),
        ("fsst", Context.PER_VALUE),
        ("rle", Context.MINI_BLOCK),
        ("rle", Context.BLOCK),
        ("byte_stream_split", Context.MINI_BLOCK),
        ("general", Context.MINI_BLOCK),
        ("general", Context.BLOCK),
        ("general", Context.PER_VALUE),
        ("fixed_size_list", Context.MINI_BLOCK),
        ("fixed_size_list", Context.PER_VALUE),
        ("packed_struct", Context.MINI_BLOCK),
        ("variable_packed_struct", Context.PER_VALUE),
    }
)
"""Encodings that are written."""

UNSUPPORTED: dict[tuple[str, Context], str] = {
    ("constant", Context.MINI_BLOCK): "no known writer uses it",
    ("constant", Context.PER_VALUE): "no known writer uses it",
    ("out_of_line_bitpacking", Context.MINI_BLOCK): _NEVER_THERE,
    ("out_of_line_bitpacking", Context.PER_VALUE): _NEVER_THERE,
    ("inline_bitpacking", Context.PER_VALUE): _NEVER_THERE,
    ("fsst", Context.BLOCK): _NEVER_THERE,
    **{("dictionary", context): "pages keep dictionaries in their layout" for context in Context},
    ("rle", Context.PER_VALUE): _NEVER_THERE,
    ("byte_stream_split", Context.BLOCK): _NEVER_THERE,
    ("byte_stream_split", Context.PER_VALUE): _NEVER_THERE,
    ("fixed_size_list", Context.BLOCK): "no known writer uses it",
    ("packed_struct", Context.BLOCK): _NEVER_THERE,
    ("packed_struct", Context.PER_VALUE): _NEVER_THERE,
    ("variable_packed_struct", Context.MINI_BLOCK): _NEVER_THERE,
    ("variable_packed_struct", Context.BLOCK): _NEVER_THERE,
    **{("range", context): "part of the unstable file format 2.3" for context in Context},
    **{("delta", context): "part of the unstable file format 2.3" for context in Context},
}
"""Encodings that are not read, with the reasons."""


def parse_decompressor(encoding: encodings_pb2.CompressiveEncoding, context: Context) -> Decompressor:
    """Build the decompressor of an encoding of mini-block values or of a block.

    Raises
    ------
    CorruptFileError
        If the encoding is empty or contradicts itself.
    NotSupportedError
        If it is valid, but not read in this context.
    """
    parse = DECOMPRESSORS.get((_name(encoding, context), context))
    if parse is None:
        raise _refusal(encoding, context)
    return parse(encoding)


def parse_per_value_decompressor(encoding: encodings_pb2.CompressiveEncoding) -> PerValueDecompressor:
    """Build the decompressor of an encoding of full-zip values; raises as `parse_decompressor` does."""
    parse = PER_VALUE_DECOMPRESSORS.get((_name(encoding, Context.PER_VALUE), Context.PER_VALUE))
    if parse is None:
        raise _refusal(encoding, Context.PER_VALUE)
    return parse(encoding)


def _name(encoding: encodings_pb2.CompressiveEncoding, context: Context) -> str:
    name: str | None = encoding.WhichOneof("compression")
    if name is None:
        raise CorruptFileError(f"{context.value} have an encoding that is empty or unknown")
    return name


def _refusal(encoding: encodings_pb2.CompressiveEncoding, context: Context) -> NotSupportedError:
    name = _name(encoding, context)
    return NotSupportedError(f"encoding {name!r} of {context.value} cannot be read: {UNSUPPORTED[name, context]}")
