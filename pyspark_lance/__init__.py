"""Makes Spark find the data source `lance`: it looks for `DefaultSource` in all packages called `pyspark_*`."""

from connector import LanceDataSource as DefaultSource

__all__ = ["DefaultSource"]
