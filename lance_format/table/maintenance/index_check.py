"""Verification of a part of an index: of its files, and of its content.

Indices are read by their readers as well, since those of other writers have no checksums.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from lance_format.errors import CorruptFileError, LanceError
from lance_format.file import SearchCache
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.indices.building import can_rebuild
from lance_format.table.indices.index_kinds import check_content
from lance_format.table.maintenance.file_check import check_lance_file
from lance_format.table.maintenance.findings import (
    DROP_INDEX,
    REBUILD_INDEX,
    UNVERIFIED,
    Finding,
    status_of,
    with_repair,
)
from lance_format.table.versions.table_version import TableVersion

_INDEX_FILE = "index file"
_CACHE_BYTES = 16 << 20
"""Of an index whose content is read once."""


def check_index(table: TableVersion, index: IndexMetadata) -> Iterator[Finding]:
    """Yield what is found of a part of an index, with the repair of what is wrong."""
    holding = table.directory.holding(index, table.manifest.bases)
    paths = {info.path for info in table.store.list_tree(holding.index(index.uuid))}
    paths |= {f"{holding.index(index.uuid)}/{file.path}" for file in index.message.files}
    findings: list[Finding] = []
    for path in sorted(paths):
        verification = holding.index_verification(index.uuid, path.rpartition("/")[2])
        findings += check_lance_file(table, path, holding.relative(path), _INDEX_FILE, None, verification)
    is_untrained = not paths and index.fragment_ids is not None and not index.fragment_ids  # it names no rows
    if index.is_system or is_untrained:
        yield from findings
        return
    if not any(finding.is_problem for finding in findings):
        findings = _with_content(table, index, findings)
    repair = REBUILD_INDEX if can_rebuild(table, index.name) else DROP_INDEX
    yield from (with_repair(finding, repair) for finding in findings)


def _with_content(table: TableVersion, index: IndexMetadata, findings: Sequence[Finding]) -> list[Finding]:
    """Read an index as searches do, and return findings of its files with what is wrong."""
    try:
        check_content(dataclasses.replace(table, cache=SearchCache(_CACHE_BYTES)), index)
    except LanceError as error:
        holding = table.directory.holding(index, table.manifest.bases)
        path = error.path if isinstance(error, CorruptFileError) else None
        relative = holding.relative(path or holding.index(index.uuid))
        known = {finding.path: finding for finding in findings}
        offset = error.offset if isinstance(error, CorruptFileError) else None
        found = known.get(relative, Finding(relative, _INDEX_FILE, UNVERIFIED))
        known[relative] = dataclasses.replace(found, status=status_of(error), offset=offset, detail=str(error))
        return list(known.values())
    return list(findings)
