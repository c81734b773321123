"""Which of the files below a table belong to which of its branches.

The directory of a branch holds those of branches whose names begin with its own: `tree/a` holds `tree/a/b`. Branches
are found by their manifests, whether or not a file names them.
"""

from __future__ import annotations

from collections.abc import Set

from lance_format.object_store import ObjectStore
from lance_format.table.naming import BRANCH_TREE, VERSIONS_DIRECTORY


def branch_roots(store: ObjectStore, main: str) -> frozenset[str]:
    """Return the directories of all branches, the main one included, by the place of the main one."""
    roots = {main}
    marker = f"/{VERSIONS_DIRECTORY}/"
    for info in store.list_tree(f"{main}/{BRANCH_TREE}"):
        root, found, name = info.path.rpartition(marker)
        if found and name.endswith(".manifest") and "/" not in name:
            roots.add(root)
    return frozenset(roots)


def owner_of(path: str, roots: Set[str]) -> str | None:
    """Return the innermost of some directories that a file is in."""
    while path:
        path = path.rpartition("/")[0]
        if path in roots:
            return path
    return None
