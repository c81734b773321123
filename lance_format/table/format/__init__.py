"""Manifests as values and as bytes, and the names of files. No I/O."""
