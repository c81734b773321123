"""Row versions: the versions of a table that created and last updated each row of a fragment.

A fragment has one sequence for each of the two, deleted rows included: runs of rows, each with a version. A run's span
is a segment; only its number of values matters. Writers store the offsets of the rows, but those that compaction writes
do not start at the run's first row.

Source: `RowDatasetVersionSequence` in `rowids.proto` of the specification.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import rowids_pb2
from lance_format.table.row_ids.runs import Positions, check_ascending, check_slice
from lance_format.table.row_ids.segment_messages import parse_segment, refuse_unknown_fields

Versions = npt.NDArray[np.uint64]

_WHAT = "the row version sequence"


@dataclass(frozen=True, slots=True, eq=False)
class RowVersionSequence:
    """The versions of rows, in their order; build it by its class methods.

    Parameters
    ----------
    stops : int64[num_runs]
        The row after the last one of each run; ascending.
    versions : uint64[num_runs]
        Adjacent runs differ.
    """

    stops: Positions
    versions: Versions

    @classmethod
    def constant(cls, version: int, num_rows: int) -> RowVersionSequence:
        """Return one version for all rows."""
        return cls._of(np.array([num_rows], np.int64), np.array([version], np.uint64))

    @classmethod
    def from_array(cls, versions: Versions) -> RowVersionSequence:
        """Return the sequence of versions, `uint64[num_rows]`."""
        return cls._of(np.ones(versions.size, np.int64), versions)

    @classmethod
    def concatenate(cls, sequences: Iterable[RowVersionSequence]) -> RowVersionSequence:
        """Concatenate sequences."""
        parts = list(sequences)
        lengths = [np.zeros(0, np.int64), *(part._lengths() for part in parts)]
        return cls._of(np.concatenate(lengths), np.concatenate([np.zeros(0, np.uint64), *(x.versions for x in parts)]))

    @classmethod
    def _of(cls, lengths: Positions, versions: Versions) -> RowVersionSequence:
        """Join neighbouring runs of one version, and leave out the empty ones."""
        lengths, versions = lengths[lengths > 0], versions[lengths > 0]
        last = np.append(versions[1:] != versions[:-1], True)[: versions.size]
        return cls(np.cumsum(lengths)[last], versions[last])

    def __len__(self) -> int:
        return int(self.stops[-1]) if self.stops.size else 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowVersionSequence):
            return NotImplemented
        return np.array_equal(self.stops, other.stops) and np.array_equal(self.versions, other.versions)

    def __hash__(self) -> int:
        return hash((self.stops.tobytes(), self.versions.tobytes()))

    def to_numpy(self) -> Versions:
        """Return all versions, `uint64[len(self)]`."""
        return np.repeat(self.versions, self._lengths())

    def take(self, positions: Positions) -> Versions:
        """Return the versions, `uint64[n]`, of the rows at some positions, `int64[n]`, in any order.

        Raises
        ------
        InvalidInputError
            If a position is not in the sequence.
        """
        self._check(positions)
        return self.versions[np.searchsorted(self.stops, positions, side="right")]

    def select(self, positions: Positions) -> RowVersionSequence:
        """Return the versions of the rows at some positions, `int64[n]`, in that order.

        Raises
        ------
        InvalidInputError
            If a position is not in the sequence.
        """
        return self.from_array(self.take(positions))

    def delete(self, positions: Positions) -> RowVersionSequence:
        """Return the versions of all rows except some, `int64[n]`, ascending and distinct.

        Raises
        ------
        InvalidInputError
            If a position is not in the sequence, or not after the one before it.
        """
        self._check(positions)
        check_ascending(positions)
        deleted = np.diff(np.searchsorted(positions, self.stops), prepend=0)
        return self._of(self._lengths() - deleted, self.versions)

    def slice(self, start: int, stop: int) -> RowVersionSequence:
        """Return the versions of the rows from `start` up to `stop`.

        Raises
        ------
        InvalidInputError
            If these are no rows of the sequence.
        """
        check_slice(start, stop, len(self), "row versions")
        lengths = np.minimum(self.stops, stop) - np.maximum(self.stops - self._lengths(), start)
        return self._of(np.maximum(lengths, 0), self.versions)

    def replace(self, positions: Positions, version: int) -> RowVersionSequence:
        """Return the sequence with another version for the rows at some positions, `int64[n]`.

        Raises
        ------
        InvalidInputError
            If a position is not in the sequence.
        """
        self._check(positions)
        versions = self.to_numpy()
        versions[positions] = version
        return self.from_array(versions)

    def _lengths(self) -> Positions:
        return np.diff(self.stops, prepend=0)

    def _check(self, positions: Positions) -> None:
        if positions.size and not (positions.min() >= 0 and positions.max() < len(self)):
            raise InvalidInputError(
                f"rows {positions.min()} to {positions.max()} of a sequence of {len(self)} row versions are requested"
            )


def parse_row_versions(data: bytes, expected_rows: int) -> RowVersionSequence:
    """Build a sequence from its serialization.

    Parameters
    ----------
    data : bytes
    expected_rows : int
        Number of rows of the fragment, deleted ones included.

    Raises
    ------
    CorruptFileError
        If it is malformed, or has another number of rows.
    """
    try:
        message = rowids_pb2.RowDatasetVersionSequence.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"malformed row version sequence: {error}") from error
    refuse_unknown_fields(message, _WHAT)
    lengths = []
    left = expected_rows
    for run in message.runs:
        lengths.append(parse_segment(run.span, left, _WHAT).num_values)
        left -= lengths[-1]
    if left:
        raise CorruptFileError(f"{_WHAT} has {expected_rows - left} rows for {expected_rows} rows")
    versions = [run.version for run in message.runs]
    return RowVersionSequence._of(np.array(lengths, np.int64), np.array(versions, np.uint64))


def serialize_row_versions(sequence: RowVersionSequence) -> bytes:
    """Return the bytes of a sequence; the span of a run is the range of its rows."""
    message = rowids_pb2.RowDatasetVersionSequence()
    start = 0
    for stop, version in zip(sequence.stops.tolist(), sequence.versions.tolist(), strict=True):
        run = message.runs.add(version=version)
        run.span.range.start, run.span.range.end = start, stop
        start = stop
    return message.SerializeToString(deterministic=True)
