"""Kernels of compressions: values to bytes and back."""
