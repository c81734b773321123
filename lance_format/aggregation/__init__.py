"""Partial aggregation of Arrow arrays: sums, counts, least and greatest values per group, in bounded memory.

A group may be returned several times; adding up its rows gives the aggregate. Nothing here knows tables or Spark.
"""

from lance_format.aggregation.partial import Aggregate, PartialAggregation

__all__ = ["Aggregate", "PartialAggregation"]
