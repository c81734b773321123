"""INVERTED indices: their files, and how they are made."""
