"""Items of Arrow lists, and the lists that have them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def items_of(lists: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the items of lists, and for each the index of its list.

    Items below null lists are left out. Arrow's `list_parent_indices` counts them, and its `list_flatten` does not.

    Parameters
    ----------
    lists : pa.Array
        Lists of any type.
    """
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pc.list_flatten(lists), np.repeat(np.arange(len(lists), dtype=np.int64), sizes)
