"""Compaction: combines small fragments, and removes deleted rows and dropped columns from the files.

It has three steps, which may run on different machines: a plan, which is a value; tasks, each of which rewrites some
adjacent fragments; and one commit. Rows keep their order within a task. The choice of fragments is the reference's:
neighbours that are smaller than the target, and fragments with too many deleted rows.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.errors import CommitStateUnknownError, InvalidInputError, LanceError
from lance_format.lazy_dataclasses import dataclass
from lance_format.progress import Work, expect, is_reported
from lance_format.table.batches.streams import RowStream
from lance_format.table.format.fragment import FragmentMetadata, read_fragments
from lance_format.table.fragments.column_parts import held_columns
from lance_format.table.fragments.whole_fragments import read_whole
from lance_format.table.maintenance.compaction_candidates import find_candidates
from lance_format.table.maintenance.compaction_options import CompactionOptions
from lance_format.table.maintenance.kept_lineage import with_lineage
from lance_format.table.transaction.operations import Rewrite, RewriteGroup
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.change_result import ChangeResult
from lance_format.table.versions.commit import commit
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import ChangePlan, ChangeTask, bytes_of, delete_unnamed, run_change
from lance_format.table.versions.table_version import Draft, TableVersion
from lance_format.version import FileVersion

_OF_PYLANCE = uuid.UUID("5a1f0c6e-6d5e-4d8b-9a53-0c1d6f0b7e11")


@dataclass(frozen=True, eq=False)
class CompactionMetrics(ChangeResult):
    """Numbers of fragments and files that a compaction removed and added."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0

    @classmethod
    def of(cls, groups: Sequence[RewriteGroup]) -> CompactionMetrics:
        """Count the fragments and files of groups."""
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
    def number(self) -> int:
        """Number of the task."""
        return _number(self.group.old_fragments)

    @property
    def old_fragments(self) -> list[FragmentMetadata]:
        """The rewritten fragments."""
        return list(self.group.old_fragments)

    @property
    def original_fragments(self) -> list[FragmentMetadata]:
        """The rewritten fragments, under pylance's name."""
        return self.old_fragments

    @property
    def new_fragments(self) -> list[FragmentMetadata]:
        """Their replacements."""
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
class CompactionTask(ChangeTask[RewriteResult]):
    """Writes the rows of adjacent fragments to new ones. Can be pickled.

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

    @property
    def number(self) -> int:
        """Number of the task within the plan: the id of the first fragment."""
        return _number(self.fragments)

    def run(self, table: TableVersion) -> RewriteResult:
        """Write the rows of the fragments into new ones; see `execute`."""
        schema = held_columns(table.manifest.schema, self.fragments)
        scans = [table.scan(fragment, schema) for fragment in self.fragments]
        batch_size = self.options.batch_size
        wanted = self.options.data_storage_version
        version = None if wanted is None else FileVersion.parse(wanted)
        written = []
        with contextlib.closing(read_whole(scans, schema, batch_size=batch_size)) as read:
            rows = RowStream(batch for batch, _ in read)
            for num_rows in _balanced(sum(scan.num_rows() for scan in scans), self.options.target_rows_per_fragment):
                written += table.write_fragments(
                    rows.take(num_rows),
                    schema,
                    uuid=self.uuid,
                    max_bytes_per_file=self.options.max_bytes_per_file,
                    file_version=version,
                )
        if table.manifest.stable_row_ids:
            written = with_lineage(written, scans)
        return RewriteResult(self.read_version, self.uuid, RewriteGroup(tuple(self.fragments), tuple(written)))


@checked_methods
@dataclass(frozen=True, slots=True)
class CompactionPlan(ChangePlan[RewriteResult, CompactionMetrics]):
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

    def input_bytes(self, dataset: OpenTable) -> int | None:  # noqa: ARG002
        """Return the size of the data files of the fragments that are rewritten."""
        return bytes_of(fragment for task in self.tasks for fragment in task.fragments)

    def announce(self, table: TableVersion) -> None:
        """Tell the live rows and the bytes of the fragments that are rewritten."""
        if is_reported(Work.WRITING):
            fragments = [fragment for task in self.tasks for fragment in task.fragments]
            num_rows = int(table.num_rows(fragments).sum())
            expect(Work.WRITING, num_rows, bytes_of(fragments), bytes_follow_rows=True)

    def operation(self, draft: Draft, results: Sequence[RewriteResult]) -> Rewrite | None:
        """Replace the old fragments by the new ones."""
        del draft
        return _rewrite_of(results)[0] if results else None

    def identity(self, results: Sequence[RewriteResult]) -> str:
        """Return the uuid of the transaction, which says which tasks it commits; see `Compaction.commit`."""
        return _rewrite_of(results)[1] if results else self.uuid

    def outcome(self, results: Sequence[RewriteResult]) -> CompactionMetrics:
        """Count fragments and files."""
        return CompactionMetrics.of([result.group for result in results])

    def commit(self, dataset: OpenTable, results: Iterable[RewriteResult]) -> CompactionMetrics:
        """Commit the results of all tasks; see `ChangePlan.commit`. `Compaction.commit` takes those of some."""
        given = self.checked(results)
        try:
            dataset._table = commit_rewrites(dataset._table, given)
        except CommitStateUnknownError:
            raise
        except LanceError:
            self.abort(dataset)
            raise
        return self.outcome(given)

    def abort(self, dataset: OpenTable, results: Iterable[RewriteResult] = ()) -> None:
        """Delete the files that tasks have written, except those of tasks that have been committed."""
        self.own(results)
        delete_unnamed(dataset._table.directory, self.uuid, self.read_version)

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
    """Return the compacted version, and the uuid of the plan; results of pylance have their own."""
    version = found["read_version"]
    if type(version) is not int or version < 1:
        raise InvalidInputError(f"read_version is {version!r}")
    given = found.get("uuid")
    return version, str(uuid.uuid5(_OF_PYLANCE, str(version)) if given is None else uuid.UUID(given))


def plan_compaction(table: TableVersion, options: CompactionOptions) -> CompactionPlan:
    """Find the fragments that are worth rewriting.

    Raises
    ------
    InvalidInputError
        If a table of format 0.1 is to get a newer one, and limits leave out fragments: pylance could not read both.
    """
    identity, version = str(uuid.uuid4()), table.manifest.version
    tasks = [CompactionTask(version, part, options, identity) for part in find_candidates(table, options)]
    if options.renews(table) and sum(len(task.fragments) for task in tasks) < len(table.manifest.fragments):
        raise InvalidInputError(
            f"only some fragments would be rewritten in format {options.data_storage_version}, and pylance could not"
            f" read them beside those of format {table.manifest.file_version}: leave out max_source_* and"
            " excluded_fragment_ids"
        )
    return CompactionPlan(version, identity, tasks)


def commit_rewrites(table: TableVersion, results: Sequence[RewriteResult]) -> TableVersion:
    """Commit the results of tasks of one plan; committing them again changes nothing.

    Parameters
    ----------
    table : TableVersion
        Any version of the table.
    results : sequence of RewriteResult
        Results of all tasks or some.

    Raises
    ------
    InvalidInputError
        If they belong to different plans.
    CommitConflictError
        If other writers changed the rows concurrently.
    """
    if not results:
        return table
    operation, identity = _rewrite_of(results)
    transaction = Transaction(results[0].read_version, operation, identity)
    return dataclasses.replace(table, manifest=commit(table.directory, transaction))


def _number(fragments: Sequence[FragmentMetadata]) -> int:
    return fragments[0].id if fragments else -1


def _rewrite_of(results: Sequence[RewriteResult]) -> tuple[Rewrite, str]:
    """Return the operation of the results of one plan, and the uuid of the transaction."""
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
    return run_change(table, plan_compaction(table, options))


def _balanced(num_rows: int, target_rows: int) -> list[int]:
    """Return how many rows each new fragment gets: alike, and not fewer than the target if that can be."""
    num_fragments = max(1, num_rows // target_rows)
    each, more = divmod(num_rows, num_fragments)
    return [each + 1] * more + [each] * (num_fragments - more)
