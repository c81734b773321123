"""Vectors: distances between them, and codes that stand for them. Knows no files."""
