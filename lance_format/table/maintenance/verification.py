"""Verification of a version of a table: every byte of its files, and the agreement of its files with each other.

Of other versions, manifests and transactions are verified, and the presence of files (`history_check.py`).

It has the shape of a change (`lance_format.table.versions.planned_change`), so that threads or a cluster run its tasks.
Its commit makes no version; `lance_format.table.maintenance.repair` has the changes that repair what was found.
"""

from __future__ import annotations

import dataclasses
import functools
import uuid as uuids
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import pyarrow as pa

from lance_format.errors import LanceError
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import map_together
from lance_format.progress import Work, advance
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.manifest_file import MAX_MANIFEST_BYTES, has_checksum
from lance_format.table.fragments.deletion_file import has_checksum as deletion_has_checksum
from lance_format.table.indices.building import ChangedIndices
from lance_format.table.maintenance.file_check import check_lance_file
from lance_format.table.maintenance.findings import (
    DAMAGED,
    INTACT,
    MISSING,
    ORPHANED,
    REWRITE_FRAGMENT,
    UNVERIFIED,
    Finding,
    LostRows,
    status_of,
    with_repair,
)
from lance_format.table.maintenance.history_check import check_history
from lance_format.table.maintenance.index_check import check_index
from lance_format.table.maintenance.lost_rows import (
    RecoverableFragment,
    find_lost_values,
    find_other_holder,
    lost_deletions,
)
from lance_format.table.maintenance.validation import (
    announce_checks,
    check_fragment_ids,
    check_row_ids,
    uncached,
    validate_fragment,
)
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES
from lance_format.table.transaction.operations import Operation
from lance_format.table.versions.planned_change import ChangePlan, ChangeTask, bytes_of
from lance_format.table.versions.table_version import Draft, TableVersion

