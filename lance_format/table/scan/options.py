"""The options of a scan, as one validated value."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.blob_fields import BlobHandling, read_schema
from lance_format.datatypes import Schema
from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.fragments.batch_rows import BATCH_BYTES, BATCH_ROWS
from lance_format.table.fragments.row_columns import ROW_ADDRESS, ROW_ID
from lance_format.table.scan.metrics import MetricsCallback
from lance_format.table.scan.projection import Columns, Filter, Projection, plan_projection

_BATCH_SIZE_VARIABLE = "LANCE_DEFAULT_BATCH_SIZE"
_MAX_BATCH_SIZE = 2**31 - 1
_UNSUPPORTED = {
    "index_segments": "all parts of an index are used",
}
DEFAULT_RRF_K = 60
_SWITCHES = (
    "with_row_id",
    "with_row_address",
    "use_scalar_index",
    "strict_batch_size",
    "include_deleted_rows",
    "prefilter",
    "fast_search",
    "disable_scoring_autoprojection",
)


@checked_methods
@dataclass(frozen=True, slots=True)
class ColumnOrdering:
    """Order of rows by one column.

    Parameters
    ----------
    column_name : str
        A column, or a dotted path of a field below structs.
    ascending : bool
    nulls_first : bool
    """

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


OrderBy: TypeAlias = Sequence[ColumnOrdering | str]


class ScanTuning(TypedDict, total=False):
    """Arguments of pylance's scanner that this library ignores or refuses."""

    batch_readahead: int | None
    fragment_readahead: int | None
    scan_in_order: bool | None
    use_stats: bool | None
    io_buffer_size: int | None
    late_materialization: bool | list[str] | None
    index_segments: Any


class ScanKeywords(ScanTuning, total=False):
    """Keyword arguments of a scan besides columns and filter; see `LanceDataset.scanner`."""

    limit: int | None
    offset: int | None
    batch_size: int | None
    batch_size_bytes: int | None
    fragments: Iterable[Any] | None
    with_row_id: bool | None
    with_row_address: bool | None
    blob_handling: str | None
    order_by: OrderBy | None
    scan_stats_callback: MetricsCallback | None
    use_scalar_index: bool | None
    strict_batch_size: bool | None
    include_deleted_rows: bool | None
    nearest: Mapping[str, Any] | None
    full_text_query: Any
    prefilter: bool | None
    fast_search: bool | None
    disable_scoring_autoprojection: bool | None
    rrf_k: int | None


class ScanArguments(ScanKeywords, total=False):
    """All arguments of a scan."""

    columns: Columns | None
    filter: Filter | None


