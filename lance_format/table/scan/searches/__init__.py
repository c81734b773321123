"""Scans of the rows that a search finds: by vectors, by texts, or by both."""
