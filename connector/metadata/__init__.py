"""Metadata tables: facts about a table, as rows."""
