"""Kernels over bytes of files: reads from descriptors, and checksums."""
