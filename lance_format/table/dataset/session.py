"""What several tables, or several openings of one, keep in memory together."""

from __future__ import annotations

from lance_format.arguments import checked_methods
from lance_format.file import DEFAULT_CACHE_BYTES, INDEX_SHARE, SearchCache


@checked_methods
class Session:
    """Caches for tables that are opened with it: of ends of data files, statistics and places of rows, and of indices.

    A table that is opened again reads none of these again. Forked processes start with an empty one.

    Parameters
    ----------
    index_cache_size_bytes : int, optional
        Size of the cache of indices; by default four times that of the other.
    metadata_cache_size_bytes : int, optional
        Size of the other cache; 64 MiB by default.

    Raises
    ------
    InvalidInputError
        If a size is not a whole number from 0 on.
    """

    def __init__(self, index_cache_size_bytes: int | None = None, metadata_cache_size_bytes: int | None = None) -> None:
        size = DEFAULT_CACHE_BYTES if metadata_cache_size_bytes is None else metadata_cache_size_bytes
        self._cache = SearchCache(
            size, size * INDEX_SHARE if index_cache_size_bytes is None else index_cache_size_bytes
        )

    @classmethod
    def of(cls, cache: SearchCache) -> Session:
        """Return the session of a cache."""
        session = cls.__new__(cls)
        session._cache = cache
        return session

    def __repr__(self) -> str:
        sizes = self._cache.of_indices.capacity_bytes, self._cache.capacity_bytes
        return "Session(index_cache_size_bytes={}, metadata_cache_size_bytes={})".format(*sizes)

    @property
    def cache(self) -> SearchCache:
        """The cache of data files, which has that of indices."""
        return self._cache

    def size_bytes(self) -> int:
        """Return the size of what is in the caches."""
        return sum(cache.size_bytes for cache in {self._cache, self._cache.of_indices})

    def is_same_as(self, other: Session) -> bool:
        """Return whether both have the same caches."""
        return self._cache is other.cache
