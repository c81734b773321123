"""Makes Spark find the data source `lance`: it looks for `DefaultSource` in all packages called `pyspark_*`.

Imported by a program that has a Spark session, it does what `connector.register` does for that one.
"""

from connector import LanceDataSource as DefaultSource
from connector.planner import install_here

__all__ = ["DefaultSource"]

install_here()
