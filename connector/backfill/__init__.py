"""Adding columns from a DataFrame whose rows name rows of a table: a Spark job, and its private data source."""
