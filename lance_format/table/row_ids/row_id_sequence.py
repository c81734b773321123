"""Row ids: identities of the rows of a table with stable row ids, which survive moves.

Every fragment lists the ids of its rows in their order, deleted rows included, as segments. An appended fragment has
one range. A compacted one has about one segment per source fragment. One that a merge of the reference wrote has a
range for almost every row.

Source: `RowIdSequence` in `rowids.proto` of the specification.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
from google.protobuf.message import DecodeError

from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import rowids_pb2
from lance_format.table.format.layout import check_segment
from lance_format.table.row_ids.runs import Positions, Runs, U64Array, check_ascending, check_slice
from lance_format.table.row_ids.segment_messages import parse_segment, refuse_unknown_fields, serialize_segments
from lance_format.table.row_ids.segments import Range, Ranges, U64Segment, choose_segment

_WHAT = "the row id sequence"


@dataclass(frozen=True, slots=True)
class RowIdSequence:
    """The ids of rows, in their order.

    Segments expand on demand: a sequence takes the memory of its serialization, a range next to none.

    Parameters
    ----------
    segments : tuple of U64Segment
    """

    segments: tuple[U64Segment, ...] = ()

    @classmethod
    def from_range(cls, start: int, stop: int) -> RowIdSequence:
        """Return the ids from `start` up to `stop`.

        Raises
        ------
        InvalidInputError
            If the bounds are no range of unsigned 64-bit integers, or the range has more ids than positions.
        """
        if not (0 <= start <= stop < 2**64 and stop - start < 2**63):
            raise InvalidInputError(f"row ids from {start} to {stop} are no range of unsigned 64-bit integers")
        return cls((Range(start, stop),) if start < stop else ())

    @classmethod
    def from_array(cls, row_ids: U64Array) -> RowIdSequence:
        """Return a sequence of ids, `uint64[n]`, as one segment of the shape that takes the fewest bytes."""
        return cls((choose_segment(Runs.of(row_ids)),) if row_ids.size else ())

    @staticmethod
    def concatenate(sequences: Iterable[RowIdSequence]) -> RowIdSequence:
        """Concatenate sequences."""
        return RowIdSequence._of(segment for sequence in sequences for segment in sequence.segments)

    @classmethod
    def _of(cls, segments: Iterable[U64Segment]) -> RowIdSequence:
        """Join neighbouring ranges, and leave out empty segments."""
        joined: list[U64Segment] = []
        some = (segment for segment in segments if segment.num_values)
        for are_ranges, neighbours in itertools.groupby(some, lambda segment: isinstance(segment, Range | Ranges)):
            group = list(neighbours)
            joined += [Ranges.join(group)] if are_ranges else group
        return cls(tuple(joined))

    def __len__(self) -> int:
        return sum(segment.num_values for segment in self.segments)

    def to_numpy(self) -> U64Array:
        """Return all ids, `uint64[len(self)]`."""
        return np.concatenate([np.zeros(0, np.uint64), *(segment.values() for segment in self.segments)])

    def runs(self) -> Runs:
        """Return the ids as runs of consecutive ones, which takes no memory for ranges."""
        return Runs.concatenate(segment.runs() for segment in self.segments)

    def take(self, positions: Positions) -> U64Array:
        """Return the ids at some positions, in any order.

        Parameters
        ----------
        positions : int64[n]

        Returns
        -------
        uint64[n]

        Raises
        ------
        InvalidInputError
            If a position is not in the sequence.
        """
        row_ids = np.empty(positions.size, np.uint64)
        order = None if (positions[1:] >= positions[:-1]).all() else np.argsort(positions, kind="stable")
        for segment, begin, end, local in self._split(positions if order is None else positions[order]):
            if begin < end:
                row_ids[slice(begin, end) if order is None else order[begin:end]] = segment.take(local)
        return row_ids

    def select(self, positions: Positions) -> RowIdSequence:
        """Return the ids at some positions, `int64[n]`, in that order.

        Raises
        ------
        InvalidInputError
            If a position is not in the sequence.
        """
        return self.from_array(self.take(positions))

    def delete(self, positions: Positions) -> RowIdSequence:
        """Return the ids of all rows except some; segments without removed ids are unchanged.

        Parameters
        ----------
        positions : int64[n]
            Ascending and distinct.

        Raises
        ------
        InvalidInputError
            If a position is not in the sequence, or not after the one before it.
        """
        check_ascending(positions)
        kept = (segment.without(local) if local.size else segment for segment, _, _, local in self._split(positions))
        return self._of(kept)

    def slice(self, start: int, stop: int) -> RowIdSequence:
        """Return the ids of the rows `start <= row < stop`, with all segments re-encoded in the fewest bytes.

        Raises
        ------
        InvalidInputError
            If the sequence lacks one of these rows.
        """
        check_slice(start, stop, len(self), "row ids")
        pieces = []
        for segment, first, last in self._bounds():
            if max(first, start) < min(last, stop):
                pieces.append(segment.slice(max(first, start) - first, min(last, stop) - first))
        return self._of(pieces)

    def _bounds(self) -> Iterator[tuple[U64Segment, int, int]]:
        """Yield every segment with the positions of its first id and of the one after its last."""
        first = 0
        for segment in self.segments:
            last = first + segment.num_values
            yield segment, first, last
            first = last

    def _split(self, positions: Positions) -> Iterator[tuple[U64Segment, int, int, Positions]]:
        """Yield for every segment the range of ascending positions that belong to it, and these positions within it."""
        bounds = list(self._bounds())
        size = bounds[-1][2] if bounds else 0
        if positions.size and not (positions[0] >= 0 and positions[-1] < size):
            wrong = positions[0] if positions[0] < 0 else positions[-1]
            raise InvalidInputError(f"row {wrong} of a sequence of {size} row ids is requested")
        ends = np.searchsorted(positions, np.array([last for _, _, last in bounds], np.int64)).tolist()
        for (segment, first, _), begin, end in zip(bounds, [0, *ends], ends, strict=False):
            yield segment, begin, end, positions[begin:end] - first


def parse_row_ids(data: bytes, expected_rows: int) -> RowIdSequence:
    """Build a sequence from its serialization.

    Parameters
    ----------
    data : bytes
    expected_rows : int
        Number of rows of the fragment, deleted ones included.

    Raises
    ------
    CorruptFileError
        If it is malformed, or has another number of ids.
    """
    sequence = parse_partial_row_ids(data, expected_rows)
    if len(sequence) != expected_rows:
        raise CorruptFileError(f"{_WHAT} has {len(sequence)} ids for {expected_rows} rows")
    return sequence


def parse_partial_row_ids(data: bytes, max_rows: int) -> RowIdSequence:
    """Build a sequence that may end before the fragment does.

    The new fragments of an update that also inserts name the rows that were moved; the others follow them, and get
    their ids from the commit.

    Parameters
    ----------
    data : bytes
    max_rows : int
        Number of rows of the fragment.

    Raises
    ------
    CorruptFileError
        If it is malformed, or has more ids than there are rows.
    """
    try:
        message = rowids_pb2.RowIdSequence.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"malformed row id sequence: {error}") from error
    refuse_unknown_fields(message, _WHAT)
    segments = []
    left = max_rows
    for part in message.segments:
        segment = parse_segment(part, left, _WHAT)
        left -= segment.num_values
        segments.append(segment)
    return RowIdSequence._of(segments)


def serialize_row_ids(sequence: RowIdSequence) -> bytes:
    """Return the bytes of a sequence, segment by segment."""
    return rowids_pb2.RowIdSequence(segments=serialize_segments(sequence.segments)).SerializeToString(
        deterministic=True
    )


def check_external(path: str, offset: int, size: int, what: str) -> str:
    """Check that the path of a file with a sequence stays in the table, and return it.

    Parameters
    ----------
    path : str
        Relative to the table.
    offset, size : int
        Byte range in the file.
    what : str
        Name of the sequence in error messages.

    Raises
    ------
    CorruptFileError
        If the path is anything but one plain path segment, or no file could be that large.
    """
    if offset + size >= 2**63:
        raise CorruptFileError(f"{what} is said to end at byte {offset + size} of {path[:300]!r}")
    return check_segment(path, what)
