"""Options of the storage of tables whose names and places a server keeps: what it says of them, and lends for them.

Where the planner reads a table, its catalog asks the server. `LanceTable` opens tables in this process, and asks here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from connector.options.storage import write_storage
from connector.table_api.session_storage import settings_of
from connector.types.column_names import parse_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BRANCH = "branch_"


def options_on_server(spark: SparkSession, catalog: str, name: Sequence[str], location: str) -> dict[str, str]:
    """Return the options of the storage that a server has for a table; none if the catalog is a directory.

    Parameters
    ----------
    spark : SparkSession
    catalog : str
    name : sequence of str
        Its parts without the catalog, with a last one for a branch.
    location : str
        Of the table, or of its branch. A table that the server has elsewhere is another one.

    Raises
    ------
    StorageError
        If the server does not answer, or refuses.
    """
    settings = {key.lower(): value for key, value in settings_of(spark, catalog).items()}
    if settings.get("impl", "dir").lower() == "dir" or "/" in name[0]:
        return {}
    from connector.catalog.servers import connect  # Tables of other catalogs need no client.

    server = connect(catalog, settings)
    for each in _tables(spark, name):
        place = server.namespace.find([*server.root, *each])
        if place is not None and f"{location}/".startswith(f"{place.uri}/"):
            return write_storage(place.storage_options)
    return {}


def _tables(spark: SparkSession, name: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the tables that a name can stand for, which may be of the current namespace, and with a branch."""
    current = spark.catalog.currentDatabase()
    for start in ((), parse_name(current) if current else ()):
        yield [*start, *name]
        if len(name) > 1 and name[-1].startswith(_BRANCH):
            yield [*start, *name[:-1]]
