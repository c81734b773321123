"""The tokens that words become: what is left out to find them sooner changes none."""

from __future__ import annotations

import random
import string

import pytest
import snowballstemmer

from lance_format.texts.token_rules import LANGUAGES, TokenRules
from lance_format.texts.word_forms import WordForms

ENDS = ["", "s", "ed", "ing", "ies", "tion", "heid", "lik", "ment", "en"]
BEGINNINGS = ["", "", "ge", "be", "y", "ij", "qu", "gener", "univers", "aeoe", "'s", "_", "é"]


def words(count: int) -> list[str]:
    generator = random.Random(3)
    letters = string.ascii_lowercase + "aeiouy" * 2 + string.digits
    found = []
    for _ in range(count):
        body = "".join(generator.choices(letters, k=generator.randint(1, 9)))
        digits = "".join(generator.choices(string.digits, k=generator.randint(0, 3)))
        found.append(generator.choice(BEGINNINGS) + body + generator.choice(ENDS) + digits)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_stems_of_words_with_numbers(language: str) -> None:
    rules = TokenRules(language=language, ascii_folding=False, remove_stop_words=False, max_token_length=None)
    forms, stemmer = WordForms(rules), snowballstemmer.stemmer(language.lower())
    for word in words(2000):
        assert forms.of(word) == stemmer.stemWord(word)
