"""Encoding options for columns of any type: those that can affect one."""

import pyarrow as pa

from lance_format.datatypes import Field
from lance_format.file.writing.option_effects import useless_options


def fitting(arrow_type: pa.DataType, metadata: dict[str, str]) -> dict[str, str]:
    """Return the options that are not refused for new columns of a type."""
    given = {key.encode(): value.encode() for key, value in metadata.items()}
    useless = useless_options(Field.from_arrow(pa.field("c", arrow_type)), "c", given)
    return {key: value for key, value in metadata.items() if key.encode() not in useless}
