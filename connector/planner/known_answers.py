"""Answers that were given about versions of tables, which do not change.

Spark plans a scan several times in a query, and the same queries come again: from dashboards, from notebooks, from
streams. What is asked names the version of the table, and all that is pushed; so an answer stays true as long as the
path leads to the same table. That is looked up each time, as a plan does that is made anew.
"""

from __future__ import annotations

from collections.abc import Callable

from connector.lru_cache import LruCache

_HELD_BYTES = 32 * 1024 * 1024


class KnownAnswers:
    """The answers that were used last, in up to 32 MiB."""

    def __init__(self) -> None:
        self._held: LruCache[str, tuple[str, str]] = LruCache(_HELD_BYTES)

    def find(self, question: str, commit: Callable[[], str | None]) -> str | None:
        """Return the answer to a question, or None if it is not known.

        Parameters
        ----------
        question : str
        commit : callable
            Returns what tells the version that the question is about from all others.
        """
        known = self._held.get(question)
        return known[0][1] if known is not None and known[0][0] == commit() else None

    def keep(self, question: str, commit: str, answer: str) -> None:
        """Keep an answer.

        Parameters
        ----------
        question : str
        commit : str
            Tells the version that the answer is about from all others.
        answer : str
        """
        self._held.put(question, (commit, answer), len(question) + len(commit) + len(answer))
