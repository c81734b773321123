"""Whether groups of rows are worth finding: trials tell, and after a futile one rows are passed on for a while."""

from __future__ import annotations

_PASSED_ROWS = 1 << 20
"""Number of rows that are first passed on without being grouped; doubled each time."""
_TRIALS = ((1 << 16, 0.98), (1 << 19, 0.9))
"""Numbers of rows, and the share of groups among them from which they are not worth grouping."""


class Trials:
    """State of a stream of rows that are grouped where that is worth it."""

    def __init__(self) -> None:
        self._passed = 0
        self._pause = _PASSED_ROWS

    def passes(self, num_rows: int) -> bool:
        """Return whether the next rows are passed on without being grouped."""
        if self._passed <= 0:
            return False
        self._passed -= num_rows
        return True

    def pause(self) -> None:
        """Pass rows on, twice as many as the last time."""
        self._passed = self._pause
        self._pause *= 2


def are_futile(num_rows: int, num_groups: int) -> bool:
    """Return whether rows have nearly as many groups."""
    return any(num_rows >= rows and num_groups > share * num_rows for rows, share in _TRIALS)
