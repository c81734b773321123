"""Payloads of blobs, which lie outside the pages of their column."""
