"""Words that text indices leave out by default, by language. `stop_words.json` has them."""

from __future__ import annotations

import functools
import json

KNOWN = (
    "Danish", "Dutch", "English", "Finnish", "French", "German", "Hungarian", "Italian", "Norwegian", "Portuguese",
    "Russian", "Spanish", "Swedish", "Turkish",
)  # fmt: skip
"""Languages with stop words."""


@functools.cache
def stop_words_of(language: str) -> frozenset[str]:
    """Return the stop words of a language of `KNOWN`."""
    from importlib.resources import files  # Planners, which do not need it, import it in 4 ms.

    text = files(__package__).joinpath("stop_words.json").read_text(encoding="utf-8")
    return frozenset(json.loads(text)[language].split())
