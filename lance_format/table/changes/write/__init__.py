"""Rows that come in: append, overwrite, create."""
