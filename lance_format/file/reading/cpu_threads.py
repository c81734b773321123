"""Number of threads that decode pages."""

from __future__ import annotations

import os

import pyarrow as pa

from lance_format.errors import InvalidInputError

_VARIABLE = "LANCE_CPU_THREADS"


def cpu_threads() -> int:
    """Return the number of threads that decode pages concurrently.

    The environment variable `LANCE_CPU_THREADS` sets it. The default is Arrow's number of threads, at most the number
    of cores of the process. Arrow uses one thread per core unless `OMP_NUM_THREADS` or `pyarrow.set_cpu_count` say
    otherwise. Spark sets `OMP_NUM_THREADS` to the cores of a task.

    Raises
    ------
    InvalidInputError
        If the variable is no integer from 1 on.
    """
    asked = os.environ.get(_VARIABLE, "").strip()
    if not asked:
        return max(1, min(int(pa.cpu_count()), _cores()))
    if not asked.isdecimal() or int(asked) < 1:
        raise InvalidInputError(f"{_VARIABLE} is {asked!r}; a whole number from 1 on is needed")
    return int(asked)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
