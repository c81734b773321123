"""Text and expressions of pyarrow become nodes."""
