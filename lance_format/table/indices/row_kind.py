"""Indices whose tasks read the rows of their fragments, and write parts of the index.

The ids of the rows of a part are their stable ones, or else their addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from lance_format.datatypes import Field
from lance_format.errors import LanceError, NotSupportedError
from lance_format.file import FileReader
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID
from lance_format.table.indices.catalog import path_of, value_type_of
from lance_format.table.indices.index_kind import (
    IndexKind,
    PlannedIndexPart,
    refuse_others,
    take_probability,
    take_whole_number,
)
from lance_format.table.indices.opening import opening
from lance_format.table.indices.part_rows import PartRows, read_parts
from lance_format.table.indices.row_finder import is_plain
from lance_format.table.indices.written_parts import OpenFile, WrittenParts, plan_row_update, write_part
from lance_format.table.indices.zones.zone_map import has_bounds
from lance_format.table.versions.table_version import Draft, TableVersion

WriteRows: TypeAlias = Callable[[PartRows, Mapping[str, Any], OpenFile], dict[str, int]]
"""A function that writes the files of a part: of rows, all of which it reads, with parameters.

It returns their sizes in bytes by name.
"""


CheckPart: TypeAlias = Callable[[TableVersion, IndexMetadata, pa.DataType], None]
"""A function that reads the whole content of a part, of a column of a type; see `IndexKind.check`."""


@dataclass(frozen=True, slots=True)
class RowParameter:
    """A parameter of such a kind, which the metadata of the schema of a file tells.

    Parameters
    ----------
    name : str
    default : int or float
        A whole number from 1 on, or a probability.
    file, key : str, bytes
        The file, and the key of its metadata.
    """

    name: str
    default: int | float
    file: str
    key: bytes

    def take(self, parameters: dict[str, Any]) -> int | float:
        """Remove the parameter from a dictionary and return it; see `take_whole_number` and `take_probability`."""
        if isinstance(self.default, int):
            return take_whole_number(parameters, self.name, self.default)
        return take_probability(parameters, self.name, self.default)

    def stored(self, table: TableVersion, index: IndexMetadata) -> int | float:
        """Return the parameter of a part of an index; the default if it cannot be found out."""
        try:
            with opening(table, index, self.file) as (source, verification):
                reader = FileReader(source, table.cache.of_indices, verification=verification)
            try:
                text = reader.schema.metadata.get(self.key, b"")
            finally:
                reader.close()
            return self.take({self.name: type(self.default)(text)})
        except (LanceError, ValueError):  # The index is about to be written again, perhaps because it is damaged.
            return self.default


@dataclass(frozen=True, slots=True)
class RowIndexKind(IndexKind[Mapping[str, Any], WrittenParts]):
    """Kind of an index that names rows.

    Parameters
    ----------
    name : str
    details_name : str
        Of its protobuf.
    write_rows : callable
    check_part : callable
    holds : callable
        Returns whether it holds values of a type.
    held : str
        The types that it holds, for errors.
    parameters : sequence of RowParameter
    version : int
        The version of the form of the parts that are made, and the latest known one.
    by_address : bool
        Whether rows have their addresses for ids, also if they have stable ones.
    """

    name: str
    details_name: str
    write_rows: WriteRows
    check_part: CheckPart
    holds: Callable[[pa.DataType], bool] = has_bounds
    held: str = "numbers, booleans, strings, binary values, dates and times"
    parameters: Sequence[RowParameter] = ()
    version: int = 0
    by_address: bool = False

    def configure(self, parameters: Mapping[str, Any], field: Field) -> Mapping[str, Any]:
        """See `IndexKind.configure`."""
        value_type = field.to_arrow_type()
        if not self.holds(value_type):
            raise NotSupportedError(
                f"column {field.name!r} is of type {value_type}, which {self.name} indices made here cannot hold; they"
                f" are of {self.held}"
            )
        left = dict(parameters)
        found = {known.name: known.take(left) for known in self.parameters}
        refuse_others(left, self.name, [known.name for known in self.parameters])
        return found

    def serialize_details(self, parameters: Mapping[str, Any]) -> bytes:  # noqa: ARG002
        """Return the protobuf of a part with parameters."""
        return b""

    def knows(self, index: IndexMetadata) -> bool:
        """See `IndexKind.knows`."""
        return is_plain(index, self.version)

    def stored_details(self, table: TableVersion, index: IndexMetadata) -> Mapping[str, Any]:
        """See `IndexKind.stored_details`."""
        return {known.name: known.stored(table, index) for known in self.parameters}

    def check(self, table: TableVersion, index: IndexMetadata) -> None:
        """See `IndexKind.check`."""
        self.check_part(table, index, value_type_of(table, index))

    def train(
        self,
        table: TableVersion,
        uuid: str,
        part: PlannedIndexPart,
        path: Sequence[Field],
        fragments: Sequence[FragmentMetadata],
    ) -> WrittenParts:
        """Write parts of the index; see `IndexKind.train`."""
        column = ROW_ADDRESS if self.by_address else ROW_ID
        found = [
            self._write_part(table, uuid, part, rows, fragment_ids)
            for rows, fragment_ids in read_parts(table, path, fragments, column)
        ]
        return WrittenParts.of(found)

    def write(
        self, draft: Draft, part: PlannedIndexPart, contents: Sequence[WrittenParts]
    ) -> tuple[IndexMetadata, ...]:
        """Write a part of no rows if there is no other; see `IndexKind.write`."""
        found = tuple(index for content in contents for index in content.parse())
        if found:
            return found
        value_type = path_of(draft.table.manifest.schema.fields, part.field_id)[-1].to_arrow_type()
        return (self._write_part(draft.table, draft.uuid, part, PartRows(value_type, iter(())), ()),)

    def plan_update(
        self, table: TableVersion, parts: Sequence[IndexMetadata], path: Sequence[Field], num_to_merge: int | None
    ) -> tuple[PlannedIndexPart, Sequence[int]] | None:
        """Read the fragments of the parts that are merged again; see `plan_row_update`."""
        return plan_row_update(self, table, parts, path, num_to_merge)

    def _write_part(
        self,
        table: TableVersion,
        uuid: str,
        part: PlannedIndexPart,
        rows: PartRows,
        fragment_ids: Sequence[int],
    ) -> IndexMetadata:
        """Write the files of a part."""

        def write(open_file: OpenFile) -> Mapping[str, int]:
            return self.write_rows(rows, part.details, open_file)

        details = (self.details_name, self.serialize_details(part.details))
        return write_part(table, uuid, part, fragment_ids, details, write, index_version=self.version)
