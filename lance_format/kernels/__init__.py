"""Compiled loops over whole pages."""
