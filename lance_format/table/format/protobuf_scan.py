"""Scanning the protobuf of many small messages at once.

A message is a run of fields. A field is a tag (`number << 3 | wire type`) and a varint, or a length and its bytes:

    message 0   | tag value | tag length bytes …  |
    message 1   | tag length bytes … | tag value  |
                  ^ one step of the scan: the next field of every message that has one

A step is a few NumPy operations on all messages; ten thousand of them take as long as some hundred objects.
Only one-byte tags, varints and lengths are supported. Anything else, or an inconsistency, makes a message *odd*: its
results are invalid, and it must be parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_format.lazy_dataclasses import dataclass

PADDING = bytes(16)
"""Follows the data, so that a varint can be read where they end."""

VARINT, BYTES = 0, 2
_ODD = 255
_MAX_FIELDS = 64
_MAX_VARINT_BYTES = 10

Integers: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Data: TypeAlias = npt.NDArray[np.uint8]


def tag_kinds(wire_types: Mapping[int, int], unread: Iterable[int] = ()) -> Data:
    """Return the kind of each one-byte tag: uint8[256].

    Parameters
    ----------
    wire_types : mapping of int to int
        Wire types of the known fields. Other fields are skipped.
    unread : iterable of int
        Fields that make a message odd.
    """
    kinds = np.full(256, _ODD, np.uint8)
    for tag in range(1 << 3, 1 << 7):
        number, wire_type = tag >> 3, tag & 7
        if wire_type in (VARINT, BYTES) and wire_types.get(number, wire_type) == wire_type and number not in unread:
            kinds[tag] = wire_type
    return kinds


@dataclass(frozen=True, slots=True)
class ScannedFields:
    """The fields of many messages.

    Parameters
    ----------
    num_messages : int
    owners, numbers, values, starts : int64[num_fields]
        For each the message, its number, its value or length, and where in the data its bytes start.
    odd : bool[num_messages]
        Of which messages nothing is known.
    """

    num_messages: int
    owners: Integers
    numbers: Integers
    values: Integers
    starts: Integers
    odd: Mask

    def all_of(self, number: int) -> tuple[Integers, Integers, Integers]:
        """Return owners, lengths and starts of a field that messages have any number of times, by ascending owner."""
        positions = np.flatnonzero(self.numbers == number)
        positions = positions[np.argsort(self.owners[positions], kind="stable")]
        return self.owners[positions], self.values[positions], self.starts[positions]

    def value_of(self, number: int, default: int = 0) -> Integers:
        """Return the value or length of a field for every message; one that has it twice becomes odd."""
        positions = self._positions_of(number)
        values = np.full(self.num_messages, default, np.int64)
        values[self.owners[positions]] = self.values[positions]
        return values

    def bytes_of(self, number: int) -> tuple[Integers, Integers]:
        """Return starts and lengths of a field for every message, 0 without it; one that has it twice becomes odd."""
        positions = self._positions_of(number)
        starts, lengths = np.zeros((2, self.num_messages), np.int64)
        starts[self.owners[positions]], lengths[self.owners[positions]] = self.starts[positions], self.values[positions]
        return starts, lengths

    def _positions_of(self, number: int) -> Integers:
        positions = np.flatnonzero(self.numbers == number)
        self.odd[np.bincount(self.owners[positions], minlength=self.num_messages) > 1] = True
        return positions


def scan_messages(data: Data, starts: Integers, ends: Integers, kinds: Data) -> ScannedFields:
    """Find the fields of messages.

    Parameters
    ----------
    data : uint8[num_bytes]
        Ends with `PADDING`.
    starts, ends : int64[num_messages]
        Half-open ranges of `data` without the padding.
    kinds : uint8[256]
        See `tag_kinds`.
    """
    cursors, odd = starts.copy(), np.zeros(starts.size, np.bool_)
    found = [np.zeros((4, 0), np.int64)]
    active = np.flatnonzero(starts < ends)
    for _ in range(_MAX_FIELDS):
        if not active.size:
            break
        at, limits = cursors[active], ends[active]
        tags = data[at]
        kind = kinds[tags]
        values, contents, good = _read_varints(data, at + 1)
        lengths = np.where(kind == BYTES, values, 0)
        good &= (kind != _ODD) & (lengths >= 0) & (lengths <= limits - contents)
        fields = np.stack([active, tags >> 3, values, contents])
        if not good.all():
            odd[active[~good]] = True
            fields, lengths, limits = fields[:, good], lengths[good], limits[good]
        found.append(fields)
        next_cursors = fields[3] + lengths
        cursors[fields[0]] = next_cursors
        active = fields[0][next_cursors < limits]
    odd[active] = True
    owners, numbers, all_values, all_contents = np.concatenate(found, axis=1)
    return ScannedFields(starts.size, owners, numbers, all_values, all_contents, odd)


def _read_varints(data: Data, at: Integers) -> tuple[Integers, Integers, Mask]:
    """Return the varints at some offsets, modulo 2**64 and signed, their ends, and whether they are well-formed."""
    byte = data[at]
    values, ends, good = (byte & 0x7F).astype(np.int64), at + 1, np.ones(at.size, np.bool_)
    more = np.flatnonzero(byte >= 0x80)
    for position in range(1, _MAX_VARINT_BYTES):
        if not more.size:
            return values, ends, good
        byte = data[at[more] + position]
        values[more] |= (byte & 0x7F).astype(np.int64) << (7 * position)
        ends[more] += 1
        if position == _MAX_VARINT_BYTES - 1:
            good[more[byte > 1]] = False
        more = more[byte >= 0x80]
    good[more] = False
    return values, ends, good


def read_packed(data: Data, starts: Integers, lengths: Integers) -> tuple[Integers, Integers, Mask]:
    """Read lists of varints.

    Parameters
    ----------
    data : uint8[num_bytes]
    starts, lengths : int64[num_lists]
        Where each list lies.

    Returns
    -------
    owners, values : int64[num_values]
        For each value its list; ascending. Values are modulo 2**64, and signed.
    odd : bool[num_lists]
        Which lists are malformed, so that their values, or how many they are, mean nothing.
    """
    odd = np.zeros(starts.size, np.bool_)
    stops = np.cumsum(lengths)
    positions = np.arange(int(lengths.sum())) + np.repeat(starts - (stops - lengths), lengths)
    owners, bytes_ = np.repeat(np.arange(starts.size), lengths), data[positions]
    is_last = bytes_ < 0x80
    if is_last.all():
        return owners, bytes_.astype(np.int64), odd
    lists = np.flatnonzero(lengths)
    odd[lists[~is_last[stops[lists] - 1]]] = True
    lasts = np.flatnonzero(is_last)
    if not lasts.size:
        return owners[:0], np.zeros(0, np.int64), odd
    firsts = np.concatenate([[0], lasts[:-1] + 1])
    sizes = lasts - firsts + 1
    bytes_ = bytes_[: lasts[-1] + 1]
    depths = np.arange(bytes_.size) - np.repeat(firsts, sizes)
    wrong = (owners[firsts] != owners[lasts]) | (sizes > _MAX_VARINT_BYTES)
    wrong |= (sizes == _MAX_VARINT_BYTES) & (bytes_[lasts] > 1)
    odd[owners[lasts[wrong]]] = True
    shifts = (7 * np.minimum(depths, _MAX_VARINT_BYTES - 1)).astype(np.uint64)
    values = np.add.reduceat((bytes_ & 0x7F).astype(np.uint64) << shifts, firsts)
    return owners[lasts], values.view(np.int64), odd
