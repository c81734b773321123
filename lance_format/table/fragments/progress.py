"""Observation of the progress of a write, per fragment."""

from __future__ import annotations

import abc

from lance_format.table.format.fragment import FragmentMetadata


class FragmentWriteProgress(abc.ABC):
    """Observer of a write. An exception of its methods ends the write."""

    @abc.abstractmethod
    def begin(self, fragment: FragmentMetadata) -> None:
        """Handle the beginning of a fragment. Its data file has a name, but no fields or rows yet."""

    @abc.abstractmethod
    def complete(self, fragment: FragmentMetadata) -> None:
        """Handle a fragment that is written, but not committed."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Ignores all events."""

    def begin(self, fragment: FragmentMetadata) -> None:
        """See `FragmentWriteProgress`."""

    def complete(self, fragment: FragmentMetadata) -> None:
        """See `FragmentWriteProgress`."""
