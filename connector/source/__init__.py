"""The data source `lance` as Spark calls it."""
