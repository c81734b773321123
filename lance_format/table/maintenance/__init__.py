"""Work on whole tables besides queries and changes: compaction, validation, copying, dropping."""
