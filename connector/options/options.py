"""The options of `spark.read.format("lance")` and `df.write.format("lance")`, parsed once into one value.

Names policy: every name must be known, because silently ignored options give wrong results (`versoin=3` would read the
latest version). The error suggests a similar known name. All options are accepted in both directions, since a temporary
view has one set of them for SELECT and INSERT; those of the other direction are checked and otherwise unused. Names
that start with two underscores belong to Spark and are skipped. Options of single columns are recognised by the ends of
their names; see `connector.options.column_options`.
"""

from __future__ import annotations

import datetime
import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import pyarrow as pa

from connector.options.change_options import CHANGE_PARSERS, ChangeOptions
from connector.options.column_options import (
    BLOB,
    ENCODING,
    PACKED,
    PROPERTIES,
    STRUCTURAL_ENCODING,
    VECTOR_SIZE,
    ColumnOption,
)
from connector.options.hadoop import translate
from connector.options.sink_options import SINK_PARSERS, SinkOptions
from connector.options.storage import STORAGE_PREFIX, is_storage_option, read_storage
from connector.options.timestamps import parse_timestamp
from connector.options.values import DIGITS, MAX_INT64, parse_choice, parse_count, parse_flag, parse_names, parse_text
from connector.protocol import HADOOP, NEW_COLUMNS, SEARCH, TIME_ZONE
from connector.types.new_columns import read_new_columns
from connector.types.row_columns import ROW_FIELDS
from lance_format import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

_SPARK_INTERNAL_PREFIX = "__"
_TIMESTAMP = "timestamp"
_VERSION_AS_OF = "versionAsOf"
_TIMESTAMP_AS_OF = "timestampAsOf"
_SEVERAL_PATHS = "paths"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_CATALOG_PROPERTIES = ("provider", "owner")
"""Options of CREATE TABLE and saveAsTable; a data source gets them if Spark plans without the bridge."""
_NEEDS_PLANNER = (
    "(CREATE TABLE … USING lance, saveAsTable) requires the planner: import pyspark_lance in the program that makes the"
    " session, or call pyspark_lance.register(spark); it is not there through Spark Connect"
)
_MAX_ROWS_PER_FILE = 2**31 - 1
_MAX_BATCH_ROWS = 2**31 - 1
_CHOICES = {STRUCTURAL_ENCODING: ("miniblock", "fullzip"), ENCODING: (BLOB,), PACKED: ("true",)}
_BLOB_HANDLINGS = ("all_binary", "blobs_descriptions", "all_descriptions")
METADATA_TABLES = ("history", "files", "fragments", "indices", "tags", "branches", "refs", "transactions")
_MAX_VECTOR_SIZE = 2**31 - 1
_COLUMN_MARK = re.compile(r"(?<=.)\.(?:lance|arrow)\.")


