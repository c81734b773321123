"""Data replacement: data files replace others with the same columns of the same rows."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import table_pb2
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata, parse_data_file, serialize_data_file
from lance_format.table.format.manifest import Manifest
from lance_format.table.transaction.operations.operation import FragmentDefaults
from lance_format.table.transaction.row_lineage import touch_rows


@dataclass(frozen=True, slots=True)
class DataReplacement(FragmentDefaults):
    """Replaces data files.

    Parameters
    ----------
    files : tuple of (int, DataFile)
        Ids of fragments, and their new files of some columns.
    """

    name: ClassVar[str] = "data_replacement"
    files: tuple[tuple[int, DataFile], ...]

    @property
    def changed_fragment_ids(self) -> frozenset[int]:
        """See `Operation`."""
        return frozenset(fragment_id for fragment_id, _ in self.files)

    @property
    def field_ids(self) -> frozenset[int]:
        """The fields with replaced values."""
        return frozenset(field_id for _, file in self.files for field_id in file.fields)

    @classmethod
    def parse(cls, message: table_pb2.Transaction) -> Self:
        """See `Operation`."""
        groups = message.data_replacement.replacements
        return cls(
            tuple((group.fragment_id, parse_data_file(group.new_file, "a data replacement")) for group in groups)
        )

    def serialize(self, message: table_pb2.Transaction) -> None:
        """See `Operation`."""
        message.data_replacement.SetInParent()
        for fragment_id, file in self.files:
            group = message.data_replacement.replacements.add(fragment_id=fragment_id)
            group.new_file.CopyFrom(serialize_data_file(file))

    def apply(self, current: Manifest) -> Manifest:
        """See `Operation`."""
        if len({file.fields for _, file in self.files}) > 1:
            raise InvalidInputError("the data files of a replacement hold different columns; replace them one by one")
        updated: dict[int, FragmentMetadata] = {}
        for fragment_id, file in self.files:
            fragment = updated.get(fragment_id) or current.fragment(fragment_id)
            if fragment is None:
                raise InvalidInputError(f"the table has no fragment {fragment_id}, whose data would be replaced")
            updated[fragment_id] = _replace_file(fragment, file)
        replaced = current.schema.with_relatives(self.field_ids)
        indices = tuple(
            index
            if index.fragment_ids is None or replaced.isdisjoint(index.fields)
            else index.with_fragments(set(index.fragment_ids) - self.changed_fragment_ids)
            for index in current.indices
        )
        fragments = current.fragments.changed(touch_rows(current, updated.values()))
        return dataclasses.replace(current, fragments=fragments, indices=indices)


def _replace_file(fragment: FragmentMetadata, file: DataFile) -> FragmentMetadata:
    files = list(fragment.files)
    for position, old in enumerate(files):
        same_version = (old.file_major_version, old.file_minor_version) == (
            file.file_major_version,
            file.file_minor_version,
        )
        if old.fields == file.fields and same_version:
            files[position] = file
            return dataclasses.replace(fragment, files=tuple(files))
    if not fragment.field_ids.isdisjoint(file.fields):
        raise InvalidInputError(
            f"fragment {fragment.id} has no data file with just the fields {list(file.fields)} in this file version,"
            " and others hold some of them"
        )
    return dataclasses.replace(fragment, files=(*fragment.files, file))
