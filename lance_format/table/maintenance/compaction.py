"""Compaction: small fragments become large ones, and deleted rows and dropped columns go from the files.

It has three steps, which may run on different machines: a plan, which is a value; tasks, each of which writes some
adjacent fragments anew; and one commit. Rows stay in their order within a task. What is rewritten at all follows the
reference: neighbours that are smaller than the target, and fragments of which too many rows are deleted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.table.batches.streams import RowStream
from lance_format.table.format.fragment import FragmentMetadata, read_fragments
from lance_format.table.fragments.reader import FragmentReader
from lance_format.table.fragments.row_columns import created_at_of, last_updated_at_of, row_ids_of
from lance_format.table.maintenance.compaction_options import CompactionOptions
from lance_format.table.row_ids.row_id_sequence import RowIdSequence, serialize_row_ids
from lance_format.table.row_ids.row_version_sequence import RowVersionSequence, serialize_row_versions
from lance_format.table.transaction.operations import Rewrite, RewriteGroup
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.checkout import check_out
from lance_format.table.versions.commit import commit
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.table_version import Draft, TableVersion
from lance_format.version import FileVersion

_OF_PYLANCE = uuid.UUID("5a1f0c6e-6d5e-4d8b-9a53-0c1d6f0b7e11")


@dataclass(frozen=True, slots=True)
class CompactionMetrics:
    """Numbers of fragments and files that a compaction removed and added."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0

    @classmethod
    def of(cls, groups: Sequence[RewriteGroup]) -> CompactionMetrics:
        """Count what groups of rewritten fragments are."""
        old = [fragment for group in groups for fragment in group.old_fragments]
        new = [fragment for group in groups for fragment in group.new_fragments]
        deletion_files = sum(fragment.deletion_file is not None for fragment in old)
        return cls(
            len(old),
            len(new),
            sum(len(fragment.files) for fragment in old) + deletion_files,
            sum(len(fragment.files) for fragment in new),
        )


@checked_methods
@dataclass(frozen=True, slots=True)
class RewriteResult:
    """Fragments that a task has written: a value that can be pickled.

    Parameters
    ----------
    read_version : int
        The version that was compacted.
    uuid : str
        Of the plan.
    group : RewriteGroup
    """

    read_version: int
    uuid: str
    group: RewriteGroup

    def __repr__(self) -> str:
        return (
            f"RewriteResult(read_version={self.read_version}, new_fragments={self.new_fragments},"
            f" old_fragments={self.old_fragments})"
        )

    @property
    def old_fragments(self) -> list[FragmentMetadata]:
        """The fragments that were written anew."""
        return list(self.group.old_fragments)

    @property
    def original_fragments(self) -> list[FragmentMetadata]:
        """The same."""
        return self.old_fragments

    @property
    def new_fragments(self) -> list[FragmentMetadata]:
        """Those that take their place."""
        return list(self.group.new_fragments)

    @property
    def metrics(self) -> CompactionMetrics:
        """Numbers of the fragments and files."""
        return CompactionMetrics.of([self.group])

    def json(self) -> str:
        """Return it as text, in the form of pylance; see `from_json`."""
        found = {
            "metrics": dataclasses.asdict(self.metrics),
            "new_fragments": [fragment.to_json() for fragment in self.group.new_fragments],
            "read_version": self.read_version,
            "original_fragments": [fragment.to_json() for fragment in self.group.old_fragments],
            "row_addrs": None,
            "uuid": self.uuid,
        }
        return json.dumps(found)

    @classmethod
    def from_json(cls, json_data: str | bytes) -> RewriteResult:
        """Rebuild what `json` returned, here or in pylance.

        Raises
        ------
        InvalidInputError
            If it is malformed.
        """
        with _refusing("result of a compaction task"):
            found = json.loads(json_data)
            old, new = (tuple(read_fragments(found[name])) for name in ("original_fragments", "new_fragments"))
            return cls(*_identity(found), RewriteGroup(old, new))


