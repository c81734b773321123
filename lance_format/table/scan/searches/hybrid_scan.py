"""Scans of the rows that a search of vectors or one of texts finds, the best ones of both first.

Their ranks are combined, since distances and scores have no common scale: G. Cormack, C. Clarke and S. Büttcher,
"Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods" (2009).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.errors import InvalidInputError
from lance_format.table.scan.options import ScanOptions
from lance_format.table.scan.searches.nearest.query import QUERY_INDEX
from lance_format.table.scan.searches.nearest.scanner import NearestScanner
from lance_format.table.scan.searches.ranked import Addresses, RankedRows, SingleTaskScanner
from lance_format.table.scan.searches.text_scan import TextScanner
from lance_format.table.versions.table_version import TableVersion

RELEVANCE = "_relevance_score"


@checked_methods
class HybridScanner(SingleTaskScanner):
    """A scanner of the rows of two searches, by descending `_relevance_score`; see `LanceDataset.scanner`.

    Each search finds as many rows as `nearest` asks for. Rows of equal scores are in the order of the table.

    Parameters
    ----------
    table : TableVersion
    options : ScanOptions
        See `RankedScanner`.

    Raises
    ------
    InvalidInputError
        See `RankedScanner`; or if several vectors are searched for one by one.
    NotSupportedError
        See `RankedScanner`; or if some fragments are to be read.
    """

    def __init__(self, table: TableVersion, options: ScanOptions) -> None:
        super().__init__(table, options, [pa.field(RELEVANCE, pa.float32())])
        searched = dataclasses.replace(options, columns=[], order_by=(), disable_scoring_autoprojection=False)
        if not options.prefilter:
            searched = dataclasses.replace(searched, filter=None)
        self._by_vectors = NearestScanner(table, dataclasses.replace(searched, full_text_query=None))
        if QUERY_INDEX in self._by_vectors.projected_schema.names:
            raise InvalidInputError("several vectors are searched for one by one; a text goes with one vector")
        count = self._by_vectors.num_results
        self._by_texts = TextScanner(table, dataclasses.replace(searched, nearest=None, limit=count, offset=0))

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe both searches as text for people.

        Parameters
        ----------
        verbose : bool
            Whether to add the types of the columns.
        """
        title = f"HybridScan: rrf_k {self._given.rrf_k}"
        lines = [] if self.filter_text is None else [f"filter the rows found: {self.filter_text}"]
        lines += self._by_vectors.explain_plan(verbose).splitlines() + self._by_texts.explain_plan(verbose).splitlines()
        return "\n".join([title, *(f"  {line}" for line in lines)])

    def _search(self) -> RankedRows:
        return _fused([self._by_vectors.find(), self._by_texts.find()], self._given.rrf_k)


def _fused(found: Sequence[Addresses], rrf_k: int) -> RankedRows:
    """Return the rows of several searches by their combined ranks.

    Parameters
    ----------
    found : sequence of uint64[…]
        The rows of each search, best first.
    rrf_k : int
        What is added to ranks, which count from 1 on.
    """
    addresses, places = np.unique(np.concatenate(found), return_inverse=True)
    shares = np.concatenate([1 / (rrf_k + np.arange(1.0, rows.size + 1)) for rows in found])
    scores = np.bincount(places, shares, minlength=addresses.size).astype(np.float32)
    order = np.argsort(-scores, kind="stable")
    return RankedRows(addresses[order], {RELEVANCE: pa.array(scores[order])})
