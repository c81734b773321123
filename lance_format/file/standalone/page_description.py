"""Descriptions of the pages of a file: layout, compression, size, and size without either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from lance_format.array_encodings.legacy import LegacyPage
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError
from lance_format.expressions import FieldPath
from lance_format.file.columns.field_paths import prune
from lance_format.file.columns.indices import column_indices, stored_fields
from lance_format.file.columns.projection import ColumnProjection
from lance_format.file.container.column_metadata import PageEncoding, PageMetadata
from lance_format.file.reading.reader import FileReader
from lance_format.lazy_dataclasses import dataclass
from lance_format.proto import encodings_pb2

_BATCH_ROWS = 8192
_LAYOUTS = {
    "mini_block_layout": "mini-block",
    "full_zip_layout": "full-zip",
    "constant_layout": "constant",
    "blob_layout": "blob",
    "sparse_layout": "sparse",
}
_INNER = ("values", "items", "bytes", "binary", "inner_layout", "no_nulls", "some_nulls", "all_nulls")
"""The member of an encoding that holds its values, encoded further."""
_UNNAMED = {"nullable", "no_nulls", "some_nulls"}
"""Encodings of format 2.0 that say only whether there are nulls."""
_SCHEMES = {1: "lz4", 2: "zstd"}


@dataclass(frozen=True, slots=True)
class PageDescription:
    """A page of a column.

    Parameters
    ----------
    column : str
        Names from the column down to the field, with dots between them.
    number : int
        Number of the page in the column, from 0.
    row_offset : int or None
        The first row of the page. None for items of lists in files of format 2.0 and earlier, which count items.
    num_rows : int
        Number of rows, or of items where `row_offset` is None.
    size_bytes : int
        Bytes of the page in the file.
    plain_bytes : int or None
        Bytes of the values as Arrow arrays. None if they were not read, or `row_offset` is None.
    layout : str
        Form of the page, such as `mini-block`; `array` in files of format 2.0, `plain` in those of format 0.1.
    compression : str
        Compressions from the outermost to the innermost, such as `zstd > flat`.
    num_zones : int or None
        Number of zones with statistics that have rows of the page. None if the column has no statistics.
    """

    column: str
    number: int
    row_offset: int | None
    num_rows: int
    size_bytes: int
    plain_bytes: int | None
    layout: str
    compression: str
    num_zones: int | None

    @property
    def ratio(self) -> float | None:
        """Plain bytes per stored byte; None if either is unknown or zero."""
        return self.plain_bytes / self.size_bytes if self.plain_bytes and self.size_bytes else None


def describe_pages(reader: FileReader, columns: Sequence[str] | None, *, read_values: bool) -> list[PageDescription]:
    """Describe the pages of a file, column by column.

    Parameters
    ----------
    reader : FileReader
    columns : sequence of str, optional
        Columns, or fields below them as `PageDescription.column` names them. By default all.
    read_values : bool
        Whether to read the values, to learn their plain size.

    Raises
    ------
    InvalidInputError
        If the file lacks a column.
    """
    found: list[PageDescription] = []
    unknown = set(columns or ())
    for path, number in _stored_paths(reader):
        name = ".".join(path)
        mentioned = {name[: end or None] for end in (*_dots(name), 0)} & set(columns or ())
        unknown -= mentioned
        if columns is None or mentioned:
            found += _describe_column(reader, path, number, read_values=read_values)
    if unknown:
        raise InvalidInputError(
            f"the file has no column {min(unknown)!r}; its columns are {', '.join(sorted(_names(reader)))}"
        )
    return found


def describe_encoding(layout: PageEncoding | LegacyPage) -> tuple[str, str]:
    """Return the layout and the compression of a page; see `PageDescription`."""
    if isinstance(layout, LegacyPage):
        return "plain", "dictionary" if layout.num_items else "none"
    if not isinstance(layout, encodings_pb2.PageLayout):
        return "array", _chain(layout)
    kind = str(layout.WhichOneof("layout"))
    chosen = getattr(layout, kind)
    if kind == "blob_layout":
        return "blob", describe_encoding(chosen.inner_layout)[1]
    compression = _chain(chosen.value_compression) if _has(chosen, "value_compression") else "none"
    if kind == "mini_block_layout" and chosen.num_dictionary_items:
        compression = f"dictionary of {chosen.num_dictionary_items} ({_chain(chosen.dictionary)}) > {compression}"
    return _LAYOUTS.get(kind, kind), compression


def _stored_paths(reader: FileReader) -> list[tuple[FieldPath, int]]:
    """Return the path of each stored field, with its column in the file."""
    fields = stored_fields(reader.schema, reader.version)
    return [
        (tuple(field.name for field in path), column) for column, path in fields.items() if column < reader.num_columns
    ]


def _describe_column(
    reader: FileReader, path: FieldPath, number: int, *, read_values: bool
) -> Iterator[PageDescription]:
    pages = reader.pages(number)
    counts_rows = sum(page.num_rows for page in pages) == reader.num_rows
    starts = np.cumsum([0, *(page.num_rows for page in pages)])
    part = _Part(prune(reader.schema, [path]), path)
    zones = part.zone_starts(reader)
    for position, page in enumerate(pages):
        start, stop = int(starts[position]), int(starts[position + 1])
        layout, compression = describe_encoding(page.layout)
        yield PageDescription(
            ".".join(path),
            position,
            start if counts_rows else None,
            page.num_rows,
            sum(buffer.size for buffer in page.buffers),
            part.plain_bytes(reader, start, stop) if read_values and counts_rows and _has_values(page) else None,
            layout,
            compression,
            _count_zones(zones, start, stop) if counts_rows else None,
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a schema that one stored field is."""

    schema: Schema
    path: FieldPath

    def _columns(self, reader: FileReader) -> list[ColumnProjection]:
        numbers: Mapping[int, int] = column_indices(reader.schema, reader.version)
        return [ColumnProjection(field, numbers) for field in self.schema.fields]

    def plain_bytes(self, reader: FileReader, start: int, stop: int) -> int:
        batches = reader.read(self._columns(reader), start, stop, batch_size=_BATCH_ROWS)
        return sum(batch.nbytes for batch in batches)

    def zone_starts(self, reader: FileReader) -> npt.NDArray[np.int64] | None:
        statistics = reader.zone_statistics(self._columns(reader)).get(self.path)
        return None if statistics is None else np.cumsum([0, *statistics.num_rows.tolist()])


