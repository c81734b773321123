"""Values of metadata: truth values and numbers as text, parsed exactly as by the reference.

They decide the layout of a column, so parsing one more strictly or more leniently than other implementations makes its
pages unreadable. Spaces are part of a value.
"""

from __future__ import annotations

_YES = frozenset({b"true", b"1", b"yes", b"y", b"on"})
_MOST_DIGITS = 20


def is_yes(value: bytes | None) -> bool:
    """Return whether a value means yes: true, 1, yes, y or on, in any case. An absent value does not."""
    return value is not None and value.lower() in _YES


def parse_unsigned(value: bytes | None, bits: int) -> int | None:
    """Return an unsigned number of limited bits, possibly with a plus sign; None for any other text."""
    digits = (value or b"").removeprefix(b"+")
    if not digits.isdigit() or len(digits.lstrip(b"0")) > _MOST_DIGITS:
        return None
    number = int(digits.lstrip(b"0") or b"0")
    return number if number < 1 << bits else None
