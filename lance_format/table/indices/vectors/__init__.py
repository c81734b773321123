"""Vector indices: how their files are written and read, and how they are made."""
