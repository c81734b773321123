"""Builders that create and replace tables without rows: by a path in this process, by a name through Spark's SQL."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from connector.catalog.properties import split_properties
from connector.options.options import LanceOptions
from connector.options.snapshot import open_at
from connector.options.storage import STORAGE_PREFIX, is_storage_option
from connector.table_api.locating import Location, locate, parse_table_name
from connector.table_api.session_storage import with_hadoop
from connector.types.column_names import quoted
from connector.write.empty_table import write_empty
from lance_format import DatasetExistsError, DatasetNotFoundError, InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
_COMMENT = "comment"


class Mode(enum.Enum):
    """Behaviour of a builder if the table exists or not; the value is the beginning of the SQL statement."""

    CREATE = "CREATE TABLE"
    CREATE_IF_NOT_EXISTS = "CREATE TABLE IF NOT EXISTS"
    REPLACE = "REPLACE TABLE"
    CREATE_OR_REPLACE = "CREATE OR REPLACE TABLE"


@dataclass(frozen=True)
class LanceTableBuilder(Generic[T]):
    """A definition of a table to be created. `LanceTable.create` and its siblings make it.

    Each method returns another builder.

    >>> LanceTable.create(spark).location("/data/birds.lance") \\
    ...     .addColumn("id", "BIGINT", nullable=False) \\
    ...     .addColumn("name", "STRING", comment="in English") \\
    ...     .property("enable_stable_row_ids", "true").execute()  # doctest: +SKIP
    LanceTable('/data/birds.lance')
    """

    _spark: SparkSession
    _mode: Mode
    _open: Callable[[SparkSession, str, dict[str, str]], T]
    _name: str | None = None
    _path: str | None = None
    _columns: StructType = field(default_factory=StructType)
    _properties: dict[str, str] = field(default_factory=dict)
    _options: dict[str, str] = field(default_factory=dict)

    def tableName(self, identifier: str) -> LanceTableBuilder[T]:
        """Name the table, as in SQL.

        Parameters
        ----------
        identifier : str
            In a catalog, which requires the planner; or `` lance.`/path` ``.
        """
        return dataclasses.replace(self, _name=identifier)

    def location(self, location: str) -> LanceTableBuilder[T]:
        """Set the directory of the table.

        Parameters
        ----------
        location : str
        """
        return dataclasses.replace(self, _path=str(location))

    def comment(self, comment: str) -> LanceTableBuilder[T]:
        """Describe the table; the comment is a property of it."""
        return self.property(_COMMENT, comment)

    def addColumn(
        self,
        colName: str | StructField,
        dataType: str | DataType | None = None,
        nullable: bool = True,
        generatedAlwaysAs: object = None,
        generatedByDefaultAs: object = None,
        comment: str | None = None,
    ) -> LanceTableBuilder[T]:
        """Add a column.

        Parameters
        ----------
        colName : str or StructField
            A field stands for all arguments.
        dataType : str or DataType
            A type of Spark, or its name in SQL.
        nullable : bool
        generatedAlwaysAs, generatedByDefaultAs
            Refused: Lance tables compute no columns.
        comment : str, optional

        Raises
        ------
        NotSupportedError
            If the column is to be generated.
        InvalidInputError
            If there is no type.
        """
        if generatedAlwaysAs is not None or generatedByDefaultAs is not None:
            raise NotSupportedError(
                f"column {colName!r}: Lance tables do not generate columns; compute the values in the query that writes"
            )
        if isinstance(colName, StructField):
            return dataclasses.replace(self, _columns=StructType([*self._columns, colName]))
        if dataType is None:
            raise InvalidInputError(f"column {colName!r} needs a type, as 'BIGINT' or LongType()")
        metadata = {} if comment is None else {_COMMENT: comment}
        kind = DataType.fromDDL(dataType) if isinstance(dataType, str) else dataType
        return self.addColumn(StructField(colName, kind, nullable, metadata))

    def addColumns(self, cols: StructType | list[StructField]) -> LanceTableBuilder[T]:
        """Add columns.

        Parameters
        ----------
        cols : StructType or list of StructField
        """
        return dataclasses.replace(self, _columns=StructType([*self._columns, *cols]))

    def property(self, key: str, value: str) -> LanceTableBuilder[T]:
        """Set a property; `docs/sql.md` lists those with a meaning.

        Parameters
        ----------
        key, value : str

        Raises
        ------
        InvalidInputError
            If the key is one of the storage's options.
        """
        if is_storage_option(key):
            raise InvalidInputError(f"{key!r} would be kept in the table, where others read it: use option")
        return dataclasses.replace(self, _properties={**self._properties, key: str(value)})

    def option(self, key: str, value: str) -> LanceTableBuilder[T]:
        """Set an option of the storage, as `storage.aws_region`; for tables by their location.

        Parameters
        ----------
        key, value : str

        Raises
        ------
        InvalidInputError
            If the key is no option of the storage.
        """
        if not is_storage_option(key):
            raise InvalidInputError(
                f"{key!r} is no option of the storage, which begin with {STORAGE_PREFIX!r}: see property"
            )
        return dataclasses.replace(self, _options={**self._options, key: str(value)})

    def partitionedBy(self, *cols: str) -> NoReturn:
        """Refuse partitions, which Lance tables do not have.

        Raises
        ------
        NotSupportedError
            Always.
        """
        raise NotSupportedError(
            f"partitionedBy{cols!r}: Lance tables have no partitions; write sorted rows, so that zone maps let queries"
            " skip parts of the table"
        )

    def clusterBy(self, *cols: str) -> NoReturn:
        """Refuse clustering, which Lance tables do not keep.

        Raises
        ------
        NotSupportedError
            Always.
        """
        raise NotSupportedError(
            f"clusterBy{cols!r}: Lance tables do not keep clusters; write sorted rows, so that zone maps let queries"
            " skip parts of the table"
        )

    def execute(self) -> T:
        """Create or replace the table, as one version.

        Returns
        -------
        LanceTable

        Raises
        ------
        InvalidInputError
            If there is neither a name nor a location, or both, or no column.
        DatasetExistsError
            If `create` finds a table.
        DatasetNotFoundError
            If `replace` finds none.
        NotSupportedError
            If a column's type cannot be stored.
        """
        if (self._name is None) == (self._path is None):
            raise InvalidInputError("a table has either a name or a location: call tableName or location, one of them")
        if not self._columns.fields:
            raise InvalidInputError("a table needs columns: call addColumn or addColumns")
        if self._name is not None and self._options:
            raise InvalidInputError("options of the storage are for tables by their location: leave out tableName")
        if self._name is not None and not _is_path(self._name):
            self._spark.sql(self._statement()).collect()
            found = locate(self._spark, self._name)
        else:
            found = locate(self._spark, self._name) if self._name else Location(self._path or "", self._options)
            self._write(found)
        return self._open(self._spark, found.path, found.storage)

    def _write(self, found: Location) -> None:
        path = found.path
        named, config = split_properties(self._properties)
        options = LanceOptions.parse({"path": path, **named, **with_hadoop(self._spark, path, found.storage)})
        exists = _exists(options)
        if exists and self._mode is Mode.CREATE_IF_NOT_EXISTS:
            return
        if exists and self._mode is Mode.CREATE:
            raise DatasetExistsError(f"there is a table at {path} already: use createIfNotExists or createOrReplace")
        if not exists and self._mode is Mode.REPLACE:
            raise DatasetNotFoundError(
                f"there is no Lance table at {path} to be replaced: use create or createOrReplace"
            )
        write_empty(options, self._columns, "overwrite" if exists else "create", config)

    def _statement(self) -> str:
        columns = ", ".join(_spell(column, " ") for column in self._columns)
        properties = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in self._properties.items())
        end = f" TBLPROPERTIES ({properties})" if properties else ""
        name = quoted(*parse_table_name(self._name or ""))
        return f"{self._mode.value} {name} ({columns}) USING lance{end}"


def _is_path(name: str) -> bool:
    return name.lower().startswith("lance.`") and "/" in name


def _exists(options: LanceOptions) -> bool:
    try:
        open_at(options, options.path)
    except DatasetNotFoundError:
        return False
    return True


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _spell(column: StructField, between: str) -> str:
    """Return a column, or a field of a struct, as SQL declares it."""
    comment = column.metadata.get(_COMMENT)
    return (
        f"{quoted(column.name)}{between}{_spell_type(column.dataType)}"
        + ("" if column.nullable else " NOT NULL")
        + (f" COMMENT {_text(comment)}" if comment else "")
    )


def _spell_type(kind: DataType) -> str:
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(_spell(field, ': ') for field in kind)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_spell_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_spell_type(kind.keyType)}, {_spell_type(kind.valueType)}>"
    return kind.simpleString()
