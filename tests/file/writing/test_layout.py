"""Files with the same columns share what follows from these; all else is their own."""

from __future__ import annotations

from pathlib import Path

import lance.file
import pyarrow as pa
import pytest

from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.file import LanceFileReader, LanceFileWriter
from lance_format.file.writing.layout import layout_of
from lance_format.version import FileVersion


def test_alike() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), metadata={"k": "1"}), pa.field("s", pa.struct({"b": pa.string()}))])
    known = layout_of(Schema.from_arrow(schema), FileVersion.V2_1)
    assert layout_of(Schema.from_arrow(schema), FileVersion.V2_1) is known
    others = [
        schema.with_metadata({"k": "1"}),
        schema.set(0, schema.field(0).with_metadata({"k": "2"})),
        schema.set(0, schema.field(0).with_nullable(False)),
    ]
    for other in others:
        assert layout_of(Schema.from_arrow(other), FileVersion.V2_1) is not known
    assert layout_of(Schema.from_arrow(schema), FileVersion.V2_2) is not known
    assert layout_of(Schema.from_arrow(schema, first_id=5), FileVersion.V2_1) is not known


def test_metadata_is_that_of_each_file(tmp_path: Path) -> None:
    for number in (1, 2, 1):
        field = pa.field("a", pa.int64(), metadata={"unit": str(number)})
        schema = pa.schema([field], metadata={"number": str(number)})
        path = str(tmp_path / f"{number}.lance")
        with LanceFileWriter(path, schema) as writer:
            writer.write_batch(pa.record_batch([pa.array([number])], schema=schema))
            writer.add_schema_metadata("more", str(number))
        for reader in (LanceFileReader, lance.file.LanceFileReader):
            found = reader(path).metadata().schema
            assert found.field("a").metadata == {b"unit": str(number).encode()}
            assert found.metadata[b"number"] == found.metadata[b"more"] == str(number).encode()


def test_refusals_are_repeated(tmp_path: Path) -> None:
    wrong = pa.schema([pa.field("a", pa.int64(), metadata={"lance-encoding:compression": "middle-out"})])
    nested = pa.schema([pa.field("m", pa.map_(pa.string(), pa.int64()))])
    right = pa.schema([pa.field("a", pa.int64())])
    for number in range(2):
        with pytest.raises(InvalidInputError, match="middle-out"):
            LanceFileWriter(str(tmp_path / f"{number}.lance"), wrong)
        with pytest.raises(NotSupportedError, match=r"write 2\.2"):
            LanceFileWriter(str(tmp_path / f"{number}.lance"), nested, version="2.1")
        LanceFileWriter(str(tmp_path / f"{number}.lance"), right).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.lance", "1.lance"]
