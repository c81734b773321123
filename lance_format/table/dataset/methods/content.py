"""The methods of `LanceDataset` that tell what a version has."""

from __future__ import annotations

import pyroaring

from lance_format.arguments import checked_methods
from lance_format.file import LanceFileSession
from lance_format.row_numbers import to_bitmap
from lance_format.table.changes.write.adopt_file import describe_file
from lance_format.table.dataset.branches import Branches
from lance_format.table.dataset.fragment import LanceFragment
from lance_format.table.dataset.schema import LanceSchema
from lance_format.table.dataset.session import Session
from lance_format.table.dataset.stats import LanceStats
from lance_format.table.dataset.tags import Tags
from lance_format.table.format.file_entries import DataFile
from lance_format.table.versions.open_table import OpenTable


@checked_methods
class DatasetContent(OpenTable):
    """Fragments, fields, tags and branches of a table. Part of `LanceDataset`."""

    @property
    def data_storage_version(self) -> str:
        """The default file format version of new data files."""
        return str(self._table.manifest.file_version)

    def session(self) -> Session:
        """Return the session of the table, an own one if none was given."""
        return Session.of(self._table.cache)

    @property
    def branches(self) -> Branches:
        """The branches of the table, except the main one."""
        return Branches(self)

    @property
    def tags(self) -> Tags:
        """Names for versions."""
        return Tags(self)

    def get_fragments(self) -> list[LanceFragment]:
        """Return the fragments, by ascending id."""
        return [LanceFragment(self, fragment) for fragment in self._table.manifest.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment of an id, or None if there is none."""
        fragment = self._table.manifest.fragment(fragment_id)
        return None if fragment is None else LanceFragment(self, fragment)

    def new_file_session(self) -> LanceFileSession:
        """Return a session that reads and writes single files below the directory of the table."""
        return LanceFileSession(self._table.uri, self._table.storage_options)

    def fragment_ids(self) -> pyroaring.BitMap:
        """Return the ids of the fragments, as a set; cheaper than `get_fragments`."""
        return to_bitmap(self._table.manifest.fragments.columns.ids)

    def repeated_fragment_ids(self) -> frozenset[int]:
        """Return the ids that several fragments have, as in some tables of early releases."""
        return self._table.manifest.fragments.repeated_ids

    @property
    def max_field_id(self) -> int:
        """The highest field id ever assigned, dropped fields included."""
        return self._table.manifest.next_field_id - 1

    def _describe_file(self, name: str, base_id: int | None) -> DataFile:
        return describe_file(self._table, name, base_id)

    @property
    def stats(self) -> LanceStats:
        """Counts of rows, fragments and bytes."""
        return LanceStats(self)

    @property
    def has_stable_row_ids(self) -> bool:
        """True if rows keep their ids when an update or a compaction moves them."""
        return self._table.manifest.stable_row_ids

    @property
    def lance_schema(self) -> LanceSchema:
        """The columns, with the ids of their fields."""
        return LanceSchema(self._table.manifest.schema)
