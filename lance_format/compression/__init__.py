"""Compressions: one file per technique, a registry for reading, a strategy for writing."""
