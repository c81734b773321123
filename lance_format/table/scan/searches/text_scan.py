"""Scans of the rows that match a text query, the best ones first."""

from __future__ import annotations

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.errors import NotSupportedError
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.searches.ranked import RankedRows, SingleTaskScanner, filtered_addresses
from lance_format.table.text_search.search import SearchScope, TextSearch, as_query
from lance_format.table.versions.table_version import TableVersion

SCORE = "_score"


@checked_methods
class TextScanner(SingleTaskScanner):
    """A scanner of the rows that match a text query, by descending `_score`; see `LanceDataset.scanner`.

    Rows of equal scores are in the order of the table. Addresses and scores of all matches are held in memory.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
        See `RankedScanner`. A filter that is not applied before the search is applied to its first `limit` rows.

    Raises
    ------
    InvalidInputError
        See `RankedScanner`.
    NotSupportedError
        See `RankedScanner`; or if some fragments are to be read.
    """

    def __init__(self, table: TableVersion, options: ScanOptions) -> None:
        if options.fragments is not None:
            raise NotSupportedError("fragments is not supported with full_text_query: scores depend on all rows")
        super().__init__(table, options, [pa.field(SCORE, pa.float32())])
        self._query = as_query(table, options.full_text_query)

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the search as text for people.

        Parameters
        ----------
        verbose : bool
            Whether to add the types of the columns.
        """
        lines = [f"text search: {self._query!r}"]
        if self._given.filter is not None:
            when = "before" if self._given.prefilter else "after"
            lines.append(f"filter {when} the search: {self.filter_text or self._given.filter}")
        fields = self.projected_schema
        lines.append(f"columns: {', '.join(f'{x.name}: {x.type}' if verbose else x.name for x in fields)}")
        title = f"TextScan: {self._table.uri}, version {self._table.manifest.version}"
        return "\n".join([title, *(f"  {line}" for line in lines)])

    def _search(self) -> RankedRows:
        options = self._given
        search = TextSearch(SearchScope(self._table, filtered_addresses(self._table, options), options.fast_search))
        most = None if options.limit is None else options.offset + options.limit
        hits = search.find(self._query, most).best(most)
        return RankedRows(hits.addresses, {SCORE: pa.array(hits.scores)})
