"""The methods of `LanceTable` about files, indices and new columns: the procedures of catalogs, by Delta's names."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from connector.backfill.job import add_columns_from
from connector.procedures.declaring import Result
from connector.procedures.declaring import Target as ProcedureTarget
from connector.procedures.indexing import create_index, drop_index, refresh_index
from connector.procedures.optimizing import optimize
from connector.procedures.vacuuming import vacuum
from connector.table_api.row_changes import retry
from connector.table_api.target import ADDRESS, Target
from connector.types.column_names import find_name, quoted
from connector.types.field_metadata import declare_primary_key
from lance_format import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lance_format import CompactionKeywords

T = TypeVar("T")
_KEYS = ("_rowaddr", "_rowid")
_ADDRESS = "_rowaddr"


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """Outcome of a compaction or a sort.

    Parameters
    ----------
    version : int
        The version that it made, or the latest if nothing was worth rewriting.
    fragments_removed, fragments_added, files_removed, files_added : int
    """

    version: int
    fragments_removed: int
    fragments_added: int
    files_removed: int
    files_added: int


@dataclass(frozen=True, slots=True)
class VacuumResult:
    """Outcome of a vacuum.

    Parameters
    ----------
    old_versions : int
        Number of removed versions.
    bytes_removed, data_files_removed, transaction_files_removed, index_files_removed, deletion_files_removed : int
    failed_deletes : int
        Number of files that the storage refused to delete.
    """

    old_versions: int
    bytes_removed: int
    data_files_removed: int
    transaction_files_removed: int
    index_files_removed: int
    deletion_files_removed: int
    failed_deletes: int


@dataclass(frozen=True, slots=True)
class IndexResult:
    """An index after it was built.

    Parameters
    ----------
    name, column, type : str
    fragments : int
        Number of fragments that it covers.
    version : int
        The version that has it.
    """

    name: str
    column: str
    type: str
    fragments: int
    version: int


@dataclass(frozen=True, slots=True)
class AddColumnsResult:
    """Outcome of new columns.

    Parameters
    ----------
    columns : tuple of str
    version : int
        The version that has them.
    """

    columns: tuple[str, ...]
    version: int


@dataclass(frozen=True)
class LanceOptimizeBuilder:
    """Choice of how to optimize a table. `LanceTable.optimize` makes it."""

    _target: Target
    _where: str | None = None

    def where(self, partitionFilter: str) -> LanceOptimizeBuilder:
        """Rewrite only fragments that may have rows for which a condition is true, according to indices.

        Parameters
        ----------
        partitionFilter : str
            In the SQL of `docs/expressions.md`, over any columns: Lance tables have no partitions.
        """
        return dataclasses.replace(self, _where=partitionFilter)

    def executeCompaction(self, **options: Unpack[CompactionKeywords]) -> OptimizeResult:
        """Combine small fragments, and remove deleted rows from the files.

        Parameters
        ----------
        **options
            Those of the procedure `optimize`, such as `target_rows_per_fragment`; see `docs/maintenance.md`.

        Raises
        ------
        InvalidInputError
            If the condition or an option is invalid.
        RetryableCommitConflictError
            If other writers kept changing the same rows.
        """
        return self._run(None, options)

    def executeZOrderBy(
        self, *cols: str | list[str] | tuple[str, ...], **options: Unpack[CompactionKeywords]
    ) -> OptimizeResult:
        """Sort the rows by the z-order of columns, so that zone maps prune queries that filter by any of these.

        Parameters
        ----------
        *cols : str
            The columns, or one list of them.
        **options
            See `executeCompaction`.
        """
        names: list[Any] = list(cols[0]) if len(cols) == 1 and not isinstance(cols[0], str) else list(cols)
        if not names or not all(isinstance(name, str) for name in names):
            raise InvalidInputError(f"executeZOrderBy needs the names of columns, not {cols!r}")
        return self._run(names, options)

    def _run(self, zorder_by: list[str] | None, options: CompactionKeywords) -> OptimizeResult:
        target = _procedure_target(self._target, "OPTIMIZE")
        return _as(OptimizeResult, optimize(target, self._where, None, zorder_by, **options))[0]


class TableUpkeep:
    """Methods about files, indices and new columns. Part of `LanceTable`.

    Parameters
    ----------
    target : Target
    """

    _target: Target

    def optimize(self) -> LanceOptimizeBuilder:
        """Return a builder, whose `executeCompaction` and `executeZOrderBy` rewrite fragments by a Spark job."""
        return LanceOptimizeBuilder(self._target)

    def vacuum(self, retentionHours: float | None = None) -> VacuumResult:
        """Remove old versions, and the files that no other version needs.

        Versions with a tag, and those that a branch starts from, are kept. Files that no version names are kept for 7
        days, because they may belong to a write in progress.

        Parameters
        ----------
        retentionHours : float, optional
            Minimum age of the versions to remove, by default 14 days.

        Raises
        ------
        InvalidInputError
            If it is no number, or is negative.
        """
        if retentionHours is not None and (isinstance(retentionHours, bool) or not retentionHours >= 0):
            raise InvalidInputError(f"retentionHours is {retentionHours!r}; a number of hours from 0 is needed")
        made = vacuum(
            _procedure_target(self._target, "VACUUM"),
            older_than=None if retentionHours is None else datetime.timedelta(hours=retentionHours),
            retain_versions=None,
            before_version=None,
            delete_unverified=False,
            error_if_tagged_old_versions=False,
            delete_rate_limit=None,
            dry_run=False,
        )
        return _as(VacuumResult, made)[0]

    def setUnenforcedPrimaryKey(self, *columns: str) -> None:
        """Declare the primary key, which merges heed and nothing enforces. A table keeps its first key.

        Parameters
        ----------
        *columns : str
            The columns of the key, in its order. They are `NOT NULL`.

        Raises
        ------
        InvalidInputError
            If there is no such column, or the table has a key already.
        SchemaMismatchError
            If a column may be null.
        """
        declare_primary_key(self._target.open_latest("SET UNENFORCED PRIMARY KEY"), columns)

    def createIndex(
        self,
        column: str,
        indexType: str = "ZONEMAP",
        name: str | None = None,
        *,
        replace: bool = True,
        rowsPerZone: int | None = None,
        zoneSize: int | None = None,
        numberOfItems: int | None = None,
        probability: float | None = None,
        distanceType: str | None = None,
        numPartitions: int | None = None,
        targetPartitionSize: int | None = None,
        numSubVectors: int | None = None,
        numBits: int | None = None,
        sampleRate: int | None = None,
        maxIters: int | None = None,
        m: int | None = None,
        efConstruction: int | None = None,
        maxLevel: int | None = None,
        withPosition: bool | None = None,
        baseTokenizer: str | None = None,
        language: str | None = None,
        maxTokenLength: int | None = None,
        lowerCase: bool | None = None,
        stem: bool | None = None,
        removeStopWords: bool | None = None,
        customStopWords: list[str] | None = None,
        asciiFolding: bool | None = None,
        minNgramLength: int | None = None,
        maxNgramLength: int | None = None,
        prefixOnly: bool | None = None,
    ) -> IndexResult:
        """Create an index of a column by a Spark job.

        Parameters
        ----------
        column : str
            The column, or the dotted path of a field below structs.
        indexType : str
            `ZONEMAP`, `BTREE`, `BITMAP`, `LABEL_LIST`, `BLOOMFILTER` or `NGRAM`; of texts, which `textSearch` finds by
            it, `INVERTED`; of vectors, which `vectorSearch` finds by it, `IVF_FLAT`, `IVF_PQ`, `IVF_SQ` or `IVF_RQ`, or
            with graphs `IVF_HNSW_FLAT`, `IVF_HNSW_PQ` or `IVF_HNSW_SQ`.
        name : str, optional
            By default the column with `_idx`.
        replace : bool
            Whether to replace an index of that name.
        rowsPerZone : int, optional
            Of `ZONEMAP`, 8192 by default.
        zoneSize : int, optional
            Of `BTREE`: values that are read together, 4096 by default.
        numberOfItems : int, optional
            Of `BLOOMFILTER`: rows per zone, 8192 by default.
        probability : float, optional
            Of `BLOOMFILTER`: that a zone is read in vain, 0.00057 by default.
        distanceType, numPartitions, targetPartitionSize, numSubVectors, numBits, sampleRate, maxIters, m, \
