"""Texts and counts about a scan: what it is going to do, and what it has read and skipped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lance_format.object_store import ReadCounter
from lance_format.table.scan.index_pruning import PrunedFragments
from lance_format.table.scan.late_materialisation import Pace, Stages
from lance_format.table.scan.scanned_fragment import Rows

_LOGGER = logging.getLogger("lance_format.scan")


@dataclass(frozen=True, slots=True)
class ScanMetrics:
    """Counts of a scan. `iops` to `index_comparisons` are named as in pylance.

    Parameters
    ----------
    iops, requests : int
        Ranges of data files that were read, those that lie close together as one.
    bytes_read : int
        Of data files, their footers and payloads of blobs included.
    indices_loaded, parts_loaded, index_comparisons : int
        The indices that the filter was looked up in, from memory or not, parts of them, and zones. What was read for
        that is not counted elsewhere.
    files_opened : int
    fragments, fragments_scanned : int
        What there was, of the table or of a task, and of how many of these any row was looked at.
    rows, rows_scanned : int
        Physical rows of all these fragments, and how many of them were looked at: the filter was computed over them, or
        they were read because there is none. Whoever gives up a scan has looked at fewer.
    rows_returned : int
    seconds : float
        On the clock, with what was done with the rows in between.
    """

    iops: int
    requests: int
    bytes_read: int
    files_opened: int
    fragments: int
    fragments_scanned: int
    rows: int
    rows_scanned: int
    rows_returned: int
    seconds: float
    indices_loaded: int = 0
    parts_loaded: int = 0
    index_comparisons: int = 0

    @property
    def fragments_skipped(self) -> int:
        """Number of fragments that were not looked at."""
        return self.fragments - self.fragments_scanned

    @property
    def rows_skipped(self) -> int:
        """Number of rows that were not looked at."""
        return self.rows - self.rows_scanned

    @property
    def all_counts(self) -> dict[str, int]:
        """The counts that pylance has no attribute for."""
        return {
            "fragments_scanned": self.fragments_scanned,
            "rows_scanned": self.rows_scanned,
            "fragments_skipped": self.fragments_skipped,
            "rows_skipped": self.rows_skipped,
            "rows_returned": self.rows_returned,
            "files_opened": self.files_opened,
        }

    @property
    def all_times(self) -> dict[str, int]:
        """Times in nanoseconds."""
        return {"elapsed": int(self.seconds * 1e9)}

    def __str__(self) -> str:
        return (
            f"fragments={self.fragments_scanned} of {self.fragments}, rows={self.rows_scanned} of {self.rows}"
            f" (skipped {self.rows_skipped}), returned={self.rows_returned}, files={self.files_opened},"
            f" requests={self.requests}, bytes={self.bytes_read}, indices={self.indices_loaded},"
            f" seconds={self.seconds:.3f}"
        )


MetricsCallback = Callable[[ScanMetrics], object]


@dataclass(slots=True)
class ScanMeter:
    """Counts what a scan does while it goes on.

    Parameters
    ----------
    pace : Pace
        Of the scan.
    num_fragments, num_rows : int
        What there is.
    pruned : PrunedFragments
        What indices said.
    """

    pace: Pace
    num_fragments: int
    num_rows: int
    pruned: PrunedFragments = field(default_factory=PrunedFragments)
    reads: ReadCounter = field(default_factory=ReadCounter)
    fragments_scanned: int = 0
    rows_scanned: int = 0
    rows_returned: int = 0
    started: float = field(default_factory=time.perf_counter)

    def metered(self, rows: Iterator[Rows], num_fragments: int = 1) -> Iterator[Rows]:
        """Count the rows of fragments that are returned."""
        self.fragments_scanned += num_fragments
        for batch, live in rows:
            self.rows_returned += batch.num_rows
            yield batch, live

    def metrics(self) -> ScanMetrics:
        """Return what has been done so far."""
        rows_scanned = self.rows_scanned + self.pace.num_seen
        return ScanMetrics(
            iops=self.reads.num_requests,
            requests=self.reads.num_requests,
            bytes_read=self.reads.num_bytes,
            files_opened=self.reads.num_files,
            fragments=self.num_fragments,
            fragments_scanned=self.fragments_scanned,
            rows=max(self.num_rows, rows_scanned),  # Tables of early releases do not say how many there are.
            rows_scanned=rows_scanned,
            rows_returned=self.rows_returned,
            seconds=time.perf_counter() - self.started,
            indices_loaded=self.pruned.num_indices,
            parts_loaded=self.pruned.num_parts,
            index_comparisons=self.pruned.num_zones,
        )


def report(uri: str, version: int, metrics: ScanMetrics, callback: MetricsCallback | None) -> None:
    """Log what a scan has done, and tell it whoever asked for it."""
    _LOGGER.debug("scan of %s, version %d: %s", uri, version, metrics)
    if callback is not None:
        try:
            callback(metrics)
        except Exception:  # The rows are right whatever becomes of their numbers; the reference does so too.
            _LOGGER.exception("the callback for the statistics of a scan of %s failed", uri)


def describe_plan(stages: Stages, filter_text: str, limit: int | None, offset: int, *, verbose: bool) -> list[str]:
    """Return what a scan reads in which order, line by line."""
    projection = stages.projection
    lines = [f"columns: {', '.join(projection.schema.names) or '(none)'}"]
    if verbose:
        lines += [f"  {part.name}: {part.type}" for part in projection.schema]
    if projection.filter is not None:
        tested = [*projection.filter_source.names, *projection.filter_row_columns]
        lines.append(f"filter: {filter_text}")
        lines.append(f"read for the filter: {', '.join(tested) or '(nothing)'}")
        lines.append(f"read for the rows that pass: {', '.join(stages.late.names) or '(nothing)'}")
    if limit is not None:
        lines.append(f"limit: {limit}")
    if offset:
        lines.append(f"offset: {offset}")
    return lines
