"""What several tables, or several openings of one, keep in memory together."""

from __future__ import annotations

from lance_format.arguments import checked_methods
from lance_format.file import DEFAULT_CACHE_BYTES, SearchCache


@checked_methods
class Session:
    """A cache for tables that are opened with it: ends of data files, statistics, and where rows are.

    A table that is opened again reads none of these again. Forked processes start with an empty one.

    Parameters
    ----------
    index_cache_size_bytes : int, optional
        An argument of pylance, accepted and ignored: indices are kept in the same cache.
    metadata_cache_size_bytes : int, optional
        Size of the cache; 64 MiB by default.

    Raises
    ------
    InvalidInputError
        If the size is not a whole number from 0 on.
    """

    def __init__(self, index_cache_size_bytes: int | None = None, metadata_cache_size_bytes: int | None = None) -> None:
        del index_cache_size_bytes
        self._cache = SearchCache(
            DEFAULT_CACHE_BYTES if metadata_cache_size_bytes is None else metadata_cache_size_bytes
        )

    @classmethod
    def of(cls, cache: SearchCache) -> Session:
        """Return the session of a cache."""
        session = cls.__new__(cls)
        session._cache = cache
        return session

    def __repr__(self) -> str:
        return f"Session(metadata_cache_size_bytes={self._cache.capacity_bytes})"

    @property
    def cache(self) -> SearchCache:
        """The cache."""
        return self._cache

    def size_bytes(self) -> int:
        """Return the size of what is in the cache."""
        return self._cache.size_bytes

    def is_same_as(self, other: Session) -> bool:
        """Return whether both have the same cache."""
        return self._cache is other.cache
