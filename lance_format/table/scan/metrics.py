"""Description of a scan's plan, and counts of rows and files that it has read and skipped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ReadCounter
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.scan.joined_rows import JoinedRows
from lance_format.table.scan.pace import Pace
from lance_format.table.scan.pruning.index_pruning import PrunedFragments
from lance_format.table.scan.stages import Stages

_LOGGER = logging.getLogger("lance_format.scan")


@dataclass(frozen=True, slots=True)
class ScanMetrics:
    """Counts of a scan. `iops` to `index_comparisons` are named as in pylance.

    Parameters
    ----------
    iops, requests : int
        Number of reads of data files; adjacent ranges count as one.
    bytes_read : int
        Bytes read of data files, footers and payloads of blobs included.
    indices_loaded, parts_loaded, index_comparisons : int
        Numbers of indices, their parts and their zones that the filter used, cached or not. Their reads are not counted
        elsewhere.
    files_opened : int
    fragments, fragments_scanned : int
        Number of fragments of the table or task, and of those with a row read.
    rows, rows_scanned : int
        Number of physical rows of these fragments, and of rows read: tested by the filter, or read without one. An
        abandoned scan has read fewer.
    rows_returned : int
    seconds : float
        Elapsed time, including the consumer's.
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
        """Number of fragments without a row read."""
        return self.fragments - self.fragments_scanned

    @property
    def rows_skipped(self) -> int:
        """Number of rows not read."""
        return self.rows - self.rows_scanned

    @property
    def all_counts(self) -> dict[str, int]:
        """Counts without an attribute in pylance."""
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
    """Meter of a running scan.

    Parameters
    ----------
    pace : Pace
    num_fragments, num_rows : int
    pruned : PrunedFragments
    """

    pace: Pace
    num_fragments: int
    num_rows: int
    pruned: PrunedFragments = field(default_factory=PrunedFragments)
    reads: ReadCounter = field(default_factory=ReadCounter)
    scanned: set[int] = field(default_factory=set)
    """Ids of the fragments that were read."""
    rows_scanned: int = 0
    rows_returned: int = 0
    started: float = field(default_factory=time.perf_counter)

    def begin(self, pace: Pace) -> None:
        """Go on at another pace."""
        self.rows_scanned += self.pace.num_seen
        self.pace = pace

    def metered(self, found: Iterable[JoinedRows], scans: Iterable[FragmentReader]) -> Iterator[JoinedRows]:
        """Count fragments, and their rows that are returned."""
        self.scanned.update(scan.fragment.id for scan in scans)
        for joined in found:
            self.rows_returned += joined.batch.num_rows
            yield joined

    def metrics(self) -> ScanMetrics:
        """Return the counts so far."""
        rows_scanned = self.rows_scanned + self.pace.num_seen
        return ScanMetrics(
            iops=self.reads.num_requests,
            requests=self.reads.num_requests,
            bytes_read=self.reads.num_bytes,
            files_opened=self.reads.num_files,
            fragments=self.num_fragments,
            fragments_scanned=len(self.scanned),
            rows=max(self.num_rows, rows_scanned),  # Tables of early releases lack their number.
            rows_scanned=rows_scanned,
            rows_returned=self.rows_returned,
            seconds=time.perf_counter() - self.started,
            indices_loaded=self.pruned.num_indices,
            parts_loaded=self.pruned.num_parts,
            index_comparisons=self.pruned.num_zones,
        )


def report(uri: str, version: int, metrics: ScanMetrics, callback: MetricsCallback | None) -> None:
    """Log the metrics of a scan, and pass them to a callback, whose exceptions are logged.

    Parameters
    ----------
    uri : str
    version : int
    metrics : ScanMetrics
    callback : callable, optional
    """
    _LOGGER.debug("scan of %s, version %d: %s", uri, version, metrics)
    if callback is not None:
        try:
            callback(metrics)
        except Exception:  # A failing callback does not affect the rows; the reference behaves the same.
            _LOGGER.exception("the callback for the statistics of a scan of %s failed", uri)


def describe_plan(stages: Stages, filter_text: str, limit: int | None, offset: int, *, verbose: bool) -> list[str]:
    """Describe the steps of a scan, line by line.

    Parameters
    ----------
    stages : Stages
    filter_text : str
        The filter as SQL; empty if there is none.
    limit : int, optional
    offset : int
    verbose : bool
        Whether to add the types of columns.
    """
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
