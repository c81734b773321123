"""The versions of a table: how one is listed, opened, committed, rebased, named and cleaned up."""
