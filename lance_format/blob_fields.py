"""Columns of blobs: large values that are stored separately from the pages that describe them.

There are two formats. The first is that of file format 2.1: a byte string that its metadata marks. The second is that
of tables from file format 2.2 on: an extension type whose storage is the writer's input, bytes or the URI of bytes
elsewhere. Three forms of a field follow:

=============== ============================================= ===============================================
form            first format                                  second format
=============== ============================================= ===============================================
of a table      `large_binary`                                `struct<data, uri, …>`, extension `lance.blob.v2`
description     `struct<position, size>`                      `struct<kind, position, size, blob_id, blob_uri>`
bytes           `large_binary`                                `large_binary`
=============== ============================================= ===============================================

Data files have descriptions; readers return them, or the bytes that they describe.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from lance_format.arguments import checked
from lance_format.datatypes import Field, Schema, check_depth
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.extension_types import EXTENSION_KEYS
from lance_format.packing import PACKED_KEY, PACKED_KEYS, asks_to_pack
from lance_format.version import FileVersion

BLOB_KEY = b"lance-encoding:blob"
_EXTENSION_NAME = "lance.blob.v2"
_BINARY_NAMES = ("large_binary", "binary")
_V1_FIELDS = ("position", "size")
_V2_FIELDS = ("kind", "position", "size", "blob_id", "blob_uri")
_V2_TYPES = ("uint8", "uint64", "uint64", "uint32", "string")
_GIVEN_FIELDS = ("data", "uri", "position", "size")
_GIVEN_TYPES = tuple(
    pa.struct(list(zip(_GIVEN_FIELDS, types, strict=False)))
    for types in ((pa.large_binary(), pa.string()), (pa.large_binary(), pa.string(), pa.uint64(), pa.uint64()))
)

NUM_DESCRIPTION_PARTS = len(_V2_FIELDS)
"""Number of fields of such a description; the file lists them without ids."""


@checked
def blob_field(name: str, *, nullable: bool = True) -> pa.Field:
    """Return a column of blobs for the schema of data: byte strings that are stored separately.

    >>> import pyarrow as pa
    >>> schema = pa.schema([pa.field("id", pa.int64()), blob_field("video")])
    >>> pa.table([[1, 2], blob_array([b"...", None])], schema=schema).num_rows
    2

    Parameters
    ----------
    name : str
    nullable : bool
    """
    return pa.field(name, pa.large_binary(), nullable, {BLOB_KEY: b"true"})


@checked
def blob_array(values: Iterable[object]) -> pa.LargeBinaryArray:
    """Return the values of a column of blobs; see `blob_field`.

    Raises
    ------
    NotSupportedError
        If one is a text, which in pylance is the URI of bytes elsewhere.
    """
    listed = [bytes(value) if isinstance(value, bytearray | memoryview) else value for value in values]
    if any(isinstance(value, str) for value in listed):
        raise NotSupportedError("blobs that lie elsewhere, named by URIs, cannot be written; give their bytes")
    if not all(value is None or isinstance(value, bytes) for value in listed):
        raise InvalidInputError("the values of blobs are bytes or None")
    return pa.array(listed, pa.large_binary())


class BlobHandling(enum.Enum):
    """Form of columns of blobs in the results of reads; the last two are the same."""

    ALL_BINARY = "all_binary"
    BLOBS_DESCRIPTIONS = "blobs_descriptions"
    ALL_DESCRIPTIONS = "all_descriptions"

    @classmethod
    def parse(cls, text: str | None) -> BlobHandling:
        """Resolve a name; None is descriptions.

        Raises
        ------
        InvalidInputError
            If there is no such handling.
        """
        try:
            return cls.BLOBS_DESCRIPTIONS if text is None else cls(text)
        except ValueError:
            names = ", ".join(handling.value for handling in cls)
            raise InvalidInputError(f"blob_handling is {text!r}; use one of {names}") from None


class BlobFormat(enum.Enum):
    """The two ways of storing blobs."""

    V1 = 1
    V2 = 2


def is_marked(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Return whether metadata makes a field a column of blobs: any value of the key does, even `false`."""
    return BLOB_KEY in (metadata or {})


