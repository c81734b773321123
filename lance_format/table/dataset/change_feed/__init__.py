"""The rows that versions changed, version by version."""