@checked_methods
@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Adjacent fragments that are to be written anew: a value that can be pickled.

    Parameters
    ----------
    read_version : int
        The version that is compacted.
    fragments : list of FragmentMetadata
    options : CompactionOptions
    uuid : str
        Of the plan.
    """

    read_version: int
    fragments: list[FragmentMetadata]
    options: CompactionOptions
    uuid: str

    def json(self) -> str:
        """Return it as text, in the form of pylance; see `from_json`."""
        task = {"fragments": [fragment.to_json() for fragment in self.fragments]}
        options = self.options.to_json()
        return json.dumps({"task": task, "read_version": self.read_version, "options": options, "uuid": self.uuid})

    @classmethod
    def from_json(cls, json_data: str | bytes) -> CompactionTask:
        """Rebuild what `json` returned, here or in pylance.

        Raises
        ------
        InvalidInputError
            If it is malformed.
        NotSupportedError
            If it asks for something that ours cannot do.
        """
        with _refusing("task of a compaction"):
            found = json.loads(json_data)
            version, identity = _identity(found)
            fragments = list(read_fragments(found["task"]["fragments"]))
            return cls(version, fragments, CompactionOptions.from_json(found["options"]), identity)

    def execute(self, dataset: OpenTable) -> RewriteResult:
        """Write the rows of the fragments into new ones, which no reader sees before they are committed.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.
        """
        return self.rewrite(check_out(dataset._table, self.read_version))

    def rewrite(self, table: TableVersion) -> RewriteResult:
        """Do what `execute` does, given the version that is compacted."""
        schema = table.manifest.schema
        scans = [table.scan(fragment, schema) for fragment in self.fragments]
        batch_size = self.options.batch_size
        wanted = self.options.data_storage_version
        version = None if wanted is None else FileVersion.parse(wanted)
        rows = RowStream(batch for scan in scans for batch, _ in scan.read(0, scan.num_rows(), batch_size=batch_size))
        written = []
        for num_rows in _balanced(sum(scan.num_rows() for scan in scans), self.options.target_rows_per_fragment):
            written += table.write_fragments(
                rows.take(num_rows),
                schema,
                uuid=self.uuid,
                max_bytes_per_file=self.options.max_bytes_per_file,
                file_version=version,
            )
        if table.manifest.stable_row_ids:
            written = _with_lineage(written, scans)
        return RewriteResult(self.read_version, self.uuid, RewriteGroup(tuple(self.fragments), tuple(written)))


@checked_methods
@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Plan of a compaction; see `plan_compaction`.

    Parameters
    ----------
    read_version : int
        The version that is compacted.
    uuid : str
        Which the names of the new files carry.
    tasks : list of CompactionTask
    """

    read_version: int
    uuid: str
    tasks: list[CompactionTask]

    def __repr__(self) -> str:
        return f"CompactionPlan(read_version={self.read_version}, tasks=<{len(self.tasks)} compaction tasks>)"

    def num_tasks(self) -> int:
        """Return how many tasks there are."""
        return len(self.tasks)


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise InvalidInputError(f"malformed {what}: {error}") from error


def _identity(found: Mapping[str, Any]) -> tuple[int, str]:
    """Return the version that was compacted, and the uuid of the plan; what pylance made stands for itself."""
    version = found["read_version"]
    if type(version) is not int or version < 1:
        raise InvalidInputError(f"read_version is {version!r}")
    given = found.get("uuid")
    return version, str(uuid.uuid5(_OF_PYLANCE, str(version)) if given is None else uuid.UUID(given))


def plan_compaction(table: TableVersion, options: CompactionOptions) -> CompactionPlan:
    """Find the fragments that are worth rewriting."""
    identity = str(uuid.uuid4())
    parts = (
        part for group in _worthwhile(table, options) for part in _split(table, group, options.target_rows_per_fragment)
    )
    version = table.manifest.version
    tasks = [CompactionTask(version, part, options, identity) for part in _within_limits(table, parts, options)]
    return CompactionPlan(version, identity, tasks)


def commit_rewrites(table: TableVersion, results: Sequence[RewriteResult]) -> TableVersion:
    """Replace the fragments of tasks of one plan by what their execution wrote; doing so again changes nothing.

    Parameters
    ----------
    table : TableVersion
        Any version of the table.
    results : sequence of RewriteResult
        Of all tasks, or of some.

    Raises
    ------
    InvalidInputError
        If they are of different plans.
    CommitConflictError
        If others changed the rows meanwhile.
    """
    if not results:
        return table
    operation, identity = _rewrite_of(results)
    transaction = Transaction(results[0].read_version, operation, identity)
    return dataclasses.replace(table, manifest=commit(table.store, table.root, transaction))


