"""Merges by key (`merge_insert`): clauses, matching, execution."""
