"""The container: footer, metadata of columns and pages, reads of byte ranges, and the search cache."""
