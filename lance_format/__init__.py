"""The Lance columnar format: files and tables, read and written in Python."""
