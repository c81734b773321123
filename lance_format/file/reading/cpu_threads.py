"""Number of threads that decode pages."""

from __future__ import annotations

import os

import pyarrow as pa

from lance_format.errors import InvalidInputError

_VARIABLE = "LANCE_CPU_THREADS"


def cpu_threads() -> int:
    """Return how many threads decode pages at once.

    The environment variable `LANCE_CPU_THREADS` says it. Without it there are as many as Arrow would use, which is one
    a core unless `OMP_NUM_THREADS` or `pyarrow.set_cpu_count` say otherwise, but not more than the process has cores.
    Spark sets `OMP_NUM_THREADS` to the cores of a task.

    Raises
    ------
    InvalidInputError
        If the variable is no whole number from 1 on.
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
