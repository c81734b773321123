"""File versions that may be combined in a table: any from 2.0 on, or 0.1 alone.

Pylance neither commits nor reads a table that has files of format 0.1 beside others.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from lance_format.errors import InvalidInputError, RetryableCommitConflictError
from lance_format.row_numbers import distinct
from lance_format.table.format.fragment_arrays import version_number
from lance_format.table.format.manifest import Manifest
from lance_format.version import WAY_OUT_OF_0_1, FileVersion


def check_file_versions(before: Manifest, after: Manifest) -> None:
    """Check that a change does not put files of format 0.1 and others into one table.

    Tables of early releases that have both remain as they are.

    Raises
    ------
    InvalidInputError
    """
    if _has_both(after) and not _has_both(before):
        raise InvalidInputError(
            f"the table would have data files of format {FileVersion.V0_1} beside newer ones, which pylance could not"
            f" read; {WAY_OUT_OF_0_1}"
        )


def with_rewritten_files(before: Manifest, after: Manifest) -> Manifest:
    """Return a version whose files were rewritten, with the file version of these if it was 0.1.

    Raises
    ------
    RetryableCommitConflictError
        If some files are still of format 0.1, and others of a newer one.
    """
    if before.file_version is not FileVersion.V0_1 or not len(after.fragments) or _has_both(before):
        return after
    if _has_both(after):
        raise RetryableCommitConflictError(
            f"only some data files of format {FileVersion.V0_1} would be rewritten in a newer format, and pylance could"
            " not read both; nothing was changed: commit the results of all tasks at once, and run the compaction again"
            " if rows were added concurrently"
        )
    versions = {FileVersion.from_manifest(*divmod(number, 1 << 32)) for number in _version_numbers(after)}
    version = versions.pop() if len(versions) == 1 else None
    return after if version is None else dataclasses.replace(after, file_version=version)


def _version_numbers(table: Manifest) -> list[int]:
    columns = table.fragments.columns
    some = columns.num_files > 0
    found = np.concatenate([columns.lowest_versions[some], columns.highest_versions[some]])
    return [int(number) for number in distinct(found)]


def _has_both(table: Manifest) -> bool:
    old = {version_number(*numbers) for numbers in FileVersion.V0_1.all_manifest_numbers}
    columns = table.fragments.columns
    is_old = np.isin(columns.lowest_versions, list(old))
    is_newer = ~np.isin(columns.highest_versions, list(old))
    some = columns.num_files > 0
    return bool((is_old & some).any() and (is_newer & some).any())