@dataclass(frozen=True, slots=True)
class LanceOptions:
    """Options of one read or write, as the user gave them.

    Parameters
    ----------
    path : str
        The table's directory.
    version : int, optional
        The version to read; None is the latest.
    tag : str, optional
        The name of the version to read.
    branch : str, optional
        The branch to read and to write; None is the main one, or that of the path.
    timestamp : datetime, optional
        Reads the latest version at this time, which has a time zone.
    columns : tuple of str, optional
        The columns to read, in output order; None is all.
    metadata_columns : tuple of str
        Metadata columns to read after the others.
    filter : str, optional
        The rows to read, in the SQL of `lance_format`; None is all.
    split_size_bytes : int, optional
        Approximate number of bytes that a task reads.
    batch_size : int, optional
        Maximum number of rows per batch.
    file_format_version : str, optional
        The version of the files to write, or an alias of one.
    max_row_per_file : int, optional
        Maximum number of rows per data file; a task with more writes another file.
    max_bytes_per_file : int, optional
        Size of a data file, in bytes, at which a task starts another one.
    enable_stable_row_ids : bool, optional
        Whether moved rows of a new table keep their ids; None is the table's own setting, and False for a new one.
    merge_schema : bool
        Whether an append adds the columns that the table lacks.
    allow_unportable_names : bool
        Whether new columns may have names that pylance cannot read.
    verify_checksums : bool, optional
        Whether reads compare checksums; None is the table's own setting.
    use_scalar_index : bool
        Whether filters use the indices of the table.
    column_options : tuple of ColumnOption
        Storage options of single columns.
    blob_handling : str
        Whether blob columns are read as bytes or as structs with their locations.
    metadata_table : str, optional
        The metadata table to read instead of the rows.
    changes : ChangeOptions
        Options of streams and of the change feed.
    sink : SinkOptions
        Options of writes that number their batches.
    storage : mapping of str to str
        Options of the object store, in the names of pylance. They may hold secrets.
    search : mapping of str to object
        A search that selects the rows, as arguments of `LanceDataset.scanner`: `nearest`, or `full_text_query` with
        `limit`, or all of these; empty if there is none.
    new_columns : pyarrow.Schema, optional
        Columns that the statement adds to the table. The planner bridge gives them.
    """

    path: str
    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    timestamp: datetime.datetime | None = None
    columns: tuple[str, ...] | None = None
    metadata_columns: tuple[str, ...] = ()
    filter: str | None = None
    split_size_bytes: int | None = None
    batch_size: int | None = None
    file_format_version: str | None = None
    max_row_per_file: int | None = None
    max_bytes_per_file: int | None = None
    enable_stable_row_ids: bool | None = None
    merge_schema: bool = False
    allow_unportable_names: bool = False
    verify_checksums: bool | None = None
    use_scalar_index: bool = True
    column_options: tuple[ColumnOption, ...] = ()
    blob_handling: str = "all_binary"
    metadata_table: str | None = None
    changes: ChangeOptions = field(default_factory=ChangeOptions)
    sink: SinkOptions = field(default_factory=SinkOptions)
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    search: Mapping[str, Any] = field(default_factory=dict)
    new_columns: pa.Schema | None = None

    @property
    def search_rank(self) -> str:
        """The column by which a search ranks the rows."""
        if "nearest" in self.search:
            return "_relevance_score" if "full_text_query" in self.search else "_distance"
        return "_score"

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> LanceOptions:
        """Check every name and value that Spark passes.

        Parameters
        ----------
        options : mapping of str to str
            Names in any case.

        Returns
        -------
        LanceOptions

        Raises
        ------
        InvalidInputError
            If there is no path, a name is unknown or a value is malformed or out of range.
        """
        given = {name.lower(): value for name, value in options.items()}
        if _SEVERAL_PATHS in given:
            raise InvalidInputError(
                f"one path is expected, not several: {given[_SEVERAL_PATHS]}; union the tables instead"
            )
        is_planned = TIME_ZONE in given
        if not is_planned and any(name in given for name in _CATALOG_PROPERTIES):
            raise InvalidInputError(f"a table of a catalog {_NEEDS_PLANNER}")
        parsed: dict[str, Any] = {}
        column_options = []
        storage: Mapping[str, str] = read_storage(given)
        for name, value in given.items():
            if name.startswith(_SPARK_INTERNAL_PREFIX):
                continue
            if is_storage_option(name):
                continue
            column_option = _parse_column_option(name, value)
            if column_option is not None:
                column_options.append(column_option)
            elif name in _TIMESTAMPS:
                parsed[_SPELLINGS[name]] = parse_timestamp(_SPELLINGS[name], value, given.get(TIME_ZONE))
            elif name in _SPELLINGS:
                spelling = _SPELLINGS[name]
                parsed[_ATTRIBUTES.get(spelling, spelling)] = _PARSERS[spelling](spelling, value)
            else:
                raise InvalidInputError(_unknown_name(name))
        if "path" not in parsed:
            hint = "" if is_planned else f"; a table of a catalog, which has its own path, {_NEEDS_PLANNER}"
            raise InvalidInputError(f"no path is given: use .load(path), .save(path) or the option 'path'{hint}")
        _check_one_version(parsed)
        _rename_as_of(parsed)
        _check_one_version(parsed)
        changes, sink = ChangeOptions.take(parsed), SinkOptions.take(parsed)
        if HADOOP in given:
            storage = translate(json.loads(given[HADOOP]), storage)
        if SEARCH in given:
            if "metadata_table" in parsed or changes.read_change_feed:
                kind = f"the metadata table {parsed.get('metadata_table', 'changes')!r}"
                raise InvalidInputError(f"a search finds rows of a table, not of {kind}")
            parsed["search"] = _parse_search(given[SEARCH])
        if NEW_COLUMNS in given:
            parsed["new_columns"] = read_new_columns(json.loads(given[NEW_COLUMNS]))
        return cls(**parsed, column_options=tuple(column_options), changes=changes, sink=sink, storage=storage)


def _parse_search(text: str) -> dict[str, Any]:
    """Return the arguments of a search; SQL gives a structured query as a text of JSON."""
    search: dict[str, Any] = json.loads(text)
    query = search.get("full_text_query")
    if isinstance(query, dict) and "structured_query" in query:
        try:
            search["full_text_query"] = json.loads(query["structured_query"])
        except ValueError as error:
            raise InvalidInputError(f"structured_query is no JSON: {error}") from error
        if not isinstance(search["full_text_query"], dict):
            raise InvalidInputError(f"structured_query is {query['structured_query']}; a query is an object of JSON")
    return search


def _check_one_version(parsed: Mapping[str, Any]) -> None:
    """Refuse options that name a version in two ways."""
    for one, others in _CONTRADICTIONS.items():
        both = [other for other in others if one in parsed and other in parsed]
        if both:
            remedy = "a tag says which branch, so leave that out" if {one, both[0]} == {"branch", "tag"} else "keep one"
            raise InvalidInputError(
                f"the options {one!r} and {both[0]!r} contradict each other: each says which version to read; {remedy}"
            )