def marks_description(metadata: Mapping[bytes, bytes]) -> bool:
    """Return whether metadata in the schema of a data file marks a description of the second format."""
    return is_marked(metadata) and asks_to_pack(metadata)


def format_of(field: Field) -> BlobFormat | None:
    """Return the blob format of a field in any of its forms; None if it is no column of blobs."""
    if field.extension_name == _EXTENSION_NAME:
        is_storage = field.logical_type == "struct" and _is_given(field.children)
        return BlobFormat.V2 if is_storage or holds_bytes(field) else None
    if not is_marked(field.metadata):
        return None
    if field.logical_type in _BINARY_NAMES:
        return BlobFormat.V1
    if field.logical_type != "struct":
        return None
    names = tuple(child.name for child in field.children)
    if names == _V1_FIELDS:
        return BlobFormat.V1
    return BlobFormat.V2 if asks_to_pack(field.metadata) and names in (_V2_FIELDS, ()) else None


def _is_given(children: tuple[Field, ...]) -> bool:
    """Return whether these are the fields of a writer's input."""
    names = tuple(child.name for child in children)
    return names in (_GIVEN_FIELDS[:2], _GIVEN_FIELDS) and holds_bytes(children[0])


def holds_bytes(field: Field) -> bool:
    """Return whether a column of blobs is requested as bytes."""
    return field.logical_type in _BINARY_NAMES


def has_same_extension(field: Field, other: Field) -> bool:
    """Return whether two fields are both of the extension type."""
    return field.extension_name == other.extension_name == _EXTENSION_NAME


def is_description(field: Field) -> bool:
    """Return whether a field is a column of descriptions."""
    return field.logical_type == "struct" and format_of(field) is not None and field.extension_name != _EXTENSION_NAME


def describe(field: Field) -> Field:
    """Return a field with descriptions in place of all blobs in it; itself if there are none."""
    return _replace(field, _described)


def as_bytes(field: Field) -> Field:
    """Return a field with bytes in place of all blobs in it; itself if there are none."""
    return _replace(field, _with_bytes)


def in_file(field: Field) -> Field:
    """Return the form of a field in the schema of a data file."""
    return _replace(field, lambda blob, kind: blob if kind is BlobFormat.V1 else _described(blob, kind))


@functools.lru_cache(maxsize=16)
def read_schema(schema: Schema, handling: BlobHandling) -> Schema:
    """Return the schema of the results of reading a table."""
    form = as_bytes if handling is BlobHandling.ALL_BINARY else describe
    return Schema(tuple(form(field) for field in schema.fields), schema.metadata)


def has_blobs(field: Field) -> bool:
    """Return whether there are blobs in a field."""
    return any(format_of(node) is not None for node in field.walk())


def _replace(field: Field, form: Callable[[Field, BlobFormat], Field]) -> Field:
    kind = format_of(field)
    if kind is not None:
        return form(field, kind)
    if not field.children:
        return field
    children = tuple(_replace(child, form) for child in field.children)
    if all(new is old for new, old in zip(children, field.children, strict=True)):
        return field
    return dataclasses.replace(field, children=children)


def _described(field: Field, kind: BlobFormat) -> Field:
    if is_description(field) and field.children:
        return field
    metadata = {key: value for key, value in field.metadata.items() if key not in EXTENSION_KEYS}
    metadata[BLOB_KEY] = b"true"
    if kind is BlobFormat.V1:
        children = tuple(Field(name, "uint64", nullable=True) for name in _V1_FIELDS)
    else:
        metadata[PACKED_KEY] = b"true"
        parts = zip(_V2_FIELDS, _V2_TYPES, strict=True)
        children = tuple(Field(name, logical_type, nullable=False) for name, logical_type in parts)
    return dataclasses.replace(field, logical_type="struct", metadata=metadata, children=children, extension_name="")


