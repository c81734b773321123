"""Indices whose tasks read the rows of their fragments, and write parts of the index.

A part covers whole fragments, as many as fit in memory. The ids of its rows are their stable ones, or else their
addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field as with_default
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.datatypes import Field
from lance_format.errors import LanceError, NotSupportedError
from lance_format.file import FileReader
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID, row_column
from lance_format.table.indices.catalog import path_of, value_type_of
from lance_format.table.indices.column_values import read_covered
from lance_format.table.indices.index_kind import (
    IndexKind,
    PlannedIndexPart,
    refuse_others,
    take_probability,
    take_whole_number,
)
from lance_format.table.indices.opening import opening
from lance_format.table.indices.row_finder import RowIds, is_plain
from lance_format.table.indices.written_parts import OpenFile, WrittenParts, plan_row_update, write_part
from lance_format.table.indices.zones.zone_map import has_bounds
from lance_format.table.versions.table_version import Draft, TableVersion

_BATCH_ROWS = 64 * 1024
_PART_BYTES = 256 << 20
"""Values and ids from which on a part gets no further fragment."""

_LARGE_BYTES = 1 << 30
_LARGE_TYPES = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRows:
    """Rows by ascending value, nulls first; floats in the total order of IEEE 754, which reads them by their bits.

    Rows of equal values are in the order of their fragments and offsets.

    Parameters
    ----------
    values : pa.Array
        Strings may be large ones.
    ids : uint64[num_rows]
    value_type : pa.DataType
        Of the column.
    """

    values: pa.Array
    ids: RowIds
    value_type: pa.DataType

    @classmethod
    def of(cls, arrays: list[pa.Array], ids: list[RowIds], value_type: pa.DataType) -> OrderedRows:
        """Sort rows. The lists are emptied, so that only one copy more of the rows is in memory.

        Parameters
        ----------
        arrays : list of pa.Array
        ids : list of uint64[…]
            Of the rows of each.
        value_type : pa.DataType
        """
        if sum(array.nbytes for array in arrays) > _LARGE_BYTES and value_type in _LARGE_TYPES:
            arrays[:] = [array.cast(_LARGE_TYPES[value_type]) for array in arrays]
        values = pa.concat_arrays(arrays) if arrays else pa.array([], value_type)
        arrays.clear()
        order = pc.array_sort_indices(totally_ordered(values), null_placement="at_start")
        values = values.take(order)
        joined = np.concatenate([np.zeros(0, np.uint64), *ids])
        ids.clear()
        return cls(values, joined[order.to_numpy()], value_type)

    def column(self, start: int, stop: int) -> pa.Array:
        """Return a range of the values, of the type of the column."""
        return self.values.slice(start, stop - start).cast(self.value_type)


def totally_ordered(values: pa.Array) -> pa.Array:
    """Return values that Arrow compares, in the same order: floats become integers of their size."""
    if pa.types.is_duration(values.type):
        return values.view(pa.int64())
    if not pa.types.is_floating(values.type):
        return values
    number = pa.from_numpy_dtype(f"int{values.type.bit_width}")
    bits = pc.fill_null(values.view(number), 0).to_numpy()
    all_but_sign = bits.dtype.type(np.iinfo(bits.dtype).max)
    keys = np.where(bits < 0, bits ^ all_but_sign, bits)
    return pa.array(keys, mask=None if not values.null_count else pc.is_null(values).to_numpy(zero_copy_only=False))


@dataclass(slots=True)
class GatheredRows:
    """The rows of some fragments, in their order, and those of each in their order.

    Parameters
    ----------
    value_type : pa.DataType
        Of the column.
    values : list of pa.Array
        Each of one fragment.
    ids : list of uint64[…]
        Of the rows of each array.
    """

    value_type: pa.DataType
    values: list[pa.Array] = with_default(default_factory=list)
    ids: list[RowIds] = with_default(default_factory=list)

    def ordered(self) -> OrderedRows:
        """Return the rows by value; no others are left here."""
        return OrderedRows.of(self.values, self.ids, self.value_type)


WriteRows: TypeAlias = Callable[[GatheredRows, Mapping[str, Any], OpenFile], dict[str, int]]
"""A function that writes the files of a part: of rows, with parameters. It returns their sizes in bytes by name."""


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
                reader = FileReader(source, table.cache, verification=verification)
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
            for rows, fragment_ids in _gathered(table, path, fragments, column)
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
        return (self._write_part(draft.table, draft.uuid, part, GatheredRows(value_type), ()),)

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
        rows: GatheredRows,
        fragment_ids: Sequence[int],
    ) -> IndexMetadata:
        """Write the files of a part."""

        def write(open_file: OpenFile) -> Mapping[str, int]:
            return self.write_rows(rows, part.details, open_file)

        details = (self.details_name, self.serialize_details(part.details))
        return write_part(table, uuid, part, fragment_ids, details, write, index_version=self.version)


def _gathered(
    table: TableVersion, path: Sequence[Field], fragments: Sequence[FragmentMetadata], column: str
) -> Iterator[tuple[GatheredRows, list[int]]]:
    """Read fragments, and yield the rows of as many as make a part, with the ids of these; see `read_covered`.

    Parameters
    ----------
    table : TableVersion
    path : sequence of Field
    fragments : sequence of FragmentMetadata
    column : str
        The virtual column of the ids of rows.
    """
    value_type = path[-1].to_arrow_type()
    rows, fragment_ids, size_bytes = GatheredRows(value_type), list[int](), 0
    for finished, values, live in read_covered(table, path, fragments, batch_size=_BATCH_ROWS):
        fragment_ids += finished
        if finished and size_bytes >= _PART_BYTES:
            yield rows, fragment_ids
            rows, fragment_ids, size_bytes = GatheredRows(value_type), [], 0
        start = 0
        for ids in (row_column(column, each).to_numpy() for each in live):
            rows.values.append(values.slice(start, ids.size))
            rows.ids.append(ids)
            start += ids.size
        size_bytes += values.nbytes + start * 8
    if fragment_ids:
        yield rows, fragment_ids
