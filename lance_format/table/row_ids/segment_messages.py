"""Protobuf messages of segments, which are validated before they expand."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from google.protobuf.message import Message

from lance_format.errors import CorruptFileError
from lance_format.proto import rowids_pb2
from lance_format.table.row_ids.segments import (
    Array,
    EncodedArray,
    Range,
    Ranges,
    RangeWithBitmap,
    RangeWithHoles,
    SortedArray,
    U64Segment,
)

_MAX = 2**64 - 1
_ENCODED_WIDTHS = {"u16_array": 2, "u32_array": 4, "u64_array": 8}


def parse_segment(message: rowids_pb2.U64Segment, max_values: int, what: str) -> U64Segment:
    """Build a segment from its protobuf.

    Parameters
    ----------
    message : rowids_pb2.U64Segment
    max_values : int
        A segment with more is refused before it takes memory.
    what : str
        Name of the segment in error messages.

    Raises
    ------
    CorruptFileError
        If it contradicts itself, or has too many integers.
    """
    kind = message.WhichOneof("segment")
    if kind is None:
        raise CorruptFileError(f"{what} has a segment of no known kind")
    segment = _PARSERS[kind](getattr(message, kind), what)
    if segment.num_values > max_values:
        raise CorruptFileError(f"{what} has a segment of {segment.num_values} values; at most {max_values} are left")
    return segment


def serialize_segments(segments: Iterable[U64Segment]) -> list[rowids_pb2.U64Segment]:
    """Return the protobufs of segments."""
    messages = []
    for segment in segments:
        if isinstance(segment, Ranges):
            runs = segment.runs()
            for start, length in zip(runs.starts.tolist(), runs.lengths.tolist(), strict=True):
                messages.append(_SERIALIZERS[Range](Range(start, start + length)))
        else:
            messages.append(_SERIALIZERS[type(segment)](segment))
    return messages


def refuse_unknown_fields(message: Message, what: str) -> None:
    """Raise `CorruptFileError` if a message has unknown fields, or fields of a wrong wire type.

    The rest would still parse, but to other integers.
    """
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        raise CorruptFileError(f"{what} has fields that are not known; it is damaged, or of a newer format")


def _parse_range(message: rowids_pb2.U64Segment.Range, what: str) -> Range:
    _check_bounds(message.start, message.end, what)
    return Range(message.start, message.end)


def _parse_range_with_holes(message: rowids_pb2.U64Segment.RangeWithHoles, what: str) -> RangeWithHoles:
    start, stop = message.start, message.end
    _check_bounds(start, stop, what)
    holes = _parse_ascending(message.holes, what)
    if len(holes) and not start <= int(holes.take(np.array([0]))[0]) <= int(holes.take(np.array([-1]))[0]) < stop:
        raise CorruptFileError(f"{what} has a hole outside of its range [{start}, {stop})")
    return RangeWithHoles(start, stop, holes)


def _parse_range_with_bitmap(message: rowids_pb2.U64Segment.RangeWithBitmap, what: str) -> RangeWithBitmap:
    start, stop, bitmap = message.start, message.end, message.bitmap
    _check_bounds(start, stop, what)
    slots = stop - start
    if len(bitmap) != -(-slots // 8):
        raise CorruptFileError(f"{what} has a bitmap of {len(bitmap)} bytes for the {slots} values of its range")
    if slots % 8 and bitmap[-1] >> slots % 8:
        raise CorruptFileError(f"{what} has a bitmap with bits past the end of its range of {slots} values")
    return RangeWithBitmap(start, stop, bitmap)


def _parse_sorted_array(message: rowids_pb2.EncodedU64Array, what: str) -> SortedArray:
    return SortedArray(_parse_ascending(message, what))


def _parse_any_array(message: rowids_pb2.EncodedU64Array, what: str) -> Array:
    return Array(_parse_array(message, what))


def _check_bounds(start: int, stop: int, what: str) -> None:
    if start > stop:
        raise CorruptFileError(f"{what} has a range that starts at {start} and ends at {stop}")


def _parse_ascending(message: rowids_pb2.EncodedU64Array, what: str) -> EncodedArray:
    array = _parse_array(message, what)
    offsets = array.offsets()
    if (offsets[1:] <= offsets[:-1]).any():
        raise CorruptFileError(f"{what} has an array that does not ascend, where one is expected")
    return array


def _parse_array(message: rowids_pb2.EncodedU64Array, what: str) -> EncodedArray:
    kind = message.WhichOneof("array")
    if kind is None:
        raise CorruptFileError(f"{what} has an array of no known kind")
    width = _ENCODED_WIDTHS[kind]
    if width == 8:
        base, data = 0, message.u64_array.values
    else:
        encoded = getattr(message, kind)
        base, data = encoded.base, encoded.offsets
    if len(data) % width:
        raise CorruptFileError(f"{what} has an array of {len(data)} bytes, {width} a value")
    array = EncodedArray(base, width, data)
    if len(array) and base + int(array.offsets().max()) > _MAX:
        raise CorruptFileError(f"{what} has an array from {base} on, whose values do not fit 64 bits")
    return array


def _serialize_array(array: EncodedArray) -> rowids_pb2.EncodedU64Array:
    encoded = rowids_pb2.EncodedU64Array
    if array.width == 8:
        return encoded(u64_array=encoded.U64Array(values=array.values().astype("<u8").tobytes()))
    if array.width == 4:
        return encoded(u32_array=encoded.U32Array(base=array.base, offsets=array.data))
    return encoded(u16_array=encoded.U16Array(base=array.base, offsets=array.data))


_PARSERS: dict[str, Callable[..., U64Segment]] = {
    "range": _parse_range,
    "range_with_holes": _parse_range_with_holes,
    "range_with_bitmap": _parse_range_with_bitmap,
    "sorted_array": _parse_sorted_array,
    "array": _parse_any_array,
}
_MESSAGE = rowids_pb2.U64Segment
_SERIALIZERS: dict[type[U64Segment], Callable[..., rowids_pb2.U64Segment]] = {
    Range: lambda segment: _MESSAGE(range=_MESSAGE.Range(start=segment.start, end=segment.stop)),
    RangeWithHoles: lambda segment: _MESSAGE(
        range_with_holes=_MESSAGE.RangeWithHoles(
            start=segment.start, end=segment.stop, holes=_serialize_array(segment.holes)
        )
    ),
    RangeWithBitmap: lambda segment: _MESSAGE(
        range_with_bitmap=_MESSAGE.RangeWithBitmap(start=segment.start, end=segment.stop, bitmap=segment.bitmap)
    ),
    SortedArray: lambda segment: _MESSAGE(sorted_array=_serialize_array(segment.array)),
    Array: lambda segment: _MESSAGE(array=_serialize_array(segment.array)),
}
