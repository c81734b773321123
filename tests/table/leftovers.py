"""Leftovers in the directory of a table: files that no version needs."""

from pathlib import Path

from lance_format.object_store.local import LocalStore
from lance_format.table.format.file_kinds import classify
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.history import load_detached, load_history
from lance_format.table.versions.named_files import branch_roots, named_files, owner_of
from lance_format.table.versions.refs import list_branches


def leftovers(path: Path) -> set[str]:
    """Return the files of a table and its branches that no version names, temporary ones among them."""
    main = TableDirectory(LocalStore(), str(path))
    store = main.store
    roots = branch_roots(main)
    needed: set[str] = set()
    for root in roots:
        history = load_history(TableDirectory(store, root))
        manifests = [history.load(version) for version in history.names]
        manifests += [manifest for _, manifest in load_detached(TableDirectory(store, root), frozenset())]
        for manifest in manifests:
            needed.update(named_files(manifest, TableDirectory(store, root)))
    found = set()
    for info in store.list_tree(main.root):
        root = owner_of(info.path, roots) or main.root
        file = classify(info.path[len(root) + 1 :])
        if file is not None and not {f"{root}/{file.owner}", info.path} & needed:
            found.add(main.relative(info.path))
    for name in list_branches(main):
        if not load_history(main.branch(name)).names:
            found.add(f"_refs/branches/{name}")
    return found