class PandasKeywords(TypedDict, total=False):
    """Keyword arguments of `pyarrow.Table.to_pandas`."""

    memory_pool: pa.MemoryPool | None
    categories: Iterable[str] | None
    strings_to_categorical: bool
    zero_copy_only: bool
    integer_object_nulls: bool
    date_as_object: bool
    timestamp_as_object: bool
    use_threads: bool
    deduplicate_objects: bool
    ignore_metadata: bool
    safe: bool
    split_blocks: bool
    self_destruct: bool
    maps_as_pydicts: str | None
    types_mapper: Callable[[pa.DataType], Any] | None
    coerce_temporal_nanoseconds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """The rows and columns that a scan reads.

    Parameters
    ----------
    columns : sequence of str, mapping of str to str, or pa.Schema, optional
        Names of columns, of fields below them, and of row columns; or SQL expressions by output name. By default all
        columns of the table.
    filter : str, pyarrow.compute.Expression or Expression, optional
        Condition on the rows to read, by default all.
    limit : int, optional
        Maximum number of rows, by default all.
    offset : int
        Number of rows to skip.
    batch_size : int, optional
        Maximum number of rows per batch. By default the environment variable `LANCE_DEFAULT_BATCH_SIZE`, or 8192.
    batch_size_bytes : int, optional
        Approximate maximum size of a batch in memory. By default 64 MiB, or any if `batch_size` is given.
    fragments : sequence of FragmentMetadata, optional
        Fragments of the table, by default all.
    with_row_id, with_row_address : bool
        Whether the last columns are `_rowid` and `_rowaddr`.
    blob_handling : str, optional
        The form of blob columns.
    order_by : sequence of ColumnOrdering or str
        The sort columns, by default none.
    scan_stats_callback : callable, optional
        Called with the `ScanMetrics` of every scan when it ends.
    use_scalar_index : bool
        Whether to skip rows that cannot match the filter according to indices.
    strict_batch_size : bool
        Whether all batches except the last have `batch_size` rows.
    include_deleted_rows : bool
        Whether to return deleted rows too.
    nearest : mapping of str to object, optional
        A search for nearest neighbours, which selects the rows and adds `_distance`.
    full_text_query : str, mapping of str to object, or FullTextQuery, optional
        The text to search for; see `lance_format.query`. By default there is no search. With `nearest` the rows of both
        searches are combined.
    prefilter : bool
        Whether the search only considers rows that pass the filter.
    fast_search : bool
        Whether the search leaves out fragments that its index does not cover.
    disable_scoring_autoprojection : bool
        Whether `_distance`, `_score` and `_relevance_score` are returned only if `columns` has them.
    rrf_k : int
        What is added to the ranks of two searches, by whose reciprocals rows are ranked.

    Raises
    ------
    InvalidInputError
        If an option is invalid. NotSupportedError If deleted rows are to be sorted or searched.
    """

    columns: Columns | None = None
    filter: Filter | None = None
    limit: int | None = None
    offset: int = 0
    batch_size: int | None = None
    batch_size_bytes: int | None = None
    fragments: Sequence[FragmentMetadata] | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    blob_handling: str | None = None
    order_by: OrderBy = ()
    scan_stats_callback: MetricsCallback | None = None
    use_scalar_index: bool = True
    strict_batch_size: bool = False
    include_deleted_rows: bool = False
    nearest: Mapping[str, Any] | None = None
    full_text_query: Any = None
    prefilter: bool = False
    fast_search: bool = False
    disable_scoring_autoprojection: bool = False
    rrf_k: int = DEFAULT_RRF_K

    def __post_init__(self) -> None:
        for name, value in (("Limit", self.limit), ("Offset", self.offset)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise InvalidInputError(f"{name} must be non-negative, and a whole number; it is {value!r}")
        for name, size in (("batch_size", self.batch_size), ("batch_size_bytes", self.batch_size_bytes)):
            if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
                raise InvalidInputError(f"{name} is {size!r}; a whole number from 1 on is needed")
        if self.batch_size_bytes is not None and self.strict_batch_size is True:
            raise InvalidInputError("strict_batch_size and batch_size_bytes exclude each other: name one of them")
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise InvalidInputError(f"{name} is {getattr(self, name)!r}; True or False is needed")
        if self.scan_stats_callback is not None and not callable(self.scan_stats_callback):
            raise InvalidInputError(f"scan_stats_callback is {self.scan_stats_callback!r}; a function is needed")
        if self.include_deleted_rows and self.order_by:
            raise NotSupportedError("include_deleted_rows is not supported with order_by: sort the result")
        if isinstance(self.rrf_k, bool) or not isinstance(self.rrf_k, int) or not 0 <= self.rrf_k < 2**53:
            raise InvalidInputError(f"rrf_k is {self.rrf_k!r}; a whole number from 0 on is needed")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ScanOptions:
        """Return options by their names. None stands for the default.

        Parameters
        ----------
        given : mapping of str to object
            Options by name. Tuning arguments of pylance's scanner are ignored.

        Raises
        ------
        InvalidInputError
            If an option is unknown or invalid.
        NotSupportedError
            If the options sort or search deleted rows.
        """
        chosen: dict[str, Any] = {}
        for name, value in given.items():
            if name in _UNSUPPORTED:
                if value is not None and value is not False:
                    raise NotSupportedError(f"{name} is not supported: {_UNSUPPORTED[name]}")
            elif name not in cls.__slots__:
                if name not in ScanTuning.__annotations__:
                    raise InvalidInputError(f"a scanner has no argument {name!r}")
            elif value is not None:
                chosen[name] = value
        return cls(**chosen)

    def project(self, table: Schema) -> Projection:
        """Plan the columns and the filter, given the columns of the table."""
        wanted = {ROW_ID: self.with_row_id, ROW_ADDRESS: self.with_row_address}
        extra = [name for name in wanted if wanted[name]]
        columns = self.columns
        if extra and isinstance(columns, list | tuple):
            columns = [name for name in columns if name not in extra]
        stored = read_schema(table, BlobHandling.parse(self.blob_handling))
        return plan_projection(stored, columns, self.filter, extra=extra)

    @property
    def batch_rows(self) -> int:
        """Maximum number of rows per batch, with the default filled in."""
        return min(_default_batch_size() if self.batch_size is None else self.batch_size, _MAX_BATCH_SIZE)

    @property
    def batch_bytes(self) -> int | None:
        """Approximate maximum size of a batch in memory; None if only its rows are limited."""
        if self.batch_size_bytes is not None or self.batch_size is not None or self.strict_batch_size:
            return self.batch_size_bytes
        return BATCH_BYTES


def _default_batch_size() -> int:
    text = os.environ.get(_BATCH_SIZE_VARIABLE, str(BATCH_ROWS))
    try:
        found = int(text)
    except ValueError:
        found = 0
    if found < 1:
        raise InvalidInputError(f"{_BATCH_SIZE_VARIABLE} is {text!r}; a whole number from 1 on is needed")
    return found
