"""Vectors: distances between them, codes that stand for them, and models that fit a sample. Knows no files."""
