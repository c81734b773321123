"""Fragments that are worth rewriting, and the parts of them that tasks rewrite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.maintenance.compaction_options import CompactionOptions
from lance_format.table.versions.table_version import TableVersion


def find_candidates(table: TableVersion, options: CompactionOptions) -> Iterator[list[FragmentMetadata]]:
    """Yield groups of adjacent fragments, one per task, up to the limits of a compaction."""
    target_rows = options.target_rows_per_fragment
    parts = (part for group in _worthwhile(table, options) for part in _split(table, group, target_rows))
    return _within_limits(table, parts, options)


def _within_limits(
    table: TableVersion, parts: Iterator[list[FragmentMetadata]], options: CompactionOptions
) -> Iterator[list[FragmentMetadata]]:
    """Yield parts up to the limits of a compaction."""
    nothing = table.manifest.schema.select([])
    num_fragments = num_rows = num_bytes = 0
    for part in parts:
        num_fragments += len(part)
        num_rows += sum(table.scan(fragment, nothing).num_rows() for fragment in part)
        num_bytes += sum(file.file_size_bytes for fragment in part for file in fragment.files)
        if (
            num_fragments > (options.max_source_fragments or num_fragments)
            or num_rows > (options.max_source_rows or num_rows)
            or num_bytes > (options.max_source_bytes or num_bytes)
        ):
            return
        yield part


def _worthwhile(table: TableVersion, options: CompactionOptions) -> Iterator[list[FragmentMetadata]]:
    """Yield groups of adjacent fragments to rewrite together.

    Fragments that different indices cover are not combined: an index covers a fragment completely or not at all.
    """
    group: list[FragmentMetadata] = []
    group_indices: list[str] = []
    renews = options.renews(table)
    worth_alone = False

    def rewritten() -> bool:
        return len(group) > 1 or worth_alone

    for fragment in table.manifest.fragments:
        scan = table.scan(fragment, table.manifest.schema.select([]))
        physical_rows = scan.physical_rows()
        too_deleted = options.materialize_deletions and (
            scan.num_deletions() > options.materialize_deletions_threshold * physical_rows
        )
        candidate = fragment.id not in options.excluded_fragment_ids and (
            renews or too_deleted or physical_rows < options.target_rows_per_fragment
        )
        indices = [index.uuid for index in table.manifest.indices if index.covers_any([fragment.id])]
        if group and (not candidate or indices != group_indices):
            if rewritten():
                yield group
            group, worth_alone = [], False
        if candidate:
            group.append(fragment)
            group_indices = indices
            worth_alone |= renews or too_deleted
    if rewritten() and group:
        yield group


def _split(
    table: TableVersion, group: Sequence[FragmentMetadata], target_rows: int
) -> Iterator[list[FragmentMetadata]]:
    """Cut a group into parts of about the target's size; the last takes what would be too little on its own."""
    rows = [table.scan(fragment, table.manifest.schema.select([])).num_rows() for fragment in group]
    left = sum(rows)
    part: list[FragmentMetadata] = []
    num_rows = 0
    for fragment, count in zip(group, rows, strict=True):
        part.append(fragment)
        num_rows += count
        if num_rows >= target_rows and left - num_rows >= target_rows:
            yield part
            left -= num_rows
            part, num_rows = [], 0
    if part:
        yield part
