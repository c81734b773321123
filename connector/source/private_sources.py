"""The data sources of this library's own jobs.

They are behind the format of tables, which Spark knows, and whose writes the driver plans and ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource

from connector.backfill.source import ColumnBackfillSource
from connector.protocol import PRIVATE
from connector.sorting.source import SortedRewriteSource

_ALL: tuple[type[DataSource], ...] = (ColumnBackfillSource, SortedRewriteSource)
_BY_NAME = {source.name(): source for source in _ALL}


def private_source(options: Mapping[str, str]) -> DataSource:
    """Return the data source that the options name.

    Parameters
    ----------
    options : mapping of str to str
        By names in lower case.
    """
    return _BY_NAME[options[PRIVATE]](dict(options))
