"""Kernels of texts: tokens, trigrams, posting lists."""
