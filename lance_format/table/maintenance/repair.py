"""Repair of what a verification has found, as far as nothing is lost by it.

| damaged | repair |
|---|---|
| a data file whose live rows can all be read | their fragment is rewritten, as by a compaction |
| an index | it is rebuilt; indices of kinds that only other writers build are dropped |
| a transaction file whose manifest has a copy | it is written again |

The first two are changes with a version each (`lance_format.table.versions.planned_change`), fragments before indices.
Both are planned on the latest version, which may be later than the verified one. They leave alone what other writers
have replaced since.
"""

from __future__ import annotations

import dataclasses
import uuid as uuids
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from lance_format.checksums import ends_with_checksum
from lance_format.errors import CorruptFileError, NotSupportedError, VersionNotFoundError
from lance_format.lazy_dataclasses import dataclass
from lance_format.progress import Work, expect
from lance_format.table.indices.building import Divide, IndexPlan, plan_rebuild
from lance_format.table.maintenance.compaction import RewriteResult
from lance_format.table.maintenance.findings import WRITE_AGAIN
from lance_format.table.maintenance.kept_lineage import with_lineage
from lance_format.table.maintenance.lost_rows import RecoverableFragment
from lance_format.table.maintenance.verification import VerificationReport, verifying
from lance_format.table.transaction.operations import Rewrite, RewriteGroup
from lance_format.table.transaction.transaction import parse_transaction
from lance_format.table.versions.planned_change import ChangePlan, ChangeTask, bytes_of
from lance_format.table.versions.table_version import Draft, TableVersion

_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class RewriteFragmentTask(ChangeTask[RewriteResult]):
    """Writes the live rows of a damaged fragment to a new one. Can be pickled.

    Parameters
    ----------
    read_version : int
    uuid : str
        Of the plan.
    recoverable : RecoverableFragment
    """

    read_version: int
    uuid: str
    recoverable: RecoverableFragment

    @property
    def number(self) -> int:
        """Number of the task within the plan: the id of the fragment."""
        return self.recoverable.fragment.id

    def run(self, table: TableVersion) -> RewriteResult:
        """Write the rows; see `execute`."""
        table = verifying(table)  # Damaged values would get valid checksums.
        fragment, schema = self.recoverable.fragment, table.manifest.schema
        written = table.write_fragments(
            self._rows(table), schema, uuid=self.uuid, max_rows_per_file=max(fragment.physical_rows, 1)
        )
        if table.manifest.stable_row_ids:
            written = with_lineage(written, [table.scan(fragment, schema)])
        return RewriteResult(self.read_version, self.uuid, RewriteGroup((fragment,), tuple(written)))

    def _rows(self, table: TableVersion) -> Iterator[pa.RecordBatch]:
        """Yield the live rows, without reading those that cannot be read."""
        schema = table.manifest.schema
        scan = table.scan(self.recoverable.fragment, schema)
        num_rows = scan.physical_rows()
        start = 0
        with scan.open_recovering() as files:
            for stop, following in (*self.recoverable.unreadable, (num_rows, num_rows)):
                if start < stop:  # Reading no row may need a block as well.
                    for batch, _ in scan.read_range(files, schema, start, stop, batch_size=_BATCH_ROWS):
                        yield batch
                start = following


@dataclass(frozen=True, slots=True)
class FragmentRepairPlan(ChangePlan[RewriteResult, tuple[int, ...]]):
    """Planned rewrite of damaged fragments. Made by `plan_fragment_repairs`.

    Parameters
    ----------
    read_version : int
    uuid : str
    tasks : tuple of RewriteFragmentTask
        If there is none, the commit makes no version.
    """

    read_version: int
    uuid: str
    tasks: tuple[RewriteFragmentTask, ...]

    def input_bytes(self, dataset: Any) -> int | None:  # noqa: ARG002
        """Return the size of the data files of the fragments."""
        return bytes_of(task.recoverable.fragment for task in self.tasks)

    def announce(self, table: TableVersion) -> None:
        """Tell the live rows and the bytes of the fragments."""
        fragments = [task.recoverable.fragment for task in self.tasks]
        num_rows = int(table.num_rows(fragments).sum()) if fragments else 0
        expect(Work.WRITING, num_rows, bytes_of(fragments), bytes_follow_rows=True)

    def operation(self, draft: Draft, results: Sequence[RewriteResult]) -> Rewrite | None:
        """Replace the fragments."""
        del draft
        return Rewrite(tuple(result.group for result in results)) if results else None

    def outcome(self, results: Sequence[RewriteResult]) -> tuple[int, ...]:
        """Return the ids of the fragments that were replaced."""
        return tuple(sorted(result.number for result in results))


def plan_fragment_repairs(table: TableVersion, report: VerificationReport) -> FragmentRepairPlan:
    """Plan to rewrite the recoverable fragments of a report that still are; see `LanceDataset.verify`.

    Rows that other writers have deleted since are left out.
    """
    identity, version = str(uuids.uuid4()), table.manifest.version
    tasks = []
    for recoverable in report.recoverable:
        current = table.manifest.fragment(recoverable.fragment.id)
        if current is not None and current.files == recoverable.fragment.files:
            now = dataclasses.replace(recoverable, fragment=current)
            if _has_lost_nothing(table, now):
                tasks.append(RewriteFragmentTask(version, identity, now))
    return FragmentRepairPlan(version, identity, tuple(tasks))


def _has_lost_nothing(table: TableVersion, recoverable: RecoverableFragment) -> bool:
    """Return whether all rows that cannot be read are deleted, also after a restore of an earlier version."""
    if not recoverable.unreadable:
        return True
    deleted = table.scan(recoverable.fragment, table.manifest.schema).deleted_rows()
    found = np.diff(np.searchsorted(deleted, recoverable.unreadable), axis=1)[:, 0]
    return bool((found == np.diff(recoverable.unreadable, axis=1)[:, 0]).all())


def plan_index_repairs(table: TableVersion, report: VerificationReport, divide: Divide) -> IndexPlan:
    """Plan to rebuild the damaged indices of a report, or to drop them; see `LanceDataset.verify`.

    Fragments with damaged files are not read. The indices will not cover them, so that scans read them whole.
    """
    damaged = set(report.damaged_indices)
    names = {index.name for index in table.manifest.indices if index.uuid in damaged}
    unread = {finding.fragment_id for finding in report.problems if finding.fragment_id is not None}
    return plan_rebuild(table, names, unread, divide=divide)


def restore_transaction_files(table: TableVersion, report: VerificationReport) -> tuple[str, ...]:
    """Write damaged transaction files of a report again, which is no change of the table; return their paths.

    The copy in the manifest has the same bytes.
    """
    wanted = {finding.path for finding in report.findings if finding.repair == WRITE_AGAIN}
    restored: list[str] = []
    history = table.history()
    for version in history.names if wanted else ():
        with suppress(CorruptFileError, NotSupportedError, VersionNotFoundError):  # Other versions may be damaged.
            manifest = history.load(version)
            path, copy = table.directory.transaction(manifest.transaction_file), manifest.inline_transaction
            relative = table.directory.relative(path)
            if relative in wanted and copy is not None and ends_with_checksum(copy):
                parse_transaction(copy)
                table.store.put(path, copy)
                restored.append(relative)
    return tuple(restored)
