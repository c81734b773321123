"""From columns and rows to the pages of a file, and back to Arrow arrays."""
