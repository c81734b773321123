"""Whether tags agree with the versions that they name.

Tags have no checksums, but the size of the manifest of their version, which tells it from most others. A cleanup that
relied on a damaged tag would remove the version that the tag protects.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping

from lance_format.errors import CorruptFileError
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.history import History
from lance_format.table.versions.refs import Tag, inspect_tags, ref_path

_SETTLED = datetime.timedelta(hours=1)
"""A writer that tags a version looks for it afterwards, and deletes the tag if a cleanup has removed the version."""


def contradicting_tags(
    main: TableDirectory, tags: Mapping[str, Tag], branch: str | None, history: History
) -> Iterator[CorruptFileError]:
    """Yield an error for each tag of a branch whose version is not there, or has a manifest of another size.

    Parameters
    ----------
    main : TableDirectory
        The directory of the main branch.
    tags : mapping of str to Tag
        Tags of the table, by name.
    branch : str or None
        The name of the branch; None for the main one.
    history : History
        The versions of the branch.
    """
    named = {name: tag for name, tag in tags.items() if tag.branch == branch}
    sizes = main.store.sizes([history.manifest_path(tag.version) for tag in named.values()])
    for (name, tag), size in zip(named.items(), sizes, strict=True):
        if size is None and not _is_settled(tag):
            continue
        if size != tag.manifest_size and dict(inspect_tags(main)).get(name) == tag:  # Else it was moved since.
            found = "that is not there" if size is None else f"whose manifest has {size} bytes"
            yield CorruptFileError(
                f"the tag {name!r} names version {tag.version} with a manifest of {tag.manifest_size} bytes, {found}:"
                " the tag is damaged, or its version was lost; let it name the right version, or delete it",
                path=ref_path(main, name, tag),
            )


def _is_settled(tag: Tag) -> bool:
    updated = tag.describe()["updated_at"]
    return updated is None or updated < datetime.datetime.now(datetime.UTC) - _SETTLED
