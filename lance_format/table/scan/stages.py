"""Order in which the columns of a filtered scan are read: those of the filter first, the others for passing rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_format.datatypes import Field, Schema
from lance_format.errors import NotSupportedError
from lance_format.file.columns.dictionaries import concat
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.fragments.column_parts import combine_parts, remainder
from lance_format.table.fragments.open_files import empty_columns_batch
from lance_format.table.scan.first_terms import FirstTerms, is_cheap
from lance_format.table.scan.joined_rows import JoinedRows
from lance_format.table.scan.projection import Projection
from lance_format.table.scan.scanned_fragment import Window


@dataclass(frozen=True, slots=True)
class Stages:
    """Order in which columns are read.

    Parameters
    ----------
    projection : Projection
    kept : Schema
        Columns of the filter that outputs need.
    late : Schema
        Other columns that outputs need.
    are_whole : bool
        Whether outputs need their columns without narrowing.
    first : FirstTerms, optional
        None if the filter has no terms to test first.
    keeps_dictionaries : bool
        Whether outputs may be dictionaries of strings.
    is_cheap : bool
        Whether testing further rows costs little; see `is_cheap`.
    """

    projection: Projection
    kept: Schema
    late: Schema
    are_whole: bool
    first: FirstTerms | None = None
    is_cheap: bool = False
    keeps_dictionaries: bool = False

    @classmethod
    def of(cls, projection: Projection) -> Stages:
        """Divide the columns of a projection into stages."""
        outputs, tested = projection.output_source, projection.filter_source
        there = tested.by_name()
        whole = projection.source.by_name()
        wanted = set(outputs.names)
        rests = (remainder(field, there[field.name]) if field.name in there else field for field in outputs.fields)
        kept = tuple(field for field in tested.fields if field.name in wanted)
        return cls(
            projection,
            dataclasses.replace(tested, fields=kept),
            dataclasses.replace(outputs, fields=tuple(field for field in rests if field is not None)),
            all(whole[field.name] == field for field in outputs.fields),
            None if projection.filter is None else FirstTerms.of(projection.filter, tested),
            projection.filter is not None and is_cheap(projection.filter, tested),
        )

    def passing(self, found: JoinedRows, kept: Schema, window: Window) -> JoinedRows:
        """Return the rows that pass the filter and the window, without fragments that have none.

        Parameters
        ----------
        found : JoinedRows
        kept : Schema
            The columns to return.
        window : Window
            Moved by the rows that pass the filter.
        """
        batch = found.batch
        mask = self.projection.mask(self.projection.tested(batch, *found.parts))
        batch = batch.select(kept.names) if kept.fields else empty_columns_batch(batch.num_rows)
        passed = JoinedRows(batch, found.parts).filter(mask)
        return passed.slice(*window.pass_rows(passed.num_rows))

    def join(self, kept: pa.RecordBatch, late: pa.RecordBatch | None = None) -> pa.RecordBatch:
        """Return all columns that outputs need, of the same rows."""
        fields = self.projection.output_source.fields
        if not fields:
            return empty_columns_batch(kept.num_rows)
        stages = [(self.kept, kept)] + ([] if late is None else [(self.late, late)])
        by_name = [(schema.by_name(), batch) for schema, batch in stages]
        arrays = []
        for field in fields:
            parts: list[tuple[Field, pa.Array]] = [
                (known[field.name], batch.column(field.name)) for known, batch in by_name if field.name in known
            ]
            arrays.append(combine_parts(field, parts, kept.num_rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.projection.output_source.to_storage())


def concatenated(batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """Join batches into one if its arrays can hold them."""
    if len(batches) < 2:
        return batches
    num_rows = sum(batch.num_rows for batch in batches)
    if not batches[0].num_columns:
        return [empty_columns_batch(num_rows)]
    columns = [[batch.column(index) for batch in batches] for index in range(batches[0].num_columns)]
    try:
        arrays = [concat(parts) for parts in columns]
    except NotSupportedError:  # 32-bit offsets, or the keys of dictionaries, overflow.
        return batches
    return [pa.RecordBatch.from_arrays(arrays, schema=batches[0].schema)]


def of_size(batches: Sequence[pa.RecordBatch], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Cut batches into pieces of at most a size, and combine small ones."""
    pending: list[pa.RecordBatch] = []
    num_rows = 0
    for batch in batches:
        for start in range(0, batch.num_rows, batch_size):
            piece = batch.slice(start, batch_size)
            if num_rows + piece.num_rows > batch_size:
                yield from concatenated(pending)
                pending, num_rows = [], 0
            pending.append(piece)
            num_rows += piece.num_rows
    yield from concatenated(pending)
