"""Kinds of indices that name rows or zones: how the files of each are written and read."""