def _rewrite_of(results: Sequence[RewriteResult]) -> tuple[Rewrite, str]:
    """Return what commits the results of tasks of one plan, and the uuid of the transaction."""
    plans = {(result.uuid, result.read_version) for result in results}
    if len(plans) > 1:
        raise InvalidInputError("the results are of different plans; commit those of each plan together")
    groups = sorted((result.group for result in results), key=lambda group: group.old_fragments[0].id)
    # By the fragments, since the other tasks of the plan may be committed by another transaction.
    rewritten = ",".join(str(fragment.id) for group in groups for fragment in group.old_fragments)
    identity = str(uuid.uuid5(uuid.UUID(results[0].uuid), rewritten))
    return Rewrite(tuple(groups)), identity


def compact_files(table: TableVersion, options: CompactionOptions) -> tuple[TableVersion, CompactionMetrics]:
    """Rewrite the fragments of a table that are worth it, and commit that; nothing is committed if there are none."""
    plan = plan_compaction(table, options)
    if not plan.tasks:
        return table, CompactionMetrics()
    with Draft(table, plan.uuid) as draft:
        results = [task.rewrite(table) for task in plan.tasks]
        operation, identity = _rewrite_of(results)
        made = draft.commit(operation, uuid=identity)
    return made, CompactionMetrics.of([result.group for result in results])


def _within_limits(
    table: TableVersion, parts: Iterator[list[FragmentMetadata]], options: CompactionOptions
) -> Iterator[list[FragmentMetadata]]:
    """Yield parts until the next one exceeded a limit of what is compacted at once."""
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
    """Yield adjacent fragments that are to be rewritten together.

    Those that different indices cover stay apart: an index covers a fragment as a whole or not at all.
    """
    group: list[FragmentMetadata] = []
    group_indices: list[str] = []
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
            too_deleted or physical_rows < options.target_rows_per_fragment
        )
        indices = [index.uuid for index in table.manifest.indices if index.covers_any([fragment.id])]
        if group and (not candidate or indices != group_indices):
            if rewritten():
                yield group
            group, worth_alone = [], False
        if candidate:
            group.append(fragment)
            group_indices = indices
            worth_alone |= too_deleted
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


def _balanced(num_rows: int, target_rows: int) -> list[int]:
    """Return how many rows each new fragment gets: alike, and not fewer than the target if that can be."""
    num_fragments = max(1, num_rows // target_rows)
    each, more = divmod(num_rows, num_fragments)
    return [each + 1] * more + [each] * (num_fragments - more)


def _with_lineage(written: Sequence[FragmentMetadata], scans: Sequence[FragmentReader]) -> list[FragmentMetadata]:
    """Give the rows of new fragments the ids and versions that they had."""
    all_ids = RowIdSequence.concatenate(_ids(scan).delete(scan.deleted_rows()) for scan in scans)
    all_made, all_changed = (
        RowVersionSequence.concatenate(versions_of(scan).delete(scan.deleted_rows()) for scan in scans)
        for versions_of in (_made, _changed)
    )
    named = []
    row = 0
    for fragment in written:
        stop = row + fragment.physical_rows
        named.append(
            dataclasses.replace(
                fragment,
                row_id_meta=serialize_row_ids(all_ids.slice(row, stop)),
                created_at_version_meta=serialize_row_versions(all_made.slice(row, stop)),
                last_updated_at_version_meta=serialize_row_versions(all_changed.slice(row, stop)),
            )
        )
        row = stop
    return named


def _ids(scan: FragmentReader) -> RowIdSequence:
    ids = row_ids_of(scan)
    if ids is None:
        raise CorruptFileError(f"fragment {scan.fragment.id} of {scan.root} has no row ids, as its table promises")
    return ids


def _made(scan: FragmentReader) -> RowVersionSequence:
    found = created_at_of(scan)
    return RowVersionSequence.constant(1, scan.physical_rows()) if found is None else found


def _changed(scan: FragmentReader) -> RowVersionSequence:
    found = last_updated_at_of(scan)
    return _made(scan) if found is None else found
