"""The location of a table by its name, from Spark's `DESCRIBE TABLE EXTENDED`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from connector.table_api.server_storage import options_on_server
from connector.table_api.session_storage import catalog_of, options_of_name
from connector.types.column_names import parse_name, quoted
from lance_format import DatasetNotFoundError, InvalidInputError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LANCE = "lance"
_DETAILS = "# Detailed Table Information"
_FAILURE = "PYTHON_DATA_SOURCE_ERROR"
"""The condition of errors of ours, such as those of a storage: whether there is a table is then unknown."""


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a table.

    Parameters
    ----------
    path : str
    storage : dict of str to str
        The options of the storage that its catalog or its declaration has, as options of reads and writes.
    """

    path: str
    storage: dict[str, str] = field(default_factory=dict, repr=False)


def locate(spark: SparkSession, name: str) -> Location:
    """Return the location of a table.

    Parameters
    ----------
    spark : SparkSession
    name : str
        As in SQL. `` lance.`/path` `` is the path, without a question to Spark.

    Raises
    ------
    DatasetNotFoundError
        If Spark does not find a table of the name.
    AnalysisException
        If its catalog cannot look the table up.
    InvalidInputError
        If it is not a Lance table, or Spark does not know where it is.
    """
    parts = parse_table_name(name)
    if len(parts) == 2 and parts[0].lower() == _LANCE and "/" in parts[1]:
        return Location(parts[1], options_of_name(spark, parts))
    from pyspark.errors import AnalysisException, UnsupportedOperationException

    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {quoted(*parts)}").collect()
    except (AnalysisException, UnsupportedOperationException) as error:
        if error.getCondition() == _FAILURE:
            raise
        reason = str(error).strip().partition("\n")[0]
        raise DatasetNotFoundError(
            f"Spark does not find the table {name}: {reason} A catalog of Lance tables requires the planner, which a"
            " session has if its process imports pyspark_lance; LanceTable.forPath works without it"
        ) from error
    names = [row[0] for row in rows]
    details = {row[0]: row[1] for row in rows[names.index(_DETAILS) :]} if _DETAILS in names else {}
    if details.get("Provider", "").lower() != _LANCE:
        kind = details.get("Provider") or details.get("Type") or "no table with a place of its own"
        raise InvalidInputError(f"{name} is not a Lance table, but {kind}: LanceTable is for Lance tables")
    if "Location" not in details:
        raise InvalidInputError(
            f"{name} is declared with options that show a part of a table: use LanceTable.forPath with its path"
        )
    path, catalog = _path(details["Location"]), catalog_of(spark, parts)
    own = parts[1:] if len(parts) > 1 and parts[0] == catalog else parts
    return Location(path, {**options_of_name(spark, parts), **options_on_server(spark, catalog, own, path)})


def parse_table_name(name: str) -> tuple[str, ...]:
    """Return the parts of the name of a table.

    Raises
    ------
    InvalidInputError
        If it is not a name.
    """
    try:
        return parse_name(name)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name!r} is not the name of a table") from error


def _path(location: str) -> str:
    """Return the path of a location, which Spark may spell as a URI."""
    return unquote(urlsplit(location).path) if location.startswith("file:") else location
