"""Sequences of ids and versions of rows: runs, segments, their protobuf."""
