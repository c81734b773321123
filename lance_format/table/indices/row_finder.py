"""Indices that name rows: what the kinds have in common.

An index names the rows of the fragments in its bitmap by their ids. Ids of rows that were deleted since stay in it. It
answers a predicate over its column, perhaps with further rows, or not at all: where the answer would be many rows,
scanning is faster.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyroaring

from lance_format.errors import CorruptFileError, InvalidInputError
from lance_format.expressions import BoundExpression, FieldPath, filter_mask
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.versions.table_version import TableVersion

RowIds = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class KnownForm:
    """The versions of the form of a kind that are known here.

    Parameters
    ----------
    newest : int
        The latest.
    addresses : int
        The version from which on indices name addresses also in tables with stable row ids.
    """

    newest: int = 0
    addresses: int = 1

    def names_ids(self, table: TableVersion, index: IndexMetadata) -> bool:
        """Return whether an index names rows by their stable ids rather than addresses."""
        return table.manifest.stable_row_ids and index.message.index_version < self.addresses

    def check(self, index: IndexMetadata) -> None:
        """Check that an index is of a known form.

        Raises
        ------
        UnusableError
            If it is not; see `is_plain`.
        """
        if not is_plain(index, self.newest):
            raise UnusableError(f"it is of version {index.message.index_version}, or has unknown parameters")


@dataclass(frozen=True, slots=True)
class Question:
    """A predicate over the column of an index.

    Parameters
    ----------
    predicate : BoundExpression
        Reads this column only.
    value_type : pa.DataType
    most_rows : int
        Number of rows from which on there is no answer.
    """

    predicate: BoundExpression
    value_type: pa.DataType
    most_rows: int

    @property
    def path(self) -> FieldPath:
        """The column."""
        return self.predicate.columns[0]

    def holds_for(self, values: pa.Array) -> npt.NDArray[np.bool_]:
        """Return for each value whether the predicate is true.

        Raises
        ------
        UnusableError
            If the predicate has no value for one of them, such as `10 / a = 2` for 0. It may be that of deleted rows,
            or of rows that the scan leaves out, so the rows themselves have to be tested.
        """
        column = values
        for name in reversed(self.path[1:]):
            column = pa.StructArray.from_arrays([column], [name])
        try:
            mask = filter_mask(self.predicate, pa.record_batch([column], names=[self.path[0]]))
        except InvalidInputError as error:
            raise UnusableError(f"it may hold values of deleted rows: {error}") from error
        return np.asarray(mask.to_numpy(zero_copy_only=False))


def is_plain(index: IndexMetadata, newest: int = 0) -> bool:
    """Return whether an index that names rows is of the form that is known here.

    Parameters
    ----------
    index : IndexMetadata
    newest : int
        The latest version of the form that the caller knows; this library makes version 0.
    """
    return not index.message.index_details.value and is_of_version(index, newest)


def is_of_version(index: IndexMetadata, newest: int) -> bool:
    """Return whether an index is of one column, tells its fragments, and is of a known version of the form of its kind.

    Parameters
    ----------
    index : IndexMetadata
    newest : int
        The latest version that the caller knows.
    """
    is_known = index.message.index_version <= newest
    return is_known and index.fragment_ids is not None and len(index.fields) == 1


def unsigned(column: pa.Array, path: str) -> RowIds:
    """Return the ids in a column of a file, `uint64[num_rows]`.

    Raises
    ------
    CorruptFileError
        If one is null.
    """
    if column.null_count:
        raise CorruptFileError("the id of a row is null", path=path)
    return np.asarray(column.to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True, eq=False)
class FoundRows:
    """The answer of an index.

    Parameters
    ----------
    ids : uint64[num_ids]
        The ids of rows outside of which a predicate does not hold, in any order.
    is_exact : bool
        Whether it holds for all of them, but for deleted ones.
    """

    ids: RowIds
    is_exact: bool


def found_in(rows: pyroaring.BitMap64 | None, most: int, *, is_exact: bool) -> FoundRows | None:
    """Return the rows of a bitmap; None if there is none, or it has too many.

    Parameters
    ----------
    rows : pyroaring.BitMap64, optional
        Their ids.
    most : int
        Maximum number of them.
    is_exact : bool
        See `FoundRows`.
    """
    if rows is None or len(rows) > most:
        return None
    return FoundRows(np.frombuffer(rows.to_array(), np.uint64), is_exact)


class UnusableError(Exception):
    """The index is of a form that is not known here."""


class Finder(Protocol):
    """Finds rows by an index of one kind."""

    def __call__(self, table: TableVersion, index: IndexMetadata, question: Question) -> FoundRows | None:
        """Return rows outside of which a predicate does not hold; None if they may be too many.

        Parameters
        ----------
        table : TableVersion
        index : IndexMetadata
        question : Question

        Raises
        ------
        UnusableError
            If the index is of an unknown form.
        CorruptFileError
            If a file is malformed, or contradicts another one.
        DatasetNotFoundError
            If a file is missing.
        """
