"""Spark's types and Arrow's: schemas, batches and arrays, both ways."""
