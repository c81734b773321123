"""Kernels over values of columns in memory: selected, bounded, hashed, searched."""