def _rename_as_of(parsed: dict[str, Any]) -> None:
    """Replace Spark's own names of time travel; one of them takes a number or a tag."""
    if _VERSION_AS_OF in parsed:
        version = parsed.pop(_VERSION_AS_OF)
        is_number = DIGITS.fullmatch(version) is not None
        parsed["version" if is_number else "tag"] = (
            _PARSERS["version"](_VERSION_AS_OF, version) if is_number else version
        )
    if _TIMESTAMP_AS_OF in parsed:
        parsed[_TIMESTAMP] = parsed.pop(_TIMESTAMP_AS_OF)


def _unknown_name(name: str) -> str:
    known = list(_PARSERS)
    marked = _COLUMN_MARK.search(name)
    if marked:
        known += [name[: marked.start() + 1] + column_property for column_property in PROPERTIES]
    spellings = {spelling.lower(): spelling for spelling in known}
    close = [spellings[match] for match in difflib.get_close_matches(name, spellings, n=1, cutoff=0.7)]
    of_columns = ", ".join(f"<column>.{column_property}" for column_property in PROPERTIES)
    of_columns += f", {STORAGE_PREFIX}<option>"
    hint = f"did you mean {close[0]!r}?" if close else f"the options are {', '.join(_PARSERS)}, {of_columns}"
    return f"unknown option {name!r}: {hint}"


def _parse_column_option(name: str, value: str) -> ColumnOption | None:
    """Parse the option of a column; None if the name is not one."""
    for column_property in PROPERTIES:
        column = name.removesuffix(f".{column_property}")
        if column not in ("", name):
            text = parse_text(name, value)
            if column_property == VECTOR_SIZE:
                text = str(parse_count(_MAX_VECTOR_SIZE)(name, value))
            if column_property in _CHOICES:
                text = parse_choice(_CHOICES[column_property])(name, value)
            return ColumnOption(column, column_property, text)
    return None


def _parse_path(name: str, value: str) -> str:
    parse_text(name, value)
    if value.lower().startswith("memory:"):
        raise InvalidInputError(f"{value} is in the memory of one process, and Spark has several; use another storage")
    # A path keeps its spaces. Tasks have other working directories, where a relative one would mean another place.
    is_relative = value != "~" and not value.startswith(("/", "~/")) and not _URI.match(value)
    return os.path.abspath(value) if is_relative else value  # noqa: PTH100 # As the library; links are kept.


def _parse_metadata_columns(name: str, value: str) -> tuple[str, ...]:
    names = parse_names(name, value)
    unknown = [column for column in names if column not in ROW_FIELDS]
    if unknown:
        raise InvalidInputError(
            f"option {name!r} names {', '.join(map(repr, unknown))}; the metadata columns are {', '.join(ROW_FIELDS)}"
        )
    return names


_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "path": _parse_path,
    "version": parse_count(MAX_INT64),
    "tag": parse_text,
    "branch": parse_text,
    _TIMESTAMP: parse_timestamp,
    _VERSION_AS_OF: parse_text,
    _TIMESTAMP_AS_OF: parse_timestamp,
    "columns": parse_names,
    "metadata_columns": _parse_metadata_columns,
    "filter": parse_text,
    "split_size_bytes": parse_count(MAX_INT64),
    "batch_size": parse_count(_MAX_BATCH_ROWS),
    "blob_handling": parse_choice(_BLOB_HANDLINGS),
    "metadata_table": parse_choice(METADATA_TABLES),
    "file_format_version": parse_text,
    "max_row_per_file": parse_count(_MAX_ROWS_PER_FILE),
    "max_bytes_per_file": parse_count(MAX_INT64),
    "enable_stable_row_ids": parse_flag,
    "mergeSchema": parse_flag,
    "allow_unportable_names": parse_flag,
    "verify_checksums": parse_flag,
    "use_scalar_index": parse_flag,
    **CHANGE_PARSERS,
    **SINK_PARSERS,
}
_TIMESTAMPS = tuple(name.lower() for name, parse in _PARSERS.items() if parse is parse_timestamp)
_SPELLINGS = {spelling.lower(): spelling for spelling in _PARSERS}
_ATTRIBUTES = {"mergeSchema": "merge_schema"}
_CONTRADICTIONS = {
    "tag": ("version", "branch", _TIMESTAMP),
    "version": (_TIMESTAMP,),
    _VERSION_AS_OF: ("version", "tag", _TIMESTAMP, _TIMESTAMP_AS_OF),
    _TIMESTAMP_AS_OF: ("version", "tag", _TIMESTAMP),
}
"""A tag names a version of a branch. A version or a time can be combined with a branch."""