_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("type", pa.string()),
        ("status", pa.string()),
        ("fragment_id", pa.int64()),
        ("size_bytes", pa.int64()),
        ("verified_bytes", pa.int64()),
        ("offset", pa.int64()),
        ("detail", pa.string()),
        ("repair", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """Result of a verification, and of the repair after it.

    Parameters
    ----------
    findings : tuple of Finding
        One per file; of a damaged file one per damage.
    lost : tuple of LostRows
        Rows of the version that have lost values, or of which it is unknown whether they are deleted.
    recoverable : tuple of RecoverableFragment
        Fragments with damaged files, whose live rows can all be read.
    damaged_indices : tuple of str
        The uuids of indices with damaged or missing files.
    rewritten_fragments : tuple of int
        Fragments that the repair has replaced by others with the same rows.
    rebuilt_indices, dropped_indices : tuple of str
        Names of damaged indices that the repair has rebuilt, or dropped because only their writer can build them.
    restored_files : tuple of str
        Paths of transaction files that the repair has written again.
    """

    findings: tuple[Finding, ...]
    lost: tuple[LostRows, ...] = ()
    recoverable: tuple[RecoverableFragment, ...] = ()
    damaged_indices: tuple[str, ...] = ()
    rewritten_fragments: tuple[int, ...] = ()
    rebuilt_indices: tuple[str, ...] = ()
    dropped_indices: tuple[str, ...] = ()
    restored_files: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Findings of what is damaged, missing or inconsistent."""
        return tuple(finding for finding in self.findings if finding.is_problem)

    @property
    def irreparable(self) -> tuple[Finding, ...]:
        """Problems that a repair does nothing about."""
        return tuple(finding for finding in self.problems if not finding.repair)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files that a version needs."""
        return sum(finding.size_bytes for finding in self.findings if finding.status != ORPHANED)

    @property
    def verified_bytes(self) -> int:
        """Bytes whose checksums were compared."""
        return sum(finding.verified_bytes for finding in self.findings)

    @property
    def summary(self) -> str:
        """A text with the numbers of findings and problems, and with what a repair has done."""
        counts = [(len(self.findings), "findings"), (len(self.problems), "problems")]
        counts.append((len({rows.fragment_id for rows in self.lost}), "fragments with lost rows"))
        done = [
            ("rewrote the fragments", tuple(map(str, self.rewritten_fragments))),
            ("rebuilt the indices", self.rebuilt_indices),
            ("dropped the indices", self.dropped_indices),
            ("wrote again", self.restored_files),
        ]
        text = ", ".join(f"{count} {what}" for count, what in counts if count or what != "fragments with lost rows")
        return text + "".join(f"; {what} {', '.join(names)}" for what, names in done if names)

    def repaired(
        self,
        rewritten_fragments: tuple[int, ...] = (),
        indices: ChangedIndices | None = None,
        restored_files: tuple[str, ...] = (),
    ) -> VerificationReport:
        """Return the report with what a repair has done.

        Parameters
        ----------
        rewritten_fragments : tuple of int
            Their ids.
        indices : ChangedIndices, optional
        restored_files : tuple of str
            Their paths.
        """
        return dataclasses.replace(
            self,
            rewritten_fragments=rewritten_fragments,
            rebuilt_indices=() if indices is None else indices.built,
            dropped_indices=() if indices is None else indices.dropped,
            restored_files=restored_files,
        )

    def to_table(self) -> pa.Table:
        """Return the findings as a table, a row per finding."""
        columns = {name: [getattr(finding, name) for finding in self.findings] for name in _SCHEMA.names}
        return pa.table(columns, _SCHEMA)


@dataclass(frozen=True, slots=True)
class VerifiedFiles:
    """The result of a task.

    Parameters
    ----------
    number : int
    uuid : str
    findings : tuple of Finding
    lost, recoverable, damaged_indices : tuple
        See `VerificationReport`.
    """

    number: int
    uuid: str
    findings: tuple[Finding, ...] = ()
    lost: tuple[LostRows, ...] = ()
    recoverable: tuple[RecoverableFragment, ...] = ()
    damaged_indices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerificationTask(ChangeTask[VerifiedFiles]):
    """Verification of some fragments, of a part of an index, or of what is neither.

    Parameters
    ----------
    read_version : int
    number : int
        Number of the task within the plan.
    uuid : str
        The uuid of the plan.
    fragments : tuple of FragmentMetadata
    index_uuid : str, optional
        Of the part of an index.
    with_history : bool
        Whether it verifies the manifest, and the history of the table.
    """

    read_version: int
    number: int
    uuid: str
    fragments: tuple[FragmentMetadata, ...] = ()
    index_uuid: str | None = None
    with_history: bool = False

    def run(self, table: TableVersion) -> VerifiedFiles:
        """See `ChangeTask`."""
        table = verifying(table)
        checked = []
        found = map_together(table.store, functools.partial(_check_fragment, table), self.fragments)
        for fragment, each in zip(self.fragments, found, strict=True):
            checked.append(each)
            advance(Work.CHECKING, fragment.physical_rows, fragment.known_bytes)
        findings = [finding for each in checked for finding in each.findings]
        damaged: dict[str, None] = {}
        for index in table.manifest.indices:
            if index.uuid == self.index_uuid:
                of_index = list(check_index(table, index))
                findings += of_index
                if any(finding.repair for finding in of_index):
                    damaged[index.uuid] = None
        if self.with_history:
            findings += _check_manifest(table)
            findings += _check_agreement(table)
            findings += check_history(table.directory, table.manifest.branch, table.manifest.version)
        lost = tuple(rows for each in checked for rows in each.lost)
        recoverable = tuple(each.recoverable for each in checked if each.recoverable is not None)
        return VerifiedFiles(self.number, self.uuid, tuple(findings), lost, recoverable, tuple(damaged))


@dataclass(frozen=True, slots=True)
class VerificationPlan(ChangePlan[VerifiedFiles, VerificationReport]):
    """Planned verification.

    Parameters
    ----------
    read_version : int
    tasks : tuple of VerificationTask
    uuid : str
    """

    read_version: int
    tasks: tuple[VerificationTask, ...]
    uuid: str = field(default_factory=lambda: str(uuids.uuid4()))

    def announce(self, table: TableVersion) -> None:
        """Tell the physical rows and the bytes of all fragments."""
        announce_checks(table)

    def operation(self, draft: Draft, results: Sequence[VerifiedFiles]) -> Operation | None:  # noqa: ARG002
        """Return None: there is nothing to commit."""
        return None

    def outcome(self, results: Sequence[VerifiedFiles]) -> VerificationReport:
        """See `ChangePlan`."""
        ordered = sorted(results, key=lambda result: result.number)
        return VerificationReport(
            tuple(finding for result in ordered for finding in result.findings),
            tuple(rows for result in ordered for rows in result.lost),
            tuple(fragment for result in ordered for fragment in result.recoverable),
            tuple(uuid for result in ordered for uuid in result.damaged_indices),
        )


def verifying(table: TableVersion) -> TableVersion:
    """Return a version that compares checksums, and has nothing in its cache, since what is cached is not read."""
    return dataclasses.replace(uncached(table), directory=dataclasses.replace(table.directory, verifies=True))


def plan_verification(table: TableVersion, *, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES) -> VerificationPlan:
    """Plan the verification of a version of a table; see `LanceDataset.verify`."""
    uuid = str(uuids.uuid4())
    groups = list(_groups(table.manifest.fragments, split_size_bytes))
    version = table.manifest.version
    tasks = [VerificationTask(version, 0, uuid, with_history=True)]
    tasks += [VerificationTask(version, number, uuid, fragments=tuple(group)) for number, group in enumerate(groups, 1)]
    parts = dict.fromkeys(index.uuid for index in table.manifest.indices)
    tasks += [VerificationTask(version, number, uuid, index_uuid=part) for number, part in enumerate(parts, len(tasks))]
    return VerificationPlan(version, tuple(tasks), uuid)


def _groups(fragments: Iterable[FragmentMetadata], split_size_bytes: int) -> Iterator[list[FragmentMetadata]]:
    """Yield fragments in groups of about the same number of bytes; those of unknown size alone."""
    group: list[FragmentMetadata] = []
    size = 0
    for fragment in fragments:
        known = bytes_of([fragment]) or split_size_bytes
        if group and size + known > split_size_bytes:
            yield group
            group, size = [], 0
        group.append(fragment)
        size += known
    if group:
        yield group


def _check_manifest(table: TableVersion) -> Iterator[Finding]:
    path = table.history().manifest_path(table.manifest.version)
    content = table.store.read(path, MAX_MANIFEST_BYTES)
    status, verified = UNVERIFIED, 0
    if has_checksum(content):
        status, verified = INTACT, len(content)
        table.directory.parse_manifest(content, path, table.manifest.version)
    yield Finding(table.directory.relative(path), "manifest", status, None, len(content), verified)


def _check_agreement(table: TableVersion) -> Iterator[Finding]:
    """Yield what is wrong with the fragments among each other."""
    relative = table.directory.relative(table.history().manifest_path(table.manifest.version))
    for check in (check_fragment_ids, check_row_ids):
        try:
            check(table)
        except LanceError as error:
            yield Finding(relative, "manifest", status_of(error), detail=str(error))


@dataclass(frozen=True, slots=True)
class _CheckedFragment:
    """Damage of a fragment; see `VerificationReport`."""

    findings: tuple[Finding, ...]
    lost: tuple[LostRows, ...] = ()
    recoverable: RecoverableFragment | None = None


def _check_fragment(table: TableVersion, fragment: FragmentMetadata) -> _CheckedFragment:
    findings: list[Finding] = []
    damage: dict[DataFile, list[int]] = {}
    for file in fragment.files:
        holding = table.directory.holding(file, table.manifest.bases)
        verification, relative = holding.verification(file.path), file.relative_path
        path = holding.path(relative)
        found = list(check_lance_file(table, path, relative, "data file", fragment.id, verification))
        findings += found
        if any(finding.is_problem for finding in found):
            damage[file] = [finding.offset for finding in found if finding.offset is not None]
    deletion = None if fragment.deletion_file is None else _check_deletion_file(table, fragment)
    if deletion is not None:
        findings.append(deletion)
    knows_deleted = deletion is None or not deletion.is_problem
    lost = [] if knows_deleted else [lost_deletions(fragment)]
    if damage:
        lost_values, unreadable = find_lost_values(table, fragment, damage)
        is_known = all(finding.status in (DAMAGED, MISSING) for finding in findings if finding.is_problem)
        if not lost_values and knows_deleted and is_known:
            rewritten = tuple(with_repair(finding, REWRITE_FRAGMENT) for finding in findings)
            return _CheckedFragment(rewritten, recoverable=RecoverableFragment(fragment, unreadable))
        holder = find_other_holder(table, fragment, damage) if lost_values else None
        lost += [dataclasses.replace(rows, version=holder) for rows in lost_values]
    elif not lost:
        try:
            validate_fragment(table, fragment)
        except LanceError as error:
            status = status_of(error)
            findings.append(Finding(f"fragment {fragment.id}", "fragment", status, fragment.id, detail=str(error)))
    return _CheckedFragment(tuple(findings), tuple(lost))


def _check_deletion_file(table: TableVersion, fragment: FragmentMetadata) -> Finding:
    deletion = fragment.deletion_file
    assert deletion is not None
    relative = deletion.path(fragment.id)
    (size,) = table.store.sizes([table.directory.holding(deletion, table.manifest.bases).path(relative)])
    kind = "deletion file"
    if size is None:
        return Finding(relative, kind, MISSING, fragment.id, detail="the file is missing; its rows would come back")
    try:
        table.scan(fragment, table.manifest.schema).deleted_rows()
    except LanceError as error:
        return Finding(relative, kind, status_of(error), fragment.id, size, detail=str(error))
    is_verified = deletion_has_checksum(deletion)
    return Finding(relative, kind, INTACT if is_verified else UNVERIFIED, fragment.id, size, size if is_verified else 0)