def _with_bytes(field: Field, kind: BlobFormat) -> Field:
    metadata = {key: value for key, value in field.metadata.items() if key not in (*EXTENSION_KEYS, *PACKED_KEYS)}
    metadata.setdefault(BLOB_KEY, b"true")
    # The name of the extension stays as the mark of the second format; Arrow sees metadata only.
    name = _EXTENSION_NAME if kind is BlobFormat.V2 else ""
    return dataclasses.replace(field, logical_type="large_binary", metadata=metadata, children=(), extension_name=name)


def table_schema(schema: pa.Schema, version: FileVersion) -> pa.Schema:
    """Return the schema of a new table for data of a schema.

    Byte strings that are marked as blobs become `large_binary`, or the extension type if the version has it.
    """
    for column in schema:
        check_depth(column)
    return pa.schema([_table_field(field, version) for field in schema], metadata=schema.metadata)


def _table_field(field: pa.Field, version: FileVersion) -> pa.Field:
    arrow_type = field.type
    metadata = field.metadata or {}
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return _table_blob(field, version) if is_marked(metadata) else field
    if is_marked(metadata) and version.has_blob_extension and arrow_type in _GIVEN_TYPES:
        return _table_blob(field, version)
    if pa.types.is_struct(arrow_type) and metadata.get(EXTENSION_KEYS[0]) != _EXTENSION_NAME.encode():
        return field.with_type(pa.struct([_table_field(child, version) for child in arrow_type]))
    if pa.types.is_list(arrow_type):
        return field.with_type(pa.list_(_table_field(arrow_type.value_field, version)))
    if pa.types.is_large_list(arrow_type):
        return field.with_type(pa.large_list(_table_field(arrow_type.value_field, version)))
    return field


def _table_blob(field: pa.Field, version: FileVersion) -> pa.Field:
    if not version.has_blob_extension:
        return field.with_type(pa.large_binary())
    metadata = {key: value for key, value in field.metadata.items() if key != BLOB_KEY}
    metadata[EXTENSION_KEYS[0]] = _EXTENSION_NAME.encode()
    storage = field.type if field.type in _GIVEN_TYPES else _GIVEN_TYPES[0]
    return pa.field(field.name, storage, field.nullable, metadata)


def check_storable(field: Field, version: FileVersion) -> None:
    """Refuse blobs that a data file cannot hold, or that pylance could not read back.

    Raises
    ------
    InvalidInputError
        If there are descriptions, which are meaningless without their file.
    NotSupportedError
    """

    def check(node: Field, path: str, around: frozenset[str]) -> None:
        kind = format_of(node)
        if kind is None:
            if is_marked(node.metadata):
                raise InvalidInputError(_marked_by_mistake(node, path))
            for child in node.children:
                check(child, f"{path}.{child.name}", around | {node.logical_type.split(":")[0]})
            return
        if is_description(node):
            raise InvalidInputError(_descriptions_given(path))
        if kind is BlobFormat.V2 and not version.has_blob_extension:
            raise NotSupportedError(_extension_given(path, version))
        if kind is BlobFormat.V1 and node.logical_type != "large_binary":
            raise NotSupportedError(
                f"column {path!r} has blobs of 32-bit binary, which cannot be stored; cast it to large_binary"
            )
        if "map" in around or "fixed_size_list" in around or (kind is BlobFormat.V1 and around - {"struct"}):
            raise NotSupportedError(
                f"column {path!r} has blobs within {' and '.join(sorted(around))}, which cannot be stored"
            )

    check(field, field.name, frozenset())


def _marked_by_mistake(field: Field, path: str) -> str:
    return (
        f"column {path!r} is {field.to_arrow_type()}, and the metadata {BLOB_KEY.decode()!r}, whatever its value, makes"
        " it a column of blobs; store large_binary, or remove the metadata"
    )


def _descriptions_given(path: str) -> str:
    return (
        f"column {path!r} has descriptions of blobs, which cannot be written; read the table that they are from with"
        f" blob_handling={BlobHandling.ALL_BINARY.value!r}"
    )


def _extension_given(path: str, version: FileVersion) -> str:
    return (
        f"column {path!r} is of type {_EXTENSION_NAME}, which file format {version} cannot hold; write 2.2, or"
        f" large_binary with the metadata {BLOB_KEY.decode()!r}"
    )
