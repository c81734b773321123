"""Columns that are added, altered or replaced, and metadata."""
