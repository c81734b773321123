"""The methods of `LanceDataset` that draw: reports, and summaries for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lance_format.arguments import checked_methods
from lance_format.table.dataset.reports.report_facts import ReadableDataset

if TYPE_CHECKING:
    from lance_format.table.dataset.reports.report import TableReport


@checked_methods
class DatasetReports(ReadableDataset):
    """Methods that draw. Part of `LanceDataset`."""

    def _repr_html_(self) -> str:
        """Return a summary for notebooks."""
        from lance_format.table.dataset.reports.report import notebook_html  # drawing, which only notebooks need

        return notebook_html(self)

    def report(self, filter: str | None = None, *, columns: Sequence[str] | None = None) -> TableReport:
        """Collect the numbers of a page about this version, which `TableReport.save` writes.

        Of tables with more than 200 fragments, the files of 200 are opened for the sizes and the zones of columns.

        Parameters
        ----------
        filter : str, optional
            A condition in SQL. The report then has what a query with it reads.
        columns : sequence of str, optional
            The columns of that query, by default all.

        Returns
        -------
        TableReport
        """
        from lance_format.table.dataset.reports.report import collect_report  # drawing, which only reports need

        return collect_report(self, filter, columns)
