"""Outcomes of changes: values with attributes, which are mappings too, as the dicts that pylance returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class ChangeResult(Mapping[str, Any]):
    """The outcome of a change: its fields are attributes, and keys as in the dicts that pylance returns."""

    def __getitem__(self, name: str) -> Any:
        if name not in list(self):
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return (item.name for item in dataclasses.fields(self))

    def __len__(self) -> int:
        return len(dataclasses.fields(self))

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.values())))