efConstruction, maxLevel
            Of vectors; see `metric` and others of `LanceDataset.create_index`.
        withPosition, baseTokenizer, language, maxTokenLength, lowerCase, stem, removeStopWords, customStopWords
            Of `INVERTED`, with `asciiFolding`, `minNgramLength`, `maxNgramLength` and `prefixOnly`; see `IndexConfig`.

        Raises
        ------
        InvalidInputError
            If there is no such column, or an index of that name that is not to be replaced.
        NotSupportedError
            If the kind cannot be built.
        """
        target = _procedure_target(self._target, "CREATE INDEX")
        made = create_index(
            target,
            column=column,
            index_type=indexType,
            name=name,
            replace=replace,
            rows_per_zone=rowsPerZone,
            zone_size=zoneSize,
            number_of_items=numberOfItems,
            probability=probability,
            distance_type=distanceType,
            num_partitions=numPartitions,
            target_partition_size=targetPartitionSize,
            num_sub_vectors=numSubVectors,
            num_bits=numBits,
            sample_rate=sampleRate,
            max_iters=maxIters,
            m=m,
            ef_construction=efConstruction,
            max_level=maxLevel,
            with_position=withPosition,
            base_tokenizer=baseTokenizer,
            language=language,
            max_token_length=maxTokenLength,
            lower_case=lowerCase,
            stem=stem,
            remove_stop_words=removeStopWords,
            custom_stop_words=customStopWords,
            ascii_folding=asciiFolding,
            min_ngram_length=minNgramLength,
            max_ngram_length=maxNgramLength,
            prefix_only=prefixOnly,
        )
        return _as(IndexResult, made)[0]

    def refreshIndex(self, name: str | None = None) -> list[IndexResult]:
        """Let an index cover fragments that were added or rewritten since it was built; by default all indices."""
        target = _procedure_target(self._target, "REFRESH INDEX")
        return _as(IndexResult, refresh_index(target, name=name, num_indices_to_merge=None, retrain=False))

    def dropIndex(self, name: str) -> None:
        """Drop an index.

        Raises
        ------
        IndexNotFoundError
            If there is no index of that name.
        """
        drop_index(_procedure_target(self._target, "DROP INDEX"), name=name)

    def indices(self) -> DataFrame:
        """Return the parts of the indices; `docs/maintenance.md` describes the columns, those of `t.indices`."""
        target = self._target
        options = {**target.options, "metadata_table": "indices"}
        return target.spark.read.format("lance").options(**options).load(target.path)

    def addColumnsFrom(self, df: DataFrame, on: str | Sequence[str] | None = None) -> AddColumnsResult:
        """Add the columns of a DataFrame that the table lacks, and write only these.

        Parameters
        ----------
        df : DataFrame
            Each row names a row of the table. Rows of the table that it does not name get null.
        on : str or sequence of str, optional
            The columns of both that name a row. A key with a null names none. By default `_rowaddr` or `_rowid`, as
            `toDF` has them with the option `metadata_columns`.

        Raises
        ------
        InvalidInputError
            If a key column is missing, or several rows of the DataFrame name one row of the table.
        RetryableCommitConflictError
            If other writers kept changing the table in a way that the columns do not fit.
        """
        keys = [on] if isinstance(on, str) else list(on or ())
        return retry(self._target, lambda: self._add_columns(df, keys))

    def _add_columns(self, df: DataFrame, keys: Sequence[str]) -> AddColumnsResult:
        target = self._target
        if not keys or (len(keys) == 1 and keys[0] in _KEYS):
            dataset = target.open_latest("ADD COLUMNS")
            added = add_columns_from(target.spark, dataset, df, key=keys[0] if keys else None)
            return AddColumnsResult(tuple(added), dataset.version)
        wanted = {name.lower() for name in keys}
        snapshot = target.snapshot(
            "ADD COLUMNS", lambda fields: [name for name in fields.names if name.lower() in wanted]
        )
        names = [_column(name, snapshot.columns.names, target, "the table") for name in keys]
        found = [_column(name, df.columns, target, "the DataFrame") for name in keys]
        new = [name for name in df.columns if name not in found]
        condition = None
        for name, other in zip(names, found, strict=True):
            is_same = snapshot.column(name) == df[quoted(other)]
            condition = is_same if condition is None else condition & is_same
        joined = snapshot.rows.join(df, condition)
        rows = joined.select(snapshot.rows[ADDRESS].alias(_ADDRESS), *(df[quoted(name)] for name in new))
        added = add_columns_from(target.spark, snapshot.dataset, rows, key=_ADDRESS, columns=new)
        return AddColumnsResult(tuple(added), snapshot.dataset.version)


def _column(name: str, names: Sequence[str], target: Target, where: str) -> str:
    found = find_name(name, names, case_sensitive=target.is_case_sensitive)
    if found is None:
        raise InvalidInputError(f"there is no column {name!r} in {where}, which has {', '.join(map(repr, names))}")
    return found


def _procedure_target(target: Target, command: str) -> ProcedureTarget:
    target.open_latest(command)
    return ProcedureTarget(target.spark, target.parsed)


def _as(kind: type[T], result: Result) -> list[T]:
    """Return the rows of a result as values of a class, whose fields are columns of it."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    rows = [dict(zip(result.schema.names, row, strict=True)) for row in result.rows]
    return [kind(**{name: row[name] for name in names}) for row in rows]
