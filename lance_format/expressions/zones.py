"""Statistics of a column per zone, a run of consecutive rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ZoneStatistics:
    """Bounds and counts of a column, or of a field below structs, per zone.

    The order is that of `values.order`: NaN is the greatest number, and -0.0 equals 0.0. Strings are ordered by their
    bytes.

    Parameters
    ----------
    num_rows : int64[num_zones]
        Number of rows per zone; zones follow each other from row 0 on.
    num_nulls : int64[num_zones]
        Number of nulls per zone; -1 if unknown. Fields below a null struct are null.
    lower, upper : pa.Array
        Of the column's type, that of the values for dictionaries, the storage type for extensions. All values of the
        zone lie within. A null bound is unknown; the upper bound is NaN if NaN may occur. The bounds of a zone with
        only nulls have no meaning.
    exact : bool
        Whether both bounds are values of the zone if it has any, that is, its minimum and maximum.

    Raises
    ------
    InvalidInputError
        If the arrays are not equally long, or the bounds not of one type.
    """

    num_rows: npt.NDArray[np.int64]
    num_nulls: npt.NDArray[np.int64]
    lower: pa.Array
    upper: pa.Array
    exact: bool

    def __post_init__(self) -> None:
        lengths = {len(self.num_rows), len(self.num_nulls), len(self.lower), len(self.upper)}
        if len(lengths) != 1:
            raise InvalidInputError(f"statistics of one column are of {sorted(lengths)} zones; one number is needed")
        if self.lower.type != self.upper.type:
            raise InvalidInputError(f"a column has lower bounds of {self.lower.type}, upper ones of {self.upper.type}")

    @property
    def num_zones(self) -> int:
        """Number of zones."""
        return len(self.num_rows)
