"""Indices of columns: their values, files, building and upkeep."""
