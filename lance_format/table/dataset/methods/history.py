"""The methods of `LanceDataset` about the versions of a table and their files."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any, Unpack

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.progress import Report, Work, reported
from lance_format.table.format.lineage import remember
from lance_format.table.indices.building import IndexPlan
from lance_format.table.maintenance.file_inventory import Progress, list_all_files, list_tracked_files
from lance_format.table.maintenance.migration import migrate_manifest_names
from lance_format.table.maintenance.repair import (
    FragmentRepairPlan,
    plan_fragment_repairs,
    plan_index_repairs,
    restore_transaction_files,
)
from lance_format.table.maintenance.validation import validate
from lance_format.table.maintenance.verification import VerificationPlan, VerificationReport, plan_verification
from lance_format.table.scan.tasks import DEFAULT_SPLIT_SIZE_BYTES, divided_by
from lance_format.table.transaction.transaction import Transaction
from lance_format.table.versions.belonging import Descent
from lance_format.table.versions.cleanup.cleanup import clean_up, explain_cleanup
from lance_format.table.versions.cleanup.cleanup_policy import (
    CleanupExplanation,
    CleanupKeywords,
    CleanupPolicy,
    CleanupStats,
)
from lance_format.table.versions.cleanup_plan import FILES_PER_TASK, CleanupPlan, plan_cleanup
from lance_format.table.versions.history import summarize
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import run_change, run_tasks


@checked_methods
class DatasetHistory(OpenTable):
    """Methods about versions and files. Part of `LanceDataset`."""

    def verify(self, *, repair: bool = False, progress: Report = None) -> VerificationReport:
        """Read every byte of this version, compare it with its checksums, and check that its files agree.

        Of the other versions, manifests and transactions are verified, and files must be there. Files that no version
        needs are listed as `orphaned` from an age of a week on; a cleanup deletes them. Files of other writers have no
        checksums, which the report says; `optimize.compact_files` adds them. Indices, also those of other writers, are
        read as a whole, as searches read parts of them: they must be well-formed, and name rows of the table. Damage
        does not raise an error: the report has each.

        Parameters
        ----------
        repair : bool
            Whether to repair what can be repaired without loss: fragments with damaged files whose live rows can all be
            read are rewritten, damaged indices are rebuilt, or dropped if only other writers build their kind, and
            damaged transaction files are written again. Fragments and indices take a version each. Rows that are lost
            are not touched: the report has them as `lost`.
        progress : callable or bool, optional
            A function that is called with a `Progress`, or True for a bar.

        Raises
        ------
        ChecksumError
            If the manifest of the version is damaged.
        """
        plan = self.plan_verification()
        with reported(progress, "verify", Work.CHECKING):
            report = plan.commit(self, run_tasks(self._table, plan))
        if not repair:
            return report
        rewritten: tuple[int, ...] = ()
        indices = None
        if report.recoverable:
            rewritten = self._change(lambda table: run_change(table, plan_fragment_repairs(table, report)))
        if report.damaged_indices:
            divide = divided_by(DEFAULT_SPLIT_SIZE_BYTES)
            indices = self._change(lambda table: run_change(table, plan_index_repairs(table, report, divide)))
        return report.repaired(rewritten, indices, self.restore_transaction_files(report))

    def plan_verification(self, *, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES) -> VerificationPlan:
        """Plan a verification whose tasks run anywhere; see `lance_format.table.versions.planned_change`.

        Parameters
        ----------
        split_size_bytes : int
            Approximate number of bytes that a task reads. Fragments are not divided.
        """
        return plan_verification(self._table, split_size_bytes=split_size_bytes)

    def plan_fragment_repairs(self, report: VerificationReport) -> FragmentRepairPlan:
        """Plan to rewrite fragments with damaged files whose live rows can all be read; see `verify`.

        Fragments that other writers have replaced since are left alone. Without any, the commit makes no version.

        Parameters
        ----------
        report : VerificationReport
            Of this version or an earlier one.
        """
        return plan_fragment_repairs(self._table, report)

    def plan_index_repairs(
        self, report: VerificationReport, *, split_size_bytes: int = DEFAULT_SPLIT_SIZE_BYTES
    ) -> IndexPlan:
        """Plan to rebuild damaged indices, or to drop them if only other writers build their kind; see `verify`.

        Indices that other writers have replaced since are left alone. Without any, the commit makes no version.

        Parameters
        ----------
        report : VerificationReport
            Of this version or an earlier one.
        split_size_bytes : int
            Approximate number of bytes that a task reads. Fragments are not divided.
        """
        return plan_index_repairs(self._table, report, divided_by(split_size_bytes))

    def restore_transaction_files(self, report: VerificationReport) -> tuple[str, ...]:
        """Write damaged transaction files again from the copies in their manifests; return their paths. See `verify`.

        Parameters
        ----------
        report : VerificationReport
        """
        return restore_transaction_files(self._table, report)

    @property
    def version(self) -> int:
        """The version that this object shows."""
        return self._table.manifest.version

    @property
    def latest_version(self) -> int:
        """The latest version of the table at this time."""
        return self._table.history().latest

    def versions(self) -> list[dict[str, Any]]:
        """Describe every version of the table: `version`, `timestamp` in local time, and `metadata`.

        Raises
        ------
        CorruptFileError
            If a manifest is damaged, or that of another table.
        """
        history = self._table.history()
        descent = Descent(self._table.directory)
        latest_first = history.read_each(history.load, sorted(history.names, reverse=True))
        return [summarize(descent.check(manifest)) for _, manifest in latest_first][::-1]

    def version_log(self, limit: int | None = None) -> Iterator[tuple[dict[str, Any], Transaction | None]]:
        """Yield this version and earlier ones of its branch, latest first, with their transactions.

        Versions that were cleaned up are omitted.

        Parameters
        ----------
        limit : int, optional
            Maximum number of versions.

        Yields
        ------
        dict
            The description of the version; see `versions`.
        Transaction or None
            The transaction that made the version, or None if it is missing or unreadable.

        Raises
        ------
        CorruptFileError
            See `versions`.
        """
        history = self._table.history()
        numbers = sorted((number for number in history.names if number <= self.version), reverse=True)
        descent = Descent(self._table.directory)
        for _, (manifest, transaction) in history.read_each(history.load_both, numbers[:limit]):
            yield summarize(descent.check(manifest)), transaction

    def version_refs(self) -> list[dict[str, int]]:
        """Return the numbers of all versions without reading them, each as a dict of `version`."""
        return [{"version": version} for version in self._table.history().names]

    def get_version(self) -> dict[str, Any]:
        """Describe the version that this object shows; see `versions`."""
        return summarize(self._table.manifest)

    def trace(self) -> bytes:
        """Return digests of the transactions that made this version and the versions before it.

        Returns
        -------
        bytes
            8 bytes per version, the latest first; zeros where the transaction is not known. The digests end where no
            version remembers more, after 128 versions at the latest.
        """
        return remember(self._table.manifest)

    def read_transaction(self, version: int) -> Transaction:
        """Return the transaction that made a version of this branch.

        Raises
        ------
        VersionNotFoundError
            If there is no such version.
        CorruptFileError
            If the version does not name its transaction."""
        return self._table.history().load_transaction(version)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction]:
        """Return the transactions of this version and earlier ones, latest first.

        Versions that were cleaned up are omitted.

        Parameters
        ----------
        recent_transactions : int
            Maximum number of versions.
        """
        history = self._table.history()
        recent = sorted((number for number in history.names if number <= self.version), reverse=True)
        return [found for _, found in history.read_each(history.load_transaction, recent[:recent_transactions])]

    def cleanup_old_versions(
        self,
        older_than: datetime.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_concurrency: int | None = None,
        progress: Report = None,
        **conditions: Unpack[CleanupKeywords],
    ) -> CleanupStats:
        """Remove old versions of this branch, and the files that no other version needs.

        This version and later ones are kept, and so are tagged versions and those that a branch starts from.

        Parameters
        ----------
        older_than : datetime.timedelta, optional
            Minimum age of the versions to remove. 14 days by default, unless `retain_versions` or `versions` is given.
        retain_versions : int, optional
            Number of latest versions to keep. If several conditions are given, a version must meet all of them.
        delete_unverified : bool
            Whether to delete files that no version names at once. They may belong to a write in progress, whose data
            would be lost. By default they are kept until they are 7 days old.
        error_if_tagged_old_versions : bool
            Whether to raise an error if one of the versions has a tag.
        delete_rate_limit : int, optional
            Maximum number of files to delete per second.
        delete_concurrency : int, optional
            Ignored. The store decides how many files are deleted at a time.
        progress : callable or bool, optional
            A function that is called with a `Progress`, or True for a bar.
        versions : iterable of int, optional
            The versions to consider, by default all.

        Raises
        ------
        InvalidInputError
            If an argument is invalid, or one of the versions has a tag.
        """
        del delete_concurrency
        policy = CleanupPolicy.choose(older_than, retain_versions, **conditions)
        table = self._table
        with reported(progress, "clean up", Work.DELETING):
            return clean_up(table.directory, table.manifest.branch, table.manifest.version, policy)

    def begin_cleanup(
        self,
        older_than: datetime.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        files_per_task: int = FILES_PER_TASK,
        **conditions: Unpack[CleanupKeywords],
    ) -> CleanupPlan:
        """Remove old versions of this branch, and plan to delete the files that only they need, by tasks.

        Tasks run anywhere; see `lance_format.table.versions.cleanup_plan`. The commit of their results makes no
        version, and returns what `cleanup_old_versions` does. Files that are left are for the next cleanup.

        Parameters
        ----------
        older_than, retain_versions, **conditions
            See `cleanup_old_versions`.
        files_per_task : int
            How many files a task deletes.

        Returns
        -------
        CleanupPlan
        """
        policy = CleanupPolicy.choose(older_than, retain_versions, **conditions)
        return plan_cleanup(self._table, policy, files_per_task)

    def explain_cleanup_old_versions(
        self,
        older_than: datetime.timedelta | None = None,
        retain_versions: int | None = None,
        *,
        include_files: bool = False,
        max_files: int = 1000,
        **conditions: Unpack[CleanupKeywords],
    ) -> CleanupExplanation:
        """Return what `cleanup_old_versions` would remove, without removing it.

        Parameters
        ----------
        older_than, retain_versions, **conditions
            See `cleanup_old_versions`.
        include_files : bool
            Whether to name the files. All of them are counted in any case.
        max_files : int
            Maximum number of files to name.

        Raises
        ------
        InvalidInputError
            See `cleanup_old_versions`.
        """
        if isinstance(max_files, bool) or not isinstance(max_files, int) or max_files < 1:
            raise InvalidInputError(f"max_files is {max_files!r}; a whole number from 1 is needed")
        policy = CleanupPolicy.choose(older_than, retain_versions, **conditions)
        table = self._table
        limit = max_files if include_files else 0
        return explain_cleanup(table.directory, table.manifest.branch, table.manifest.version, policy, limit)

    def all_files(self) -> pa.RecordBatchReader:
        """List all files below the directory of the table, or of its branch.

        Returns
        -------
        pa.RecordBatchReader
            `base_uri`, the directory; `path` below it; `size_bytes`; `last_modified`. In no order.
        """
        return list_all_files(self._table)

    def tracked_files(
        self, *, min_version: int | None = None, progress: Progress | None = None
    ) -> pa.RecordBatchReader:
        """List the files that versions of this branch name.

        The blob files of a data file are listed too. No version names them; they lie in the directory named after the
        data file.

        Parameters
        ----------
        min_version : int, optional
            The first version to list, by default the earliest.
        progress : callable, optional
            Called after each version with the number of versions read so far and in all.

        Returns
        -------
        pa.RecordBatchReader
            `version`; `base_uri`, the directory of the table, or of the branch that shares the file; `path` below it;
            `type`: "manifest", "data file", "deletion file", "transaction file" or "index file".
        """
        return list_tracked_files(self._table, min_version, progress)

    def migrate_manifest_paths_v2(self) -> None:
        """Rename the manifests of a table of an early release as later releases name them.

        The table must not be in use by others. Call it again to complete an interrupted call.
        """
        migrate_manifest_names(self._table.directory)

    def validate(self, progress: Report = None) -> None:
        """Check that the files of this version exist and agree with its manifest. Values are not read.

        Parameters
        ----------
        progress : callable or bool, optional
            A function that is called with a `Progress`, or True for a bar.

        Raises
        ------
        CorruptFileError
            At the first contradiction.
        DatasetNotFoundError
            If a file is missing.
        """
        with reported(progress, "verify", Work.CHECKING):
            validate(self._table)
