"""`docs/format_support.md` agrees with the registries.

`python -m tests.docs.test_format_support` rewrites its tables.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from lance_format.array_encodings import registry as array_encodings
from lance_format.compression import registry as compressions
from lance_format.compression.codec import Context
from lance_format.datatypes import Field
from lance_format.errors import NotSupportedError
from lance_format.file.columns.leaf_columns import leaves_of
from lance_format.file.columns.storable import writable_leaves
from lance_format.proto import array_encodings_pb2, encodings_pb2
from lance_format.structural import registry as layouts
from lance_format.version import FileVersion
from tests.arrays import FLAT_TYPES

_DOCUMENT = Path(__file__).parents[2] / "docs" / "format_support.md"
_NESTED = [
    pa.struct([("x", pa.int32())]),
    pa.struct([]),
    pa.list_(pa.struct([])),
    pa.list_(pa.int32()),
    pa.large_list(pa.int32()),
    pa.list_(pa.float32(), 4),
    pa.list_(pa.struct([("x", pa.int32())]), 4),
    pa.list_(pa.string(), 4),
    pa.map_(pa.string(), pa.int32()),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int32(), pa.date32()),
]


def _members(message: type) -> list[str]:
    return [member.name for member in message.DESCRIPTOR.oneofs[0].fields]  # type: ignore[attr-defined]


def _versions_table() -> list[str]:
    rows = [f"| {v} | {_mark(v.value.readable)} | {_mark(v.value.writable)} |" for v in FileVersion]
    return ["| version | read | written |", "|---|---|---|", *rows]


def _mark(yes: bool) -> str:
    return "yes" if yes else "no"


def _layouts_table() -> list[str]:
    rows = [
        f"| `{name}` | {_mark(name in layouts.LAYOUTS)} | {layouts.UNSUPPORTED.get(name, '')} |"
        for name in _members(encodings_pb2.PageLayout)
    ]
    return ["| layout | read and written | |", "|---|---|---|", *rows]


def _array_encodings_table() -> list[str]:
    rows = []
    for name in _members(array_encodings_pb2.ArrayEncoding):
        reason = array_encodings.UNSUPPORTED.get(name, array_encodings.LAYERS.get(name, ""))
        is_read = name not in array_encodings.UNSUPPORTED
        rows.append(f"| `{name}` | {_mark(is_read)} | {_mark(name in array_encodings.WRITTEN)} | {reason} |")
    return ["| encoding | read | written | |", "|---|---|---|---|", *rows]


def _compressions_table() -> list[str]:
    rows = ["| encoding | " + " | ".join(context.value for context in Context) + " |", "|---" * 4 + "|"]
    for name in _members(encodings_pb2.CompressiveEncoding):
        cells = []
        for context in Context:
            if (name, context) in compressions.READ:
                cells.append("read, written" if (name, context) in compressions.COMPRESSORS else "read")
            else:
                cells.append(f"no: {compressions.UNSUPPORTED[name, context]}")
        rows.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return rows


def _is(check: Callable[[Field], object], arrow_type: pa.DataType) -> str:
    try:
        check(Field.from_arrow(pa.field("c", arrow_type)))
    except NotSupportedError:
        return "no"
    return "yes"


def _types_table() -> list[str]:
    rows = ["| Arrow type | read | written in 2.0 | in 2.1 | in 2.2 |", "|---|---|---|---|---|"]
    for arrow_type in [*FLAT_TYPES, *_NESTED]:
        if pa.types.is_timestamp(arrow_type) and arrow_type.tz not in (None, "UTC"):
            continue
        checks = [leaves_of, *(partial(writable_leaves, version=v) for v in FileVersion if v.value.writable)]
        rows.append(f"| `{arrow_type}` | " + " | ".join(_is(check, arrow_type) for check in checks) + " |")
    return rows


_TABLES = {
    "versions": _versions_table,
    "layouts": _layouts_table,
    "array encodings": _array_encodings_table,
    "compressions": _compressions_table,
    "types": _types_table,
}


def _expected(text: str) -> str:
    for name, make in _TABLES.items():
        block = "\n".join([f"<!-- {name} -->", *make(), f"<!-- end of {name} -->"])
        before, begin, rest = text.partition(f"<!-- {name} -->")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        assert begin, f"the document has no place for the table of {name}"
        assert end, f"the table of {name} has no end"
        text = before + block + after
    return text


def test_the_document_tells_the_truth() -> None:
    text = _DOCUMENT.read_text()
    assert text == _expected(text), "rewrite the tables: python -m tests.docs.test_format_support"


if __name__ == "__main__":
    _DOCUMENT.write_text(_expected(_DOCUMENT.read_text()))
