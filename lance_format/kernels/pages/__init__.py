"""Kernels of page layouts: chunks, entries, levels, offsets."""
