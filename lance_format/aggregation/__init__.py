"""Partial aggregation of Arrow arrays: sums, counts, least and greatest values per group, and the first rows of each.

Memory is bounded. A group may be returned several times; adding up its rows gives the aggregate. More rows of a group
may be returned than its first ones. Nothing here knows tables or Spark.
"""

from lance_format.aggregation.first_rows import FirstRows, GroupOrder
from lance_format.aggregation.partial import Aggregate, PartialAggregation

__all__ = ["Aggregate", "FirstRows", "GroupOrder", "PartialAggregation"]
