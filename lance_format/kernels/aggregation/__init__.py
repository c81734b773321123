"""Kernels of aggregation: rows of groups, and values of each group."""
