"""Properties that are computed once.

`cached_property` is that of the standard library, which holds one lock for all instances until Python 3.12. A process
that was forked while another thread computed a property waited for that lock for ever.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """A property without a lock; concurrent threads may compute it twice."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


__all__ = ["cached_property"]
