"""Giving the manifests of a table names of scheme V2."""

from __future__ import annotations

import contextlib

from lance_format.errors import CorruptFileError
from lance_format.object_store import ObjectExistsError
from lance_format.table.format.layout import ManifestNaming, parse_manifest_name
from lance_format.table.format.manifest_file import MAX_MANIFEST_BYTES
from lance_format.table.format.table_directory import TableDirectory


def migrate_manifest_names(directory: TableDirectory) -> None:
    """Rename all manifests of scheme V1.

    The table must not be in use by others. Call it again to complete an interrupted call.

    Raises
    ------
    CorruptFileError
        If a version has manifests of both schemes that differ.
    """
    store = directory.store
    for name in sorted(store.list_names(directory.versions)):
        parsed = parse_manifest_name(name)
        if parsed is None or parsed[1] is not ManifestNaming.V1:
            continue
        before, after = f"{directory.versions}/{name}", directory.manifest(parsed[0])
        content = store.read(before, MAX_MANIFEST_BYTES)
        with contextlib.suppress(ObjectExistsError):  # It was interrupted here before.
            store.put_if_absent(after, content)
        if store.read(after, MAX_MANIFEST_BYTES) != content:
            raise CorruptFileError(f"version {parsed[0]} has another manifest called {name}", path=after)
        store.delete(before)
