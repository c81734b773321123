"""Fitting nodes to a schema: names become columns, and types are made to meet."""