def _has_values(page: PageMetadata) -> bool:
    """Return whether a page has more than the header of a struct of format 2.0."""
    layout = page.layout
    is_header = not isinstance(layout, (LegacyPage, encodings_pb2.PageLayout)) and layout.HasField("struct")
    return page.num_rows > 0 and not is_header


def _count_zones(starts: npt.NDArray[np.int64] | None, start: int, stop: int) -> int | None:
    if starts is None:
        return None
    return int(((starts[:-1] < stop) & (starts[1:] > start)).sum())


def _chain(encoding: Message) -> str:
    return " > ".join(_steps(encoding)) or "none"


def _steps(encoding: Message) -> Iterator[str]:
    """Yield the names of an encoding and of those inside it."""
    (kind,) = (oneof.name for oneof in encoding.DESCRIPTOR.oneofs if not oneof.name.startswith("_"))
    name = encoding.WhichOneof(kind)
    if name is None:
        return
    chosen = getattr(encoding, name)
    if name not in _UNNAMED:
        yield from _name(name, chosen)
    for member in _INNER:
        if _has(chosen, member):
            yield from _inside(getattr(chosen, member))
            return


def _inside(member: Any) -> Iterator[str]:
    if any(not oneof.name.startswith("_") for oneof in member.DESCRIPTOR.oneofs):
        yield from _steps(member)
    elif _has(member, "values"):
        yield from _steps(member.values)


def _name(name: str, chosen: Message) -> Iterator[str]:
    scheme = _scheme(chosen)
    if name == "general":
        yield scheme or "none"
        return
    yield name.removeprefix("inline_").removeprefix("out_of_line_").replace("_", " ")
    if scheme:
        yield scheme


def _scheme(chosen: Message) -> str:
    """Return the general compression of an encoding's bytes; empty if there is none."""
    for member in ("compression", "data", "values"):
        if _has(chosen, member):
            found = getattr(chosen, member)
            if isinstance(found, encodings_pb2.BufferCompression):
                return _SCHEMES.get(found.scheme, "")
            if isinstance(getattr(found, "scheme", None), str):
                return str(found.scheme)
    return ""


def _has(message: Message, member: str) -> bool:
    field = message.DESCRIPTOR.fields_by_name.get(member)
    return field is not None and field.message_type is not None and not field.is_repeated and message.HasField(member)


def _dots(name: str) -> list[int]:
    return [position for position, character in enumerate(name) if character == "."]


def _names(reader: FileReader) -> set[str]:
    return {".".join(path) for path, _ in _stored_paths(reader)}
