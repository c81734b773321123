"""Indices whose values were changed in place: they are in other data files than before."""

from __future__ import annotations

from collections.abc import Mapping

from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.format.manifest import Manifest


def changed_in_place(index: IndexMetadata, before: Manifest, after: Mapping[int, FragmentMetadata]) -> frozenset[int]:
    """Return the fragments of an index that are still there, but with its values in other files.

    Parameters
    ----------
    index : IndexMetadata
        Of the values of `before`.
    before : Manifest
    after : mapping of int to FragmentMetadata
        The later fragments, by id.
    """
    covered = index.fragment_ids
    if covered is None or index.is_system:
        return frozenset()
    fields = frozenset(node.id for x in before.schema.walk() if x.id in index.fields for node in x.walk())
    found = [(x, after[x.id]) for x in before.fragments if x.id in covered and x.id in after]
    return frozenset(
        old.id for old, new in found if old is not new and _files_of(old, fields) != _files_of(new, fields)
    )


def _files_of(fragment: FragmentMetadata, fields: frozenset[int]) -> list[tuple[str, int | None]]:
    return [(file.path, file.base_id) for file in fragment.files if not fields.isdisjoint(file.fields)]
