"""Changes of the rows and columns of a table."""
