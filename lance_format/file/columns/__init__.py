"""Columns in memory: fields of a file, and Arrow arrays taken apart into leaves and joined again. No I/O."""
