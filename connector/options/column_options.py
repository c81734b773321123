"""Options of single columns: `<column>.lance.compression` and the like, in the names of lance-spark's properties.

They set the storage of a column of a new table, and become part of its schema. Metadata of the DataFrame's field
overrides them. An append keeps the storage of the table's columns: it accepts options that agree, and refuses others
rather than ignore them.
"""

from __future__ import annotations

import pyarrow as pa

from connector.types.field_metadata import VECTOR_SIZE_KEY
from connector.types.schemas import as_vector
from lance_format import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

VECTOR_SIZE = VECTOR_SIZE_KEY
STRUCTURAL_ENCODING = "lance.structural-encoding"
ENCODING = "lance.encoding"
BLOB = "blob"
"""The only encoding that can be requested."""
PACKED = "lance.packed"
METADATA_KEYS = {
    ENCODING: "lance-encoding:blob",
    "lance.compression": "lance-encoding:compression",
    "lance.compression-level": "lance-encoding:compression-level",
    STRUCTURAL_ENCODING: "lance-encoding:structural-encoding",
    PACKED: "lance-encoding:packed",
    "lance.rle-threshold": "lance-encoding:rle-threshold",
    "lance.bss": "lance-encoding:bss",
    "lance.dict-divisor": "lance-encoding:dict-divisor",
    "lance.dict-size-ratio": "lance-encoding:dict-size-ratio",
    "lance.dict-values-compression": "lance-encoding:dict-values-compression",
    "lance.minichunk-size": "lance-encoding:minichunk-size",
}
"""Key of each option in the metadata of a field."""
PROPERTIES = (VECTOR_SIZE, *METADATA_KEYS)
"""Beginnings of option names after the column's name and a dot."""


@dataclass(frozen=True, slots=True)
class ColumnOption:
    """One option of one column.

    Parameters
    ----------
    column : str
        In lower case, as Spark passes option names.
    name : str
        One of `PROPERTIES`.
    value : str
        A whole number for the size of a vector; other values are checked on use.
    """

    column: str
    name: str
    value: str

    @property
    def full_name(self) -> str:
        """Name of the option as the user wrote it, in lower case."""
        return f"{self.column}.{self.name}"


def apply_to_new(schema: pa.Schema, options: tuple[ColumnOption, ...]) -> pa.Schema:
    """Return the schema that a new table gets.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of `connector.types.schemas.to_stored_schema`.
    options : tuple of ColumnOption

    Raises
    ------
    InvalidInputError
        If there is no such column, or a column cannot hold vectors or blobs that are requested.
    """
    for option in options:
        index = _find(schema, option)
        field = schema.field(index)
        if option.name != VECTOR_SIZE:
            value = option.value
            if option.name == ENCODING:
                if not pa.types.is_binary(field.type):
                    raise InvalidInputError(
                        f"option {option.full_name!r}: column {field.name!r} cannot hold blobs: it is stored as "
                        f"{field.type}, and a binary column is needed"
                    )
                value = "true"
            elif option.name == PACKED:
                if not pa.types.is_struct(field.type):
                    raise InvalidInputError(
                        f"option {option.full_name!r}: column {field.name!r} cannot be packed: it is stored as "
                        f"{field.type}, and a struct is needed"
                    )
                value = "true"
            else:
                value = value.strip().lower()  # Check it in the form in which every writer to the table reads it.
            given = {METADATA_KEYS[option.name].encode(): value.encode()}
            field = field.with_metadata({**given, **(field.metadata or {})})
        elif not pa.types.is_fixed_size_list(field.type):
            field = field.with_type(as_vector(field.type, int(option.value), field.name))
        schema = schema.set(index, field)
    return schema


def check_against_table(wanted: pa.Schema, stored: pa.Schema, options: tuple[ColumnOption, ...], path: str) -> None:
    """Check that a table stores its columns as the options say.

    Parameters
    ----------
    wanted : pyarrow.Schema
        The schema that a new table would get.
    stored : pyarrow.Schema
        Of the table. Columns that it lacks are new and follow their options.
    options : tuple of ColumnOption
    path : str
        Of the table, for the message.

    Raises
    ------
    InvalidInputError
        Naming the first option that differs.
    """
    for option in options:
        field = wanted.field(_find(wanted, option))
        if field.name not in stored.names:
            continue
        found = _state(stored.field(field.name), option.name)
        if _state(field, option.name) != found:
            raise InvalidInputError(
                f"option {option.full_name!r} is {option.value!r}, but the table {path} has {found or 'none'}: how a "
                "column is stored is settled when the table is created; leave the option out, or overwrite the table"
            )


def stated_options(schema: pa.Schema) -> dict[str, str]:
    """Return the storage of a table's columns, as options by their full names.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the table.
    """
    stated = {f"{field.name}.{name}": _state(field, name) for field in schema for name in PROPERTIES}
    return {name: value for name, value in stated.items() if value is not None}


def _find(schema: pa.Schema, option: ColumnOption) -> int:
    found = [index for index, name in enumerate(schema.names) if name.lower() == option.column]
    if len(found) != 1:
        problem = "no column is" if not found else "more than one column is"
        raise InvalidInputError(
            f"option {option.full_name!r}: {problem} called {option.column!r}, in any case; "
            f"the columns are {', '.join(map(repr, schema.names))}"
        )
    return found[0]


def _state(field: pa.Field, name: str) -> str | None:
    """Return the value of an option in a field's metadata, in the form of the option; None if it is not set."""
    if name == VECTOR_SIZE:
        return str(field.type.list_size) if pa.types.is_fixed_size_list(field.type) else None
    value: bytes | None = (field.metadata or {}).get(METADATA_KEYS[name].encode())
    if name == ENCODING:
        return None if value is None else BLOB
    return None if value is None else value.decode(errors="replace")
