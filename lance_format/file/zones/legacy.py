"""Statistics of files of format 0.1: bounds of each batch of rows, which are its zones.

File format document, "Statistics". They are stored like the file itself (`file/container/legacy_metadata.py`), as one
batch. It has a row per batch of the file, and a column per field with statistics, named by the field's id:

    <field id>: struct<null_count: int64, min_value, max_value>

The format loses nulls: null numbers are read as zeros, and empty strings as nulls. Bounds and counts are those of the
written values. They hold for the values read if no value was null and no string empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_format.errors import CorruptFileError
from lance_format.expressions.nodes import FieldPath
from lance_format.expressions.zones import ZoneStatistics
from lance_format.file.container.legacy_metadata import LegacyMetadata
from lance_format.file.zones.reading import EmbeddedFile, ZoneRequest, check_statistics, statistics_of, structs_of
from lance_format.file.zones.seeds import Seed
from lance_format.half_floats import if_else
from lance_format.masks import is_text


class LegacyZoneReader:
    """Reads the statistics of a file.

    Parameters
    ----------
    metadata : LegacyMetadata
        Of the file.
    open_file : callable
        Opens the statistics as if they were a file.
    """

    def __init__(self, metadata: LegacyMetadata, open_file: Callable[[LegacyMetadata], EmbeddedFile]) -> None:
        self._metadata = metadata
        self._open_file = open_file

    def read(self, requests: Sequence[ZoneRequest]) -> dict[FieldPath, ZoneStatistics]:
        """Return the statistics of those columns that have them.

        Raises
        ------
        CorruptFileError
            If they are malformed, or contradict themselves or the file.
        """
        statistics = self._metadata.statistics
        if statistics is None or not requests:
            return {}
        names = {request: str(self._metadata.first_field + request.column) for request in requests}
        columns = structs_of(self._open_file(statistics), set(names.values()))
        found: dict[FieldPath, ZoneStatistics] = {}
        for request, name in names.items():
            struct = columns.get(name)
            if struct is None:
                continue
            if len(struct) != self._metadata.batch_rows.size:
                raise CorruptFileError(f"there are statistics of {len(struct)} batches")
            if pa.types.is_decimal(request.arrow_type):
                struct = _with_decimals(struct, request.arrow_type)
            known = _as_read(statistics_of(struct, request.arrow_type, self._metadata.batch_rows))
            found[request.path] = check_statistics(known, self._metadata.num_rows)
        return found

    def read_seed(self, request: ZoneRequest, rows_per_zone: int) -> Seed | None:
        """Return None: such files have no seeds."""
        del request, rows_per_zone
        return None


def _with_decimals(struct: pa.StructArray, arrow_type: pa.DataType) -> pa.StructArray:
    """Return statistics whose bounds are decimals instead of their bytes, and null if they have too many digits."""
    columns = dict(zip(struct.type.names, struct.flatten(), strict=True))
    for name, bounds in columns.items():
        if not pa.types.is_fixed_size_binary(bounds.type) or bounds.type.bit_width != arrow_type.bit_width:
            continue
        numbers = [int.from_bytes(value, "little", signed=True) for value in bounds.to_pylist()]
        mask = np.array([abs(number) >= 10**arrow_type.precision for number in numbers], np.bool_)
        data = pa.py_buffer(b"".join(bounds.to_pylist()))
        valid = pa.py_buffer(np.packbits(~mask, bitorder="little"))
        columns[name] = pa.Array.from_buffers(arrow_type, len(bounds), [valid, data])
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _as_read(written: ZoneStatistics) -> ZoneStatistics:
    """Return the statistics that hold for the values read."""
    holds = pa.array(written.num_nulls == 0)
    if is_text(written.lower.type):
        not_empty = pc.greater(pc.binary_length(written.lower), 0)
        holds = pc.and_(holds, pc.fill_null(not_empty, False))
    nothing = pa.scalar(None, written.lower.type)
    lower, upper = (if_else(holds, bound, nothing) for bound in (written.lower, written.upper))
    num_nulls = np.where(holds.to_numpy(zero_copy_only=False), 0, -1)
    return ZoneStatistics(written.num_rows, num_nulls, lower, upper, exact=False)
