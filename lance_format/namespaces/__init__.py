"""Namespaces of tables: names to the places of tables, in directories and behind servers."""
