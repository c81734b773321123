"""Verification of a version of a table: every byte of its files, and the agreement of its files with each other.

Of other versions, manifests and transactions are verified, and the presence of files (`history_check.py`).

It has the shape of a change (`lance_format.table.versions.planned_change`), so that threads or a cluster run its tasks.
Its commit makes a version only for a repair.
"""

from __future__ import annotations

import dataclasses
import uuid as uuids
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import pyarrow as pa

from lance_format.errors import CorruptFileError, LanceError, NotSupportedError
from lance_format.file import FileReader, SearchCache, Verification
from lance_format.lazy_dataclasses import dataclass
from lance_format.object_store import ObjectNotFoundError
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.format.manifest_file import MAX_MANIFEST_BYTES, has_checksum, parse_manifest
from lance_format.table.fragments.deletion_file import has_checksum as deletion_has_checksum
from lance_format.table.maintenance.findings import INTACT, MISSING, ORPHANED, UNVERIFIED, Finding, status_of
from lance_format.table.maintenance.history_check import check_history
from lance_format.table.maintenance.validation import (
    announce_checks,
    check_fragment_ids,
    check_row_ids,
    validate_fragment,
)
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES
from lance_format.table.transaction.operations import CreateIndex, Operation
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
    ]
)


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """Result of a verification.

    Parameters
    ----------
    findings : tuple of Finding
        One per file; of a damaged file one per damage.
    dropped_indices : tuple of str
        Names of damaged indices that the repair has dropped.
    """

    findings: tuple[Finding, ...]
    dropped_indices: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Findings of what is damaged, missing or inconsistent."""
        return tuple(finding for finding in self.findings if finding.is_problem)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files that a version needs."""
        return sum(finding.size_bytes for finding in self.findings if finding.status != ORPHANED)

    @property
    def verified_bytes(self) -> int:
        """Bytes whose checksums were compared."""
        return sum(finding.verified_bytes for finding in self.findings)

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
    damaged_indices : tuple of str
        Names of indices with damaged or missing files.
    """

    number: int
    uuid: str
    findings: tuple[Finding, ...]
    damaged_indices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerificationTask(ChangeTask[VerifiedFiles]):
    """Verification of some fragments, or of all that is not a fragment."""

    read_version: int
    number: int
    uuid: str
    fragments: tuple[FragmentMetadata, ...]
    with_table: bool

    def run(self, table: TableVersion) -> VerifiedFiles:
        """See `ChangeTask`."""
        directory = dataclasses.replace(table.directory, verifies=True)
        table = dataclasses.replace(table, directory=directory, cache=SearchCache())  # What is cached is not read.
        findings = [finding for fragment in self.fragments for finding in _check_fragment(table, fragment)]
        damaged: dict[str, None] = {}
        if self.with_table:
            findings += _check_manifest(table)
            findings += _check_agreement(table)
            for index in table.manifest.indices:
                found = list(_check_index(table, index))
                findings += found
                if any(finding.is_problem for finding in found):
                    damaged[index.name] = None
            findings += check_history(table.directory, table.manifest.branch, table.manifest.version)
        return VerifiedFiles(self.number, self.uuid, tuple(findings), tuple(damaged))


@dataclass(frozen=True, slots=True)
class VerificationPlan(ChangePlan[VerifiedFiles, VerificationReport]):
    """Planned verification.

    Parameters
    ----------
    read_version : int
    tasks : tuple of VerificationTask
    repairs : bool
        Whether the commit drops damaged indices.
    uuid : str
    """

    read_version: int
    tasks: tuple[VerificationTask, ...]
    repairs: bool
    uuid: str = field(default_factory=lambda: str(uuids.uuid4()))

    def announce(self, table: TableVersion) -> None:
        """Tell the physical rows and the bytes of all fragments."""
        announce_checks(table)

    def operation(self, draft: Draft, results: Sequence[VerifiedFiles]) -> Operation | None:
        """Drop damaged indices, which can be created again; see `ChangePlan`."""
        names = self._dropped(results)
        removed = tuple(index for index in draft.table.manifest.indices if index.name in names)
        return CreateIndex((), removed) if removed else None

    def outcome(self, results: Sequence[VerifiedFiles]) -> VerificationReport:
        """See `ChangePlan`."""
        ordered = sorted(results, key=lambda result: result.number)
        findings = tuple(finding for result in ordered for finding in result.findings)
        return VerificationReport(findings, self._dropped(results))

    def _dropped(self, results: Sequence[VerifiedFiles]) -> tuple[str, ...]:
        return tuple(sorted({name for result in results for name in result.damaged_indices} if self.repairs else ()))


def plan_verification(
    table: TableVersion, *, repair: bool = False, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES
) -> VerificationPlan:
    """Plan the verification of a version of a table; see `LanceDataset.verify`."""
    uuid = str(uuids.uuid4())
    groups = list(_groups(table.manifest.fragments, split_size_bytes))
    version = table.manifest.version
    tasks = [VerificationTask(version, 0, uuid, (), True)]
    tasks += [VerificationTask(version, number, uuid, tuple(group), False) for number, group in enumerate(groups, 1)]
    return VerificationPlan(version, tuple(tasks), repair, uuid)


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
        parse_manifest(content, path=path, version=table.manifest.version)
    yield Finding(table.directory.relative(path), "manifest", status, None, len(content), verified)


def _check_agreement(table: TableVersion) -> Iterator[Finding]:
    """Yield what is wrong with the fragments among each other."""
    relative = table.directory.relative(table.history().manifest_path(table.manifest.version))
    for check in (check_fragment_ids, check_row_ids):
        try:
            check(table)
        except LanceError as error:
            yield Finding(relative, "manifest", status_of(error), detail=str(error))


def _check_fragment(table: TableVersion, fragment: FragmentMetadata) -> Iterator[Finding]:
    is_readable = True
    for file in fragment.files:
        holding = table.directory.holding(file, table.manifest.bases)
        verification, relative = holding.verification(file.path), file.relative_path
        for finding in _check_lance_file(
            table, holding.path(relative), relative, "data file", fragment.id, verification
        ):
            is_readable = is_readable and not finding.is_problem
            yield finding
    if fragment.deletion_file is not None:
        deletion = _check_deletion_file(table, fragment)
        is_readable = is_readable and not deletion.is_problem
        yield deletion
    if is_readable:
        try:
            validate_fragment(table, fragment)
        except LanceError as error:
            yield Finding(f"fragment {fragment.id}", "fragment", status_of(error), fragment.id, detail=str(error))


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


def _check_index(table: TableVersion, index: IndexMetadata) -> Iterator[Finding]:
    holding = table.directory.holding(index, table.manifest.bases)
    paths = {info.path for info in table.store.list_tree(holding.index(index.uuid))}
    paths |= {f"{holding.index(index.uuid)}/{file.path}" for file in index.message.files}
    for path in sorted(paths):
        name = path.rpartition("/")[2]
        verification = holding.index_verification(index.uuid, name)
        yield from _check_lance_file(table, path, holding.relative(path), "index file", None, verification)


def _check_lance_file(
    table: TableVersion, path: str, relative: str, kind: str, fragment_id: int | None, verification: Verification
) -> Iterator[Finding]:
    """Yield the finding of a file, or one for each of its damages."""

    def bad(error: LanceError, size: int) -> Finding:
        offset = error.offset if isinstance(error, CorruptFileError) else None
        return Finding(relative, kind, status_of(error), fragment_id, size, 0, offset, str(error))

    try:
        source = table.store.open_reader(path)
    except ObjectNotFoundError as error:
        yield bad(error, 0)
        return
    size = source.size_bytes
    try:
        reader = FileReader(source, SearchCache(), verification=verification)
        damage = [bad(error, 0 if number else size) for number, error in enumerate(reader.find_damage())]
    except NotSupportedError:  # of another writer: an index of a kind whose files are no Lance files, say
        damage, reader = [], None
    except LanceError as error:
        damage, reader = [bad(error, size)], None
    finally:
        source.close()
    is_sealed = reader is not None and reader.seal is not None
    if not damage:
        yield Finding(relative, kind, INTACT if is_sealed else UNVERIFIED, fragment_id, size, size if is_sealed else 0)
    yield from damage
