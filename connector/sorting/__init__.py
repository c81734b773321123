"""Rewriting fragments with their rows sorted: a Spark job, and the private data source of its rows."""
