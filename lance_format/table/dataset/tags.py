"""`LanceDataset.tags`: names of versions, which also protect them from cleanups."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lance_format.arguments import checked_methods
from lance_format.errors import DatasetNotFoundError, InvalidInputError, LanceError, VersionNotFoundError
from lance_format.table.format.ref_names import check_tag_name
from lance_format.table.versions.absence import describe_absence
from lance_format.table.versions.checkout import Reference, load_branch_history, main_of, resolve_reference
from lance_format.table.versions.history import describe_versions
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.refs import (
    Tag,
    check_metadata,
    create_ref,
    delete_ref,
    list_tags,
    load_tag,
    now,
    removing_new_directories,
    replace_ref,
)
from lance_format.table.versions.table_version import TableVersion

OrderedRefs = list[tuple[str, dict[str, Any]]]


@checked_methods
class Tags:
    """The tags of a table and all its branches. `LanceDataset.tags` makes it."""

    def __init__(self, dataset: OpenTable) -> None:
        self._dataset = dataset

    def list(self) -> dict[str, dict[str, Any]]:
        """Describe all tags by name: `branch`, `version`, `created_at`, `updated_at`, `manifest_size`, `metadata`."""
        table = self._table
        return {name: tag.describe() for name, tag in list_tags(main_of(table)).items()}

    def list_ordered(self, order: str | None = None) -> OrderedRefs:
        """Describe all tags by version, latest first, or last if `order` is "asc"; see `list`."""
        return order_refs(self.list(), "version", order)

    def get_version(self, tag: str) -> int:
        """Return the version that a tag names.

        Raises
        ------
        VersionNotFoundError
            If there is no such tag.
        """
        return self._load(tag).version

    def create(self, tag: str, reference: Reference | None = None) -> None:
        """Name a version.

        Parameters
        ----------
        tag : str
            Letters, digits and `. _ -`.
        reference : int, str, or tuple of (str or None) and (int or None), optional
            A version of this branch, another tag, or a branch and one of its versions. None stands for the main branch,
            and for the latest version. By default the version that the dataset shows.

        Raises
        ------
        InvalidInputError
            If the tag exists, or the name is not allowed.
        VersionNotFoundError
            If there is no such version.
        """
        table = self._table
        check_tag_name(tag)
        created = now()
        made = _name_version(table, reference, Tag(None, 0, 0, created, created))
        main = main_of(table)
        with removing_new_directories(main, Tag):
            create_ref(main, tag, made)
            try:
                _check_exists(table, made)
            except LanceError:
                delete_ref(main, tag, made)
                raise

    def update(self, tag: str, reference: Reference | None = None) -> None:
        """Let a tag that exists name another version; see `create`.

        Raises
        ------
        VersionNotFoundError
            If there is no such tag or version.
        """
        table = self._table
        before = self._load(tag)
        moved = _name_version(table, reference, dataclasses.replace(before, updated_at=now()))
        replace_ref(main_of(table), tag, moved)
        try:
            _check_exists(table, moved)
        except LanceError:
            replace_ref(main_of(table), tag, before)
            raise

    def replace_metadata(self, tag: str, metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a tag."""
        kept = dataclasses.replace(self._load(tag), metadata=check_metadata(metadata))
        replace_ref(main_of(self._table), tag, kept)

    def delete(self, tag: str) -> None:
        """Delete a tag. Its version remains until a cleanup.

        Raises
        ------
        VersionNotFoundError
            If there is no such tag.
        """
        delete_ref(main_of(self._table), tag, self._load(tag))

    @property
    def _table(self) -> TableVersion:
        return self._dataset._table

    def _load(self, tag: str) -> Tag:
        resolve_reference(self._table, check_tag_name(tag))  # Raises an error that lists the tags.
        found = load_tag(main_of(self._table), tag)
        if found is None:
            raise VersionNotFoundError(f"the tag {tag!r} was deleted by another writer")
        return found


def order_refs(refs: dict[str, dict[str, Any]], key: str, order: str | None) -> OrderedRefs:
    """Sort references by a number, then by name.

    Parameters
    ----------
    refs : dict
        Descriptions of references by name.
    key : str
        The entry of a description to sort by.
    order : {"asc", "desc"}, optional
        Descending by default.

    Raises
    ------
    InvalidInputError
        If there is no such order.
    """
    if order not in (None, "asc", "desc"):
        raise InvalidInputError(f"order is {order!r}; use 'asc' or 'desc'")
    sign = 1 if order == "asc" else -1
    return sorted(refs.items(), key=lambda item: (sign * item[1][key], item[0]))


def _name_version(table: TableVersion, reference: Reference | None, tag: Tag) -> Tag:
    """Return a tag of the version that a reference means."""
    branch, version = resolve_reference(table, reference)
    history = load_branch_history(table, branch)
    version = history.latest if version is None else version
    made = dataclasses.replace(tag, branch=branch, version=version)
    if version not in history.names:
        _check_exists(table, made)
    return dataclasses.replace(made, manifest_size=table.store.size(history.manifest_path(version)))


def _check_exists(table: TableVersion, tag: Tag) -> None:
    history = load_branch_history(table, tag.branch)
    if not history.names:
        raise DatasetNotFoundError(describe_absence(history.directory))
    if tag.version not in history.names:
        raise VersionNotFoundError(
            f"{history.root} has no version {tag.version} to be tagged; it has {describe_versions(list(history.names))}"
        )
