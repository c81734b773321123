"""The container: footer, metadata of columns and pages, reads of byte ranges, and what is cached of them."""
