"""Metadata tables: what is known of a table, as rows."""
