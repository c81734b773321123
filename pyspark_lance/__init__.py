"""Makes Spark find the data source `lance`: it looks for `DefaultSource` in all packages called `pyspark_*`.

Imported by a program that has a Spark session, it lets that one push what it can, as `connector.register` does.
"""

from connector import LanceDataSource as DefaultSource
from connector import speed_up_here

__all__ = ["DefaultSource"]

speed_up_here()
