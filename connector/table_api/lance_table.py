"""`LanceTable`: a table by its path or name, with the verbs of Delta's `DeltaTable`."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from connector.options.storage import write_storage
from connector.table_api.assigned_rows import Value, Values
from connector.table_api.creation import LanceTableBuilder, Mode
from connector.table_api.locating import locate
from connector.table_api.merge_builder import LanceMergeBuilder
from connector.table_api.row_changes import RowChangeResult
from connector.table_api.searching import search_both, search_texts, search_vectors
from connector.table_api.session_storage import with_hadoop
from connector.table_api.target import Target
from connector.table_api.updating import delete_rows, update_rows
from connector.table_api.upkeep import TableUpkeep
from connector.table_api.versions import TableVersions
from lance_format import DatasetNotFoundError, InvalidInputError, LanceDataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lance_format.query import FullTextQuery


class LanceTable(TableVersions, TableUpkeep):
    """A Lance table, which Spark changes and maintains.

    The methods run in any session, with or without the planner, and through Spark Connect. This process opens the table
    too, so it has to reach its storage. `forPath`, `forName` and the builders of `create` make a `LanceTable`.

    >>> from pyspark_lance import LanceTable
    >>> birds = LanceTable.forPath(spark, "/data/birds.lance")  # doctest: +SKIP
    >>> birds.update("weight IS NULL", set={"weight": "1.5"})  # doctest: +SKIP
    RowChangeResult(version=2, num_updated_rows=3, num_inserted_rows=0, num_deleted_rows=0)
    """

    @classmethod
    def forPath(cls, spark: SparkSession, path: str, options: Mapping[str, str] | None = None) -> LanceTable:
        """Return the table in a directory.

        Parameters
        ----------
        spark : SparkSession
        path : str
        options : mapping of str to str, optional
            Options of reads and writes, as `branch`.

        Raises
        ------
        DatasetNotFoundError, VersionNotFoundError
            If there is no such table, or no branch or version that the options name.
        InvalidInputError
            If an option is unknown or invalid.
        """
        given = {name: str(value) for name, value in (options or {}).items()}
        if any(name.lower() == "path" for name in given):
            raise InvalidInputError("the path of the table is an argument of forPath, and no option: leave it out")
        target = Target(spark, str(path), with_hadoop(spark, str(path), given))
        target.open()
        return cls(target)

    @classmethod
    def forName(cls, spark: SparkSession, tableOrViewName: str) -> LanceTable:
        """Return the table of a name: of a catalog, or `` lance.`/path` ``.

        Catalogs of Lance tables, and Lance tables of the session catalog, require the planner in the process that plans
        the queries. Names of paths work everywhere. `t.branch_b` is the branch `b` of a table `t` of a catalog.

        Parameters
        ----------
        spark : SparkSession
        tableOrViewName : str

        Raises
        ------
        DatasetNotFoundError
            If Spark does not find a table of the name.
        InvalidInputError
            If it is not a Lance table, or a view or options show only a part of it.
        """
        found = locate(spark, tableOrViewName)
        return cls.forPath(spark, found.path, found.storage)

    @classmethod
    def isLanceTable(cls, spark: SparkSession, identifier: str) -> bool:
        """Return whether there is a Lance table in a directory.

        Parameters
        ----------
        spark : SparkSession
        identifier : str
            The path of the directory.
        """
        try:
            Target(spark, identifier, with_hadoop(spark, identifier, {})).open()
        except DatasetNotFoundError:
            return False
        return True

    @classmethod
    def create(cls, spark: SparkSession) -> LanceTableBuilder[LanceTable]:
        """Return a builder that creates a table; it fails if there is one already."""
        return LanceTableBuilder(spark, Mode.CREATE, cls.forPath)

    @classmethod
    def createIfNotExists(cls, spark: SparkSession) -> LanceTableBuilder[LanceTable]:
        """Return a builder that creates a table unless there is one already."""
        return LanceTableBuilder(spark, Mode.CREATE_IF_NOT_EXISTS, cls.forPath)

    @classmethod
    def replace(cls, spark: SparkSession) -> LanceTableBuilder[LanceTable]:
        """Return a builder that replaces a table, whose former versions stay; it fails if there is none."""
        return LanceTableBuilder(spark, Mode.REPLACE, cls.forPath)

    @classmethod
    def createOrReplace(cls, spark: SparkSession) -> LanceTableBuilder[LanceTable]:
        """Return a builder that replaces a table, or creates it if there is none."""
        return LanceTableBuilder(spark, Mode.CREATE_OR_REPLACE, cls.forPath)

    def __repr__(self) -> str:
        return f"LanceTable({self._target.path!r})"

    def toDF(self) -> DataFrame:
        """Return the rows of the table, with its alias if it has one."""
        return self._target.read()

    def alias(self, aliasName: str) -> LanceTable:
        """Return the same table, whose columns are qualified by an alias in conditions and values.

        Parameters
        ----------
        aliasName : str
        """
        return type(self)(dataclasses.replace(self._target, alias=aliasName))

    def delete(self, condition: Value | None = None) -> RowChangeResult:
        """Delete the rows for which a condition is true.

        Parameters
        ----------
        condition : str or Column, optional
            SQL, or a column of Spark. Without it all rows are deleted.

        Returns
        -------
        RowChangeResult

        Raises
        ------
        NotSupportedError
            If the table, as its options show it, cannot be changed.
        RetryableCommitConflictError
            If other writers kept changing the same rows.
        """
        return delete_rows(self._target, condition)

    def update(self, condition: Value | None = None, set: Values | None = None) -> RowChangeResult:
        """Assign values to columns of the rows for which a condition is true.

        Parameters
        ----------
        condition : str or Column, optional
            Without it all rows are updated.
        set : mapping of str to (str or Column)
            Values over the old row, by columns or fields of structs (`p.a`).

        Returns
        -------
        RowChangeResult

        Raises
        ------
        InvalidInputError
            If a column is not there, or is assigned to twice.
        SchemaMismatchError
            If a value is of a type that its column does not take, or null where the column allows none.
        NotSupportedError, RetryableCommitConflictError
            See `delete`.
        """
        if set is None:
            raise InvalidInputError("update needs the argument 'set': values by columns")
        return update_rows(self._target, condition, set)

    def merge(self, source: DataFrame, condition: Value) -> LanceMergeBuilder:
        """Return a builder of a merge: rows of a source update, delete and insert rows of the table.

        Parameters
        ----------
        source : DataFrame
            It may read the table itself. It is read again if the merge starts again after a conflict.
        condition : str or Column
            Says which rows match. Where it is null they do not.

        Returns
        -------
        LanceMergeBuilder
            It takes the clauses, then `execute`.
        """
        return LanceMergeBuilder(self._target, source, condition)

    def vectorSearch(
        self,
        column: str,
        queryVector: Sequence[float],
        numResults: int = 10,
        metric: str | None = None,
        filter: str | None = None,
        *,
        nprobes: int | None = None,
        refineFactor: int | None = None,
        ef: int | None = None,
        distanceRange: tuple[float | None, float | None] | None = None,
        useIndex: bool = True,
    ) -> DataFrame:
        """Return the rows whose vectors are nearest to another one, nearest first, with their `_distance`.

        By an index of the column one task finds them, at approximate distances. Otherwise tasks compute the distances
        of all rows.

        Parameters
        ----------
        column : str
            A column of vectors, or a dotted path of a field below structs.
        queryVector : sequence of float
            A list, an array of NumPy, or a vector of `pyspark.ml`.
        numResults : int
        metric : {"l2", "cosine", "dot", "hamming"}, optional
            By default that of an index, or `l2`; `hamming` for vectors of bytes.
        filter : str, optional
            The rows to search, in SQL as the option `filter`. `where` of the result filters the rows that were found.
        nprobes : int, optional
            Number of partitions of an index to search; by default 20, and more until enough rows are found.
        refineFactor : int, optional
            How many times `numResults` rows of an index have their exact distances computed.
        ef : int, optional
            How many of the nearest rows a search of a graph goes on from. By default, graphs of large partitions are
            followed.
        distanceRange : tuple of float, optional
            Half-open range of distances.
        useIndex : bool
            Whether an index may be used.

        Raises
        ------
        InvalidInputError
            If an argument is invalid, or the column has no vectors of this length.
        """
        arguments = {
            "column": column,
            "q": queryVector,
            "k": numResults,
            "metric": metric,
            "nprobes": nprobes,
            "refine_factor": refineFactor,
            "ef": ef,
            "distance_range": distanceRange,
            "use_index": useIndex,
        }
        return search_vectors(self._target, arguments, filter)

    def textSearch(
        self,
        query: str | FullTextQuery,
        columns: Sequence[str] | None = None,
        numResults: int = 10,
        filter: str | None = None,
    ) -> DataFrame:
        """Return the rows that match a text, the best ones first, with their `_score`.

        One task finds them by the `INVERTED` indices of the columns, and reads the rows that these lack.

        Parameters
        ----------
        query : str or FullTextQuery
            Words, one of which a row has to have; or a phrase in double quotes; or a query of `lance_format.query`.
        columns : sequence of str, optional
            By default all that have an `INVERTED` index. A query names its columns.
        numResults : int
        filter : str, optional
            The rows to search, in SQL as the option `filter`. `where` of the result filters the rows that were found.

        Raises
        ------
        InvalidInputError
            If an argument is invalid, or there is no column to search.
        """
        return search_texts(self._target, query, columns, numResults, filter)

    def hybridSearch(
        self,
        column: str,
        queryVector: Sequence[float],
        query: str | FullTextQuery,
        columns: Sequence[str] | None = None,
        numResults: int = 10,
        filter: str | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        refineFactor: int | None = None,
        rrfK: int = 60,
    ) -> DataFrame:
        """Return the rows near a vector or matching a text, those that are among the best of both first.

        Each search finds `numResults` rows. Their `_relevance_score` is the sum of `1 / (rrfK + rank)` over the
        searches that have found them (reciprocal rank fusion). One task does both.

        Parameters
        ----------
        column, queryVector, metric, nprobes, refineFactor
            See `vectorSearch`.
        query, columns
            See `textSearch`.
        numResults : int
        filter : str, optional
            The rows to search, in SQL as the option `filter`. `where` of the result filters the rows that were found.
        rrfK : int
            The higher it is, the more do rows that both find precede those that one has found first.

        Raises
        ------
        InvalidInputError
            If an argument is invalid, or there is no column to search.
        """
        arguments = {
            "column": column,
            "q": queryVector,
            "k": numResults,
            "metric": metric,
            "nprobes": nprobes,
            "refine_factor": refineFactor,
        }
        return search_both(self._target, arguments, query, columns, rrfK, filter)

    def clone(self, target: str, isShallow: bool = False) -> LanceTable:
        """Make the latest version, or the one that the options name, a table of its own, and return that.

        Parameters
        ----------
        target : str
            The directory of the clone.
        isShallow : bool
            Whether the clone shares the files of the version, instead of getting copies. The table that is returned has
            the option `storage.allowed_base_paths`, which others need to read the clone; see
            `LanceDataset.shallow_clone`.

        Raises
        ------
        DatasetExistsError
            If the directory already holds a table.
        InvalidInputError
            If the clone is to share files, and would lie in another store or in the directory of the table.
        """
        return self._clone(self._target.open(), target, shallow=isShallow)

    def cloneAtVersion(self, version: int, target: str, isShallow: bool = False) -> LanceTable:
        """Make an earlier version a table of its own; see `clone`.

        Raises
        ------
        VersionNotFoundError
            If there is no such version.
        """
        return self._clone(self._target.open().checkout_version(version), target, shallow=isShallow)

    def cloneAtTimestamp(self, timestamp: str | datetime.datetime, target: str, isShallow: bool = False) -> LanceTable:
        """Make the latest version at a time a table of its own; see `clone`.

        Parameters
        ----------
        timestamp : str or datetime
            See `restoreToTimestamp`.
        target, isShallow
            See `clone`.

        Raises
        ------
        VersionNotFoundError
            If there is no version as old.
        """
        return self._clone(self._at(timestamp, self._target.open()), target, shallow=isShallow)

    def _clone(self, dataset: LanceDataset, target: str, *, shallow: bool) -> LanceTable:
        made = (dataset.shallow_clone if shallow else dataset.deep_clone)(target, dataset.version)
        return LanceTable.forPath(self._target.spark, made.uri, write_storage(made.storage_options))
