"""Random columns in both directions: every type, nulls, sizes, nesting, several pages, compression by metadata."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass

import lance.file
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from lance_format import InvalidInputError
from lance_format.file import LanceFileReader, LanceFileWriter
from tests.arrays import FLAT_TYPES, NULLS, STYLES, make_array

_FIXED = [one for one in FLAT_TYPES if not t.is_null(one) and (t.is_primitive(one) or t.is_fixed_size_binary(one))]
_KEYS = [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64()]
_ITEMS = [pa.string(), pa.large_string(), pa.binary(), pa.int64(), pa.float64()]
_VECTORS = st.builds(pa.list_, st.sampled_from(_FIXED), st.integers(1, 9))
_LEAVES = st.one_of(
    st.sampled_from(FLAT_TYPES),
    _VECTORS,
    st.builds(pa.list_, _VECTORS, st.integers(1, 3)),
    st.builds(pa.dictionary, st.sampled_from(_KEYS), st.sampled_from(_ITEMS)),
)
_TYPES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(pa.list_, inner),
        st.builds(pa.large_list, inner),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda types: pa.struct([(f"f{place}", one) for place, one in enumerate(types)])
        ),
    ),
    max_leaves=4,
)
_WHOLE_BYTES = [one for one in _FIXED if not t.is_boolean(one)]
_PACKED_ITEMS = st.one_of(
    st.sampled_from(_WHOLE_BYTES), st.builds(pa.list_, st.sampled_from(_WHOLE_BYTES), st.integers(1, 9))
)
_PACKED = st.lists(_PACKED_ITEMS, min_size=1, max_size=4).map(
    lambda types: pa.struct([pa.field(f"f{place}", one, nullable=False) for place, one in enumerate(types)])
)


@dataclass
class _Column:
    arrow_type: pa.DataType
    metadata: dict[str, str]


@st.composite
def _columns(draw: st.DrawFn, version: str) -> _Column:
    if draw(st.integers(0, 7)) == 0:
        kinds = _PACKED.filter(lambda one: version == "2.0" or not any(t.is_fixed_size_list(f.type) for f in one))
        return _Column(draw(kinds), {"packed": "true"})
    scheme = draw(st.sampled_from([None, None, "none", "zstd", "lz4", "fsst"]))
    return _Column(draw(_TYPES), {} if scheme is None else {"lance-encoding:compression": scheme})


def _array(rng: random.Random, arrow_type: pa.DataType, num_rows: int, *, null_structs: bool) -> pa.Array:
    """Return values of a type, with nulls in every layer that may have some."""
    nulls = rng.choice(NULLS)
    if not num_rows:
        return pa.nulls(0, arrow_type)
    mask = np.array(
        [nulls == "all nulls" or (nulls == "some nulls" and rng.random() < 0.3) for _ in range(num_rows)], bool
    )
    if t.is_dictionary(arrow_type):
        values = make_array(arrow_type.value_type, num_rows, nulls, "small", rng.randrange(9))
        return values.dictionary_encode().cast(arrow_type)
    if t.is_fixed_size_list(arrow_type):
        items = _array(rng, arrow_type.value_type, num_rows * arrow_type.list_size, null_structs=null_structs)
        return pa.FixedSizeListArray.from_arrays(items, type=arrow_type, mask=pa.array(mask))
    if t.is_struct(arrow_type):
        fields = [_array(rng, field.type, num_rows, null_structs=null_structs) for field in arrow_type]
        is_null = pa.array(mask) if null_structs else None
        return pa.StructArray.from_arrays(fields, fields=list(arrow_type), mask=is_null)
    if t.is_list(arrow_type) or t.is_large_list(arrow_type):
        longest = rng.choice([1, 3, 12])
        sizes = [0 if is_null or rng.random() < 0.2 else rng.randint(1, longest) for is_null in mask]
        items = _array(rng, arrow_type.value_type, sum(sizes), null_structs=null_structs)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64 if t.is_large_list(arrow_type) else np.int32)
        make = pa.LargeListArray if t.is_large_list(arrow_type) else pa.ListArray
        return make.from_arrays(pa.array(offsets), items, type=arrow_type, mask=pa.array(mask))
    return make_array(arrow_type, num_rows, nulls, rng.choice(STYLES), rng.randrange(9))


def _packed(rng: random.Random, arrow_type: pa.StructType, num_rows: int) -> pa.Array:
    fields = []
    for field in arrow_type:
        is_vector = t.is_fixed_size_list(field.type)
        size = field.type.list_size if is_vector else 1
        items = make_array(field.type.value_type if is_vector else field.type, num_rows * size, NULLS[0], "random")
        fields.append(pa.FixedSizeListArray.from_arrays(items, type=field.type) if is_vector else items)
    return pa.StructArray.from_arrays(fields, fields=list(arrow_type))


def _same(found: pa.Table, expected: pa.Table) -> bool:
    """Compare values; keys of dictionaries may differ."""
    if found.equals(expected):
        return True
    one, other = (
        pa.concat_arrays([_without_dictionaries(chunk) for chunk in table["c"].chunks]) for table in (found, expected)
    )
    return bool(one.equals(other))


def _without_dictionaries(array: pa.Array) -> pa.Array:
    if t.is_dictionary(array.type):
        return array.dictionary_decode()
    if t.is_struct(array.type):
        fields = [_without_dictionaries(field) for field in array.flatten()]
        return pa.StructArray.from_arrays(fields, names=array.type.names, mask=array.is_null())
    if t.is_list(array.type) or t.is_large_list(array.type):
        sizes = pc.fill_null(pc.list_value_length(array), 0)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int64())
        return pa.LargeListArray.from_arrays(offsets, _without_dictionaries(array.flatten()), mask=array.is_null())
    return array


def _check(reader: LanceFileReader | lance.file.LanceFileReader, table: pa.Table, rng: random.Random) -> None:
    found = reader.read_all(batch_size=rng.choice([7, 1000, 100_000])).to_table()
    found.validate(full=True)
    assert found.schema.equals(table.schema)
    assert _same(found, table)
    rows = sorted(rng.choices(range(table.num_rows), k=6))
    assert _same(reader.take_rows(sorted(set(rows))).to_table(), table.take(sorted(set(rows))))
    start = rng.randrange(table.num_rows)
    assert _same(reader.read_range(start, table.num_rows - start).to_table(), table.slice(start))


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose arrays are no slices: of structs these make pylance panic."""
    with pa.ipc.new_stream(sink := pa.BufferOutputStream(), batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


def check_column(data: st.DataObject, version: str) -> None:
    """Draw a column, write it with both libraries, and read it with the other one."""
    column = data.draw(_columns(version))
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    num_rows = data.draw(st.sampled_from([1, 2, 40, 300, 1100]))
    if "packed" in column.metadata:
        array = _packed(rng, column.arrow_type, num_rows)
    else:
        array = _array(rng, column.arrow_type, num_rows, null_structs=version != "2.0")
    table = pa.table([array], schema=pa.schema([pa.field("c", array.type, metadata=column.metadata)]))
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/c.lance"
        cache = data.draw(st.sampled_from([None, 1 << 10]))
        for writer_class in (LanceFileWriter, lance.file.LanceFileWriter):
            try:
                with writer_class(path, table.schema, version=version, data_cache_bytes=cache) as writer:
                    for batch in table.to_batches(max_chunksize=data.draw(st.sampled_from([100, 10_000]))):
                        writer.write_batch(batch if writer_class is LanceFileWriter else _copied(batch))
            except InvalidInputError as error:  # Nothing but nulls can be in the column.
                if "would have no effect on values without content" not in str(error):
                    raise
                reject()
            _check(LanceFileReader(path), table, rng)
            if writer_class is LanceFileWriter:
                _check(lance.file.LanceFileReader(path), table, rng)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*they are stored as they are:UserWarning")
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@settings(max_examples=60)
@given(st.data())
def test_both_directions(version: str, data: st.DataObject) -> None:
    check_column(data, version)
