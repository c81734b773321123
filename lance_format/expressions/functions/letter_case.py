"""Texts in lower and upper case, by the full mappings of Unicode: the upper case of ß is SS, and a last sigma is ς.

Arrow's functions map each character to one, which suffices for ASCII.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_format.masks import is_true


def lower(texts: Any) -> Any:
    """Return an array or scalar of strings in lower case."""
    return _mapped(texts, pc.utf8_lower, str.lower)


def upper(texts: Any) -> Any:
    """Return an array or scalar of strings in upper case."""
    return _mapped(texts, pc.utf8_upper, str.upper)


def _mapped(texts: Any, map_characters: Callable[[Any], Any], map_text: Callable[[str], str]) -> Any:
    if isinstance(texts, pa.Scalar):
        return pa.scalar(map_text(texts.as_py()), texts.type) if texts.is_valid else texts
    mapped = map_characters(texts)
    others = is_true(pc.invert(pc.string_is_ascii(texts)))
    if not pc.any(others, min_count=0).as_py():
        return mapped
    distinct = texts.filter(others).dictionary_encode()
    items = pa.array(map(map_text, distinct.dictionary.to_pylist()), texts.type)
    return pc.replace_with_mask(mapped, others, items.take(distinct.indices))
