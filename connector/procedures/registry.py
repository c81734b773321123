"""The procedures by name, and the answers to a catalog's questions about them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    LongType,
    StringType,
    TimestampType,
)

from connector.active_session import active_session
from connector.options.options import LanceOptions
from connector.procedures.adding import add_columns
from connector.procedures.cloning import clone
from connector.procedures.declaring import Parameter, Procedure, Target
from connector.procedures.indexing import create_index, drop_index, refresh_index
from connector.procedures.keys import set_unenforced_primary_key
from connector.procedures.optimizing import optimize
from connector.procedures.vacuuming import vacuum
from connector.procedures.verifying import verify
from connector.procedures.versions import (
    create_branch,
    create_tag,
    delete_branch,
    delete_tag,
    history,
    restore,
    update_tag,
)
from lance_format import InvalidInputError

_INDEX_TYPES = (
    "ZONEMAP, BTREE, BITMAP, LABEL_LIST, BLOOMFILTER, NGRAM, for text search INVERTED,"
    " or of vectors IVF_FLAT, IVF_PQ, IVF_SQ, IVF_RQ, or with graphs IVF_HNSW_FLAT, IVF_HNSW_PQ, IVF_HNSW_SQ"
)
_TEXT, _LONG, _REAL, _FLAG = StringType(), LongType(), DoubleType(), BooleanType()
_TIME, _INTERVAL = TimestampType(), DayTimeIntervalType()
_TABLE = Parameter("table", _TEXT, "the table, a branch as t.branch_b, or a path in backticks", None)


def _required(name: str, data_type: DataType, comment: str) -> Parameter:
    return Parameter(name, data_type, comment, None)


PROCEDURES: dict[str, Procedure] = {
    "optimize": Procedure(
        optimize,
        "Combine small fragments and remove deleted rows from the files.",
        (
            Parameter("where", _TEXT, "compact only fragments that may have rows for which this condition is true"),
            Parameter("order_by", ArrayType(_TEXT), "sort the rows by these columns, each as 'name' or 'name DESC'"),
            Parameter("zorder_by", ArrayType(_TEXT), "sort the rows by all of these columns alike"),
            Parameter("target_rows_per_fragment", _LONG, "combine fragments with fewer rows; 1048576 by default"),
            Parameter("max_rows_per_group", _LONG, "ignored"),
            Parameter("max_bytes_per_file", _LONG, "maximum size of a new data file"),
            Parameter(
                "materialize_deletions", _FLAG, "rewrite fragments for their deleted rows alone; true by default"
            ),
            Parameter("materialize_deletions_threshold", _REAL, "minimum fraction of deleted rows; 0.1 by default"),
            Parameter("num_threads", _LONG, "ignored"),
            Parameter("batch_size", _LONG, "maximum number of rows to read at once; 8192 by default"),
            Parameter("defer_index_remap", _FLAG, "leave the new fragments to refresh_index; false by default"),
            Parameter("max_source_fragments", _LONG, "maximum number of fragments to compact"),
        ),
    ),
    "vacuum": Procedure(
        vacuum,
        "Remove old versions, and the files that only they need.",
        (
            Parameter(
                "older_than", _INTERVAL, "minimum age of the versions; INTERVAL 14 DAYS without other conditions"
            ),
            Parameter("retain_versions", _LONG, "number of latest versions to keep"),
            Parameter("before_version", _LONG, "remove only versions before this one"),
            Parameter("delete_unverified", _FLAG, "delete files that no version names at any age", "false"),
            Parameter("error_if_tagged_old_versions", _FLAG, "fail if one of the versions has a tag", "true"),
            Parameter("delete_rate_limit", _LONG, "maximum number of files to delete per second"),
            Parameter("dry_run", _FLAG, "list the files, and remove nothing", "false"),
        ),
    ),
    "verify": Procedure(
        verify,
        "Read every byte of the latest version, and compare it with its checksums.",
        (
            Parameter("repair", _FLAG, "repair what can be repaired without loss", "false"),
            Parameter("all_files", _FLAG, "list all files, not only what is wrong", "false"),
        ),
    ),
    "create_index": Procedure(
        create_index,
        "Create an index of a column.",
        (
            _required("column", _TEXT, "the column, or the dotted path of a field below structs"),
            Parameter("index_type", _TEXT, _INDEX_TYPES, "'ZONEMAP'"),
            Parameter("name", _TEXT, "the column with _idx by default"),
            Parameter("replace", _FLAG, "replace an index of that name", "true"),
            Parameter("rows_per_zone", _LONG, "of ZONEMAP, 8192 by default"),
            Parameter("zone_size", _LONG, "of BTREE: values that are read together, 4096 by default"),
            Parameter("number_of_items", _LONG, "of BLOOMFILTER: rows per zone, 8192 by default"),
            Parameter("probability", _REAL, "of BLOOMFILTER: that a zone is read in vain, 0.00057 by default"),
            Parameter("distance_type", _TEXT, "of vectors: l2, cosine or dot; l2 by default"),
            Parameter("num_partitions", _LONG, "of these: by default the square root of the rows, at most 4096"),
            Parameter("target_partition_size", _LONG, "of these: rows per partition, where their number is not given"),
            Parameter("sample_rate", _LONG, "of these: vectors per partition to find these by, 256 by default"),
            Parameter("max_iters", _LONG, "of these: maximum number of steps of that, 50 by default"),
            Parameter("num_sub_vectors", _LONG, "of IVF_PQ, IVF_HNSW_PQ: by default one per 16 numbers"),
            Parameter(
                "num_bits",
                _LONG,
                "of IVF_PQ, IVF_HNSW_PQ: 8 or 4 bits per sub-vector, 8 by default; of IVF_RQ: 1 to 9 per number, 5 by"
                " default",
            ),
            Parameter("m", _LONG, "of IVF_HNSW_…: neighbours that a vector is given in a graph, 20 by default"),
            Parameter("ef_construction", _LONG, "of these: vectors to choose neighbours from, 150 by default"),
            Parameter("max_level", _LONG, "of these: levels of a graph, 7 by default"),
            Parameter("with_position", _FLAG, "of INVERTED: store positions, which phrases need; false by default"),
            Parameter("base_tokenizer", _TEXT, "of INVERTED: simple, whitespace, raw or ngram; simple by default"),
            Parameter("language", _TEXT, "of INVERTED: of stems and stop words, English by default"),
            Parameter("max_token_length", _LONG, "of INVERTED: drop words of as many bytes and more, 40 by default"),
            Parameter("lower_case", _FLAG, "of INVERTED: ignore case; true by default"),
            Parameter("stem", _FLAG, "of INVERTED: reduce words to stems; true by default, but for ngram"),
            Parameter("remove_stop_words", _FLAG, "of INVERTED: drop stop words; true by default, but for ngram"),
            Parameter("custom_stop_words", ArrayType(_TEXT), "of INVERTED: these instead of those of the language"),
            Parameter("ascii_folding", _FLAG, "of INVERTED: ignore accents; true by default"),
            Parameter("min_ngram_length", _LONG, "of INVERTED with ngram: least number of characters, 3 by default"),
            Parameter("max_ngram_length", _LONG, "of INVERTED with ngram: greatest number of these, 3 by default"),
            Parameter("prefix_only", _FLAG, "of INVERTED with ngram: only beginnings of texts; false by default"),
        ),
    ),
    "refresh_index": Procedure(
        refresh_index,
        "Let indices cover fragments that were added or rewritten since.",
        (
            Parameter("name", _TEXT, "the index, by default all"),
            Parameter(
                "num_indices_to_merge",
                _LONG,
                "number of latest parts to merge with the new one; by default 1 of ZONEMAP, and smaller ones of others",
            ),
            Parameter("retrain", _FLAG, "rebuild the indices for all fragments", "false"),
        ),
    ),
    "drop_index": Procedure(drop_index, "Drop an index.", (_required("name", _TEXT, "the index"),)),
    "add_columns": Procedure(
        add_columns,
        "Add columns from a view or table whose rows name rows of the table.",
        (
            _required("source", _TEXT, "the view or table: its key, and the new columns"),
            Parameter("key", _TEXT, "_rowaddr or _rowid; the first of these that the source has by default"),
            Parameter("columns", ArrayType(_TEXT), "the columns to add; all others by default"),
        ),
    ),
    "set_unenforced_primary_key": Procedure(
        set_unenforced_primary_key,
        "Declare the primary key, which merges heed and nothing enforces.",
        (_required("columns", ArrayType(_TEXT), "the columns of the key, in its order"),),
    ),
    "restore": Procedure(
        restore,
        "Make an old version the latest one, as a new version.",
        (
            Parameter("version", _LONG, "the version to restore"),
            Parameter("tag", _TEXT, "the tag of the version to restore"),
            Parameter("timestamp", _TIME, "restore the latest version at this time"),
        ),
    ),
    "history": Procedure(
        history, "List versions, latest first.", (Parameter("limit", _LONG, "maximum number of versions"),)
    ),
    "create_tag": Procedure(
        create_tag,
        "Name a version.",
        (_required("name", _TEXT, "the tag"), Parameter("version", _LONG, "the latest by default")),
    ),
    "update_tag": Procedure(
        update_tag,
        "Let a tag name another version.",
        (_required("name", _TEXT, "the tag"), Parameter("version", _LONG, "the latest by default")),
    ),
    "delete_tag": Procedure(delete_tag, "Delete a tag.", (_required("name", _TEXT, "the tag"),)),
    "create_branch": Procedure(
        create_branch,
        "Create a branch.",
        (
            _required("name", _TEXT, "the branch"),
            Parameter("version", _LONG, "the version to start from; the latest by default"),
            Parameter("tag", _TEXT, "the tag to start from"),
        ),
    ),
    "delete_branch": Procedure(
        delete_branch, "Delete a branch with its versions and files.", (_required("name", _TEXT, "the branch"),)
    ),
    "clone": Procedure(
        clone,
        "Make a version of the table a table of its own.",
        (
            _required("to", _TEXT, "the directory of the clone: an absolute path or a URI"),
            Parameter("version", _LONG, "the version to clone; the latest by default"),
            Parameter("tag", _TEXT, "the tag of the version to clone"),
            Parameter("shallow", _FLAG, "share the files instead of copying them", "false"),
        ),
    ),
}
"""Messages list them in this order."""


def declare() -> list[dict[str, Any]]:
    """Return the declarations of the procedures in JSON form: `name`, `comment`, and `parameters` with Spark types."""
    return [
        {
            "name": name,
            "comment": procedure.comment,
            "parameters": [
                {"name": each.name, "type": each.data_type.json(), "comment": each.comment, "default": each.default}
                for each in (_TABLE, *procedure.parameters)
            ],
        }
        for name, procedure in PROCEDURES.items()
    ]


def call(options: LanceOptions, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Run a procedure, and return its result in JSON form.

    Parameters
    ----------
    options : LanceOptions
        They name the table.
    name : str
        Of the procedure.
    arguments : mapping
        The arguments in JSON form: times and intervals are microseconds.

    Returns
    -------
    dict
        `schema`, as JSON of Spark, and `rows`.

    Raises
    ------
    InvalidInputError
        If a required argument is missing.
    LanceError
        If the procedure fails.
    """
    procedure = PROCEDURES[name]
    missing = [each.name for each in procedure.parameters if each.default is None and arguments.get(each.name) is None]
    if missing:
        raise InvalidInputError(f"the argument {missing[0]!r} of {name} is NULL: a value is needed")
    result = procedure.call(Target(active_session(), options), arguments)
    rows = [[_external(value) for value in row] for row in result.rows]
    return {"schema": result.schema.json(), "rows": rows}


def _external(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        since = value.astimezone(datetime.UTC) - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return since // datetime.timedelta(microseconds=1)
    return value
