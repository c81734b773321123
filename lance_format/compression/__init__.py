"""Compressions: one file a technique, a registry for reading, a strategy for writing."""
