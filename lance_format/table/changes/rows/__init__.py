"""Rows that are deleted or updated."""
