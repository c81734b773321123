"""`LanceDataset.branches`: the branches of a table.

A branch is a separate table below `tree` in the directory of the main branch. Its first version has the number of the
version that it starts from, and refers to the files of that version where they are. New files go into its own
directory. The file that names the branch is written first: a cleanup of the parent keeps the files of named branches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError, VersionNotFoundError
from lance_format.table.dataset.tags import OrderedRefs, order_refs
from lance_format.table.format.ref_names import check_branch_name
from lance_format.table.versions.branching import delete_branch
from lance_format.table.versions.checkout import list_whole_branches, load_branch_history, main_of
from lance_format.table.versions.history import load_history
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.refs import (
    Branch,
    check_metadata,
    list_branches,
    list_tags,
    load_branch,
    replace_ref,
)
from lance_format.table.versions.table_version import TableVersion


@checked_methods
class Branches:
    """The branches of a table, except the main one. `LanceDataset.branches` makes it."""

    def __init__(self, dataset: OpenTable) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, dict[str, Any]]:
        """Describe all branches by name.

        Each has `parent_branch`, `parent_version`, `branch_identifier`, `create_at`, `manifest_size` and `metadata`.
        """
        table = self._table
        return {name: branch.describe() for name, branch in list_whole_branches(main_of(table)).items()}

    def list_ordered(self, order: str | None = None) -> OrderedRefs:
        """Describe all branches by the version they start from, latest first, or last if `order` is "asc"."""
        return order_refs(self.list(), "parent_version", order)

    def replace_metadata(self, branch: str, metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a branch."""
        main = main_of(self._table)
        kept = dataclasses.replace(self._load(branch), metadata=check_metadata(metadata))
        replace_ref(main, branch, kept)

    def delete(self, branch: str) -> None:
        """Delete a branch with all its versions and files. Call it again to complete an interrupted call.

        Raises
        ------
        VersionNotFoundError
            If there is no such branch.
        InvalidInputError
            If another branch starts from it, or a tag names one of its versions.
        """
        main = main_of(self._table)
        check_branch_name(branch)
        found = load_branch(main, branch)
        if found is None and not load_history(main.branch(branch)).names:
            found = self._load(branch)
        for name, other in list_branches(main).items():
            known = () if found is None else found.identifier
            descends = bool(known) and len(other.identifier) > len(known) and other.identifier[: len(known)] == known
            if name != branch and (descends or other.parent_branch == branch):
                raise InvalidInputError(f"the branch {name!r} starts from {branch!r}; delete it first")
        for name, tag in list_tags(main).items():
            if tag.branch == branch:
                raise InvalidInputError(f"the tag {name!r} names a version of the branch {branch!r}; delete it first")
        delete_branch(main, branch)

    @property
    def _table(self) -> TableVersion:
        return self._dataset._table

    def _load(self, branch: str) -> Branch:
        load_branch_history(self._table, check_branch_name(branch))  # Raises an error that lists the branches.
        found = load_branch(main_of(self._table), branch)
        if found is None:
            raise VersionNotFoundError(f"the branch {branch!r} was deleted by another writer")
        return found
