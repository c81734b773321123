"""Changes that are planned again after other writers have changed the same rows."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from lance_format import RetryableCommitConflictError

T = TypeVar("T")
_FIRST_PAUSE_SECONDS = 0.1
_LAST_PAUSE_SECONDS = 5.0


def retry(attempt: Callable[[], T], attempts: int) -> T:
    """Repeat a change until no other writer has changed the same rows.

    Parameters
    ----------
    attempt : callable
        Plans the change on the latest version, and commits it.
    attempts : int
        Maximum number of attempts.

    Raises
    ------
    RetryableCommitConflictError
        If each attempt raised it.
    """
    for number in range(1, attempts):
        try:
            return attempt()
        except RetryableCommitConflictError:
            # Waits longer each time, for a random time, so that two changes do not collide again.
            time.sleep(random.uniform(0, min(_FIRST_PAUSE_SECONDS * 2 ** min(number, 10), _LAST_PAUSE_SECONDS)))
    return attempt()
