"""Files that lie in one place, and are right in all others: each number that was once believed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa
import pytest

from lance_format.errors import CorruptFileError, LanceError, NotSupportedError
from lance_format.file import ColumnProjection, FileReader, LanceFileWriter, column_indices
from lance_format.proto import encodings_pb2
from tests.fuzz.damage import Container, MemoryReader, layout_of, open_container, set_layout

NUM_ROWS = 1500
Change = Callable[[Container], None]


def written(path: Path, array: pa.Array, metadata: dict[str, str] | None = None, *, ours: bool = True) -> Container:
    """Return a file of one column, taken apart."""
    table = pa.table([array], schema=pa.schema([pa.field("c", array.type, metadata=metadata)]))
    writer = LanceFileWriter if ours else lance.file.LanceFileWriter
    with writer(str(path / "f.lance"), table.schema, version="2.2") as target:
        for batch in table.to_batches():
            target.write_batch(batch)
    return open_container((path / "f.lance").read_bytes())


def opened(container: Container) -> tuple[FileReader, list[ColumnProjection]]:
    reader = FileReader(MemoryReader(container.build()))
    return reader, [
        ColumnProjection(field, column_indices(reader.schema, reader.version)) for field in reader.schema.fields
    ]


def read(container: Container) -> pa.RecordBatch:
    """Return the first rows, and take some."""
    reader, columns = opened(container)
    reader.take(columns, np.array([0, 5, 6, 7], np.int64))
    return next(reader.read(columns, 0, reader.num_rows, batch_size=100))


def page_of(container: Container) -> tuple[encodings_pb2.PageLayout, Callable[[], None]]:
    """Return the layout of the first page, and what puts it back."""
    page = container.columns[0].pages[0]
    layout = layout_of(page)
    return layout, lambda: set_layout(page, layout)


def set_rows(container: Container, num_rows: int) -> None:
    container.descriptor.length = num_rows
    container.columns[0].pages[0].length = num_rows


@pytest.mark.parametrize("num_rows", [2**48 + 1, 2**63, 2**64 - 1])
def test_more_rows_than_any_file_has(tmp_path: Path, num_rows: int) -> None:
    container = written(tmp_path, pa.nulls(NUM_ROWS, pa.int32()))
    container.columns[0].pages[0].length = num_rows
    with pytest.raises(CorruptFileError, match=str(num_rows)):
        read(container)
    container.descriptor.length = num_rows
    with pytest.raises(CorruptFileError, match=str(num_rows)):
        read(container)


def test_pages_whose_rows_add_up_to_more_than_64_bits(tmp_path: Path) -> None:
    container = written(tmp_path, pa.nulls(NUM_ROWS, pa.int32()))
    column = container.columns[0]
    column.pages.extend([column.pages[0]] * 4)
    for page in column.pages[:4]:
        page.length = 2**62
    with pytest.raises(CorruptFileError, match="at most"):
        read(container)


def test_rows_without_columns(tmp_path: Path) -> None:
    container = written(tmp_path, pa.array(range(NUM_ROWS)))
    del container.descriptor.schema.fields[:]
    with pytest.raises(CorruptFileError, match="1500 rows of 0 columns"):
        read(container)


@pytest.mark.parametrize("num_rows", [2**20, 2**31, 2**40, 2**47])
@pytest.mark.parametrize(
    "array",
    [
        pa.array(np.random.default_rng(0).integers(-(2**62), 2**62, NUM_ROWS)),
        pa.array(np.arange(300)),
        pa.array([row % 3 == 0 for row in range(NUM_ROWS)]),
        pa.array([f"{row * 7919}" for row in range(NUM_ROWS)]),
        pa.array([f"item {row % 7}" for row in range(NUM_ROWS)]),
        pa.array(np.repeat(np.arange(15), 100)),
        pa.array([[1.0, 2.0]] * NUM_ROWS, pa.list_(pa.float32(), 2)),
    ],
    ids=["flat", "packed", "bits", "strings", "dictionary", "runs", "vectors"],
)
def test_a_last_chunk_of_too_many_values(tmp_path: Path, array: pa.Array, num_rows: int) -> None:
    container = written(tmp_path, array)
    layout, put_back = page_of(container)
    layout.mini_block_layout.num_items = num_rows
    put_back()
    set_rows(container, num_rows)
    reader, columns = opened(container)
    with pytest.raises(CorruptFileError):
        reader.take(columns, np.array([num_rows - 1], np.int64))


@pytest.mark.parametrize("num_items", [8, 2**31, 2**32, 2**61, 2**63, 2**64 - 1])
@pytest.mark.parametrize(
    "array",
    [pa.array([f"item {row % 7}" for row in range(NUM_ROWS)]), pa.array((np.arange(NUM_ROWS) * 7919 % 11) * 10**15)],
    ids=["strings", "numbers"],
)
def test_a_dictionary_of_too_many_items(tmp_path: Path, array: pa.Array, num_items: int) -> None:
    container = written(tmp_path, array)
    layout, put_back = page_of(container)
    if num_items == 8 and layout.mini_block_layout.num_dictionary_items >= num_items:
        num_items = 12
    assert layout.mini_block_layout.num_dictionary_items < num_items
    layout.mini_block_layout.num_dictionary_items = num_items
    put_back()
    with pytest.raises(CorruptFileError):
        read(container)


LOGICAL_TYPES = [
    *("decimal:128:99999999999999999999:1", "fixed_size_list:struct:x", "fixed_size_list:struct:0", "list", "map"),
    *(
        "fixed_size_list:" * 2000,
        "fixed_size_list:" * 60 + "int8" + ":2" * 60,
        "fixed_size_list:dict:int8:int8:false:3",
    ),
    *("dict:" * 900 + "int8" + ":int8:false" * 900, "dict:fixed_size_list:int8:3:int8:false", "fixed_size_binary:-1"),
    *("fixed_size_list:null:2", "fixed_size_list:int64:2147483647"),
]


@pytest.mark.parametrize("logical_type", LOGICAL_TYPES, ids=lambda text: text[:40])
@pytest.mark.parametrize(
    "array",
    [pa.array(range(NUM_ROWS)), pa.nulls(NUM_ROWS, pa.int64()), pa.array([{"x": row} for row in range(NUM_ROWS)])],
    ids=["numbers", "nulls", "structs"],
)
def test_types_that_make_no_sense(tmp_path: Path, array: pa.Array, logical_type: str) -> None:
    container = written(tmp_path, array)
    container.descriptor.schema.fields[0].logical_type = logical_type
    with pytest.raises(LanceError):
        read(container)


@pytest.mark.parametrize("logical_type", ["int32", "string", "null", "fixed_size_list:int32:2", "decimal:128:5:1"])
def test_fields_below_a_type_that_has_none(tmp_path: Path, logical_type: str) -> None:
    container = written(tmp_path, pa.array([{"x": row} for row in range(NUM_ROWS)]))
    container.descriptor.schema.fields[0].logical_type = logical_type
    with pytest.raises(CorruptFileError, match="has fields below it"):
        read(container)


@pytest.mark.parametrize("logical_type", ["list", "map", "int32"])
def test_entries_of_a_map_that_are_no_struct(tmp_path: Path, logical_type: str) -> None:
    container = written(tmp_path, pa.array([[("k", row)] for row in range(NUM_ROWS)], pa.map_(pa.string(), pa.int64())))
    container.descriptor.schema.fields[1].logical_type = logical_type
    with pytest.raises(CorruptFileError, match="expected a struct of 2"):
        read(container)


def test_nulls_that_may_not_be_null(tmp_path: Path) -> None:
    container = written(tmp_path, pa.nulls(NUM_ROWS))
    container.descriptor.schema.fields[0].nullable = False
    with pytest.raises(CorruptFileError, match="no type but null"):
        read(container)
    container = written(tmp_path, pa.array([[("k", row)] for row in range(NUM_ROWS)], pa.map_(pa.string(), pa.int64())))
    container.descriptor.schema.fields[2].logical_type = "null"
    container.descriptor.schema.fields[2].nullable = True
    with pytest.raises(CorruptFileError, match="no type but null"):
        read(container)


def test_more_distinct_values_than_indices(tmp_path: Path) -> None:
    container = written(tmp_path, pa.array([f"{row}" for row in range(NUM_ROWS)]))
    container.descriptor.schema.fields[0].logical_type = "dict:string:int8:false"
    with pytest.raises(CorruptFileError, match="more distinct values"):
        read(container)


def test_nulls_of_a_type_too_large_for_any_memory(tmp_path: Path) -> None:
    container = written(tmp_path, pa.nulls(NUM_ROWS, pa.int64()))
    container.descriptor.schema.fields[0].logical_type = "fixed_size_list:int8:2147483647"
    with pytest.raises(NotSupportedError, match="too much memory"):
        read(container)
    array = pa.array([[{"x": row}, {"x": 0}] for row in range(NUM_ROWS)], pa.list_(pa.struct([("x", pa.int32())]), 2))
    container = written(tmp_path, array)
    container.descriptor.schema.fields[0].logical_type = "fixed_size_list:struct:2147483647"
    with pytest.raises(NotSupportedError, match="too many"):
        read(container)


def test_null_vectors_are_decoded_a_few_at_a_time(tmp_path: Path) -> None:
    container = written(tmp_path, pa.nulls(10, pa.list_(pa.float32(), 1000)))
    container.descriptor.schema.fields[0].logical_type = "fixed_size_list:float:100000"
    set_rows(container, 5000)
    reader, columns = opened(container)
    before = pa.total_allocated_bytes()
    batches = reader.read(columns, 0, reader.num_rows, batch_size=10)
    assert next(batches).num_rows == 10
    assert pa.total_allocated_bytes() - before < 100 << 20
    batches.close()  # type: ignore[attr-defined]


def test_a_constant_of_another_width(tmp_path: Path) -> None:
    container = written(tmp_path, pa.array([7] * NUM_ROWS))
    layout, put_back = page_of(container)
    layout.constant_layout.inline_value = bytes(16)
    put_back()
    with pytest.raises(CorruptFileError, match="16 bytes"):
        read(container)


def test_levels_that_take_no_bytes(tmp_path: Path) -> None:
    container = written(tmp_path, pa.array([[]] * NUM_ROWS, pa.list_(pa.int32())))
    layout, put_back = page_of(container)
    constant = layout.constant_layout
    for name in ("rep", "def"):
        packed = getattr(constant, f"{name}_compression").out_of_line_bitpacking
        packed.uncompressed_bits_per_value = 16
        packed.values.flat.bits_per_value = 0
        setattr(constant, f"num_{name}_values", 2**25 - 1)
    container.columns[0].pages[0].buffer_sizes[:] = [2, 2]
    put_back()
    with pytest.raises(CorruptFileError, match="shorter than its number of values"):
        read(container)


def test_rows_that_overlap(tmp_path: Path) -> None:
    container = written(tmp_path, pa.array([f"{row:5}" * 100 for row in range(2000)]))
    page = container.columns[0].pages[0]
    offset, size = page.buffer_offsets[1], page.buffer_sizes[1]
    width = size // 2001
    index = np.frombuffer(container.data[offset : offset + size], f"<u{width}").copy()
    index[6] = index[2000]
    container.data = container.data[:offset] + index.tobytes() + container.data[offset + size :]
    reader, columns = opened(container)
    assert reader.take(columns, np.array([3, 3, 4], np.int64)).num_rows == 3
    with pytest.raises(CorruptFileError, match="lets rows overlap"):
        reader.take(columns, np.array([5, 1000], np.int64))
