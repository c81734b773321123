"""`vacuum`: old versions are removed in the driver, their files by tasks."""

from __future__ import annotations

import dataclasses
import datetime
import warnings
from typing import Any

from pyspark.sql.types import BooleanType, LongType, StringType

from connector.jobs.running import run
from connector.procedures.declaring import Result, Target, columns
from connector.stream.changes_reading import KEEP_VERSIONS
from connector.stream.driver_streams import needed_version
from lance_format import CleanupStats, InvalidInputError, LanceDataset

_COUNTS = tuple(field.name for field in dataclasses.fields(CleanupStats))
SCHEMA = columns(**dict.fromkeys(_COUNTS, LongType()))
DRY_SCHEMA = columns(path=StringType(), kind=StringType(), bytes=LongType(), unverified=BooleanType())
_MAX_FILES = 1_000_000


def vacuum(
    target: Target,
    *,
    older_than: datetime.timedelta | None,
    retain_versions: int | None,
    before_version: int | None,
    delete_unverified: bool | None,
    error_if_tagged_old_versions: bool | None,
    delete_rate_limit: int | None,
    dry_run: bool | None,
) -> Result:
    """Remove old versions and the files that only they need; see `LanceDataset.cleanup_old_versions`.

    Warns if a stream that runs in this driver has not read one of these versions.

    Raises
    ------
    InvalidInputError
        If an age or number is too small.
    """
    if older_than is not None and older_than < datetime.timedelta(0):
        raise InvalidInputError(f"older_than is {older_than}; an interval from 0 on is needed")
    if before_version is not None and before_version < 1:
        raise InvalidInputError(f"before_version is {before_version}; a whole number from 1 on is needed")
    dataset = target.open()
    conditions: dict[str, Any] = {
        "older_than": older_than,
        "retain_versions": retain_versions,
        "delete_unverified": bool(delete_unverified),
        "error_if_tagged_old_versions": error_if_tagged_old_versions is not False,
        "delete_rate_limit": delete_rate_limit,
        "versions": None if before_version is None else _before(dataset, before_version),
    }
    if dry_run:
        found = dataset.explain_cleanup_old_versions(**conditions, include_files=True, max_files=_MAX_FILES)
        rows = [(each.path, each.kind, each.size_bytes, each.unverified) for each in found.candidate_files]
        return Result(DRY_SCHEMA, rows)
    before: set[int] = set() if needed_version(dataset.uri) is None else _versions(dataset)
    plan = dataset.begin_cleanup(**conditions)
    if before:
        _warn_of_streams(dataset, before - _versions(dataset))
    num_files = sum(len(task.files) for task in plan.tasks)
    stats = run(target.spark, dataset, plan, description=f"delete {num_files} old files")
    return Result(SCHEMA, [[getattr(stats, name) for name in _COUNTS]])


def _before(dataset: LanceDataset, version: int) -> list[int]:
    return sorted(each for each in _versions(dataset) if each < version)


def _versions(dataset: LanceDataset) -> set[int]:
    return {each["version"] for each in dataset.version_refs()}


def _warn_of_streams(dataset: LanceDataset, removed: set[int]) -> None:
    needed = needed_version(dataset.uri)
    lost = [] if needed is None else sorted(version for version in removed if version >= needed)
    if lost:
        warnings.warn(
            f"version {lost[0]} of {dataset.uri} was removed, which a stream of this driver has not read, or compares"
            f" the next one with: the stream may fail; {KEEP_VERSIONS}",
            stacklevel=1,
        )
