"""Texts: the rules by which they become tokens, and dictionaries of these. Knows no files."""
