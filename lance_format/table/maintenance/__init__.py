"""Work on whole tables that no query asks for: compaction, validation, copying, dropping."""
