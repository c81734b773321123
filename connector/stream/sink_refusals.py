"""Refusals of the sink: options, modes and triggers that it does not have, by name, before a row is written."""

from __future__ import annotations

from connector.options.options import LanceOptions
from connector.stream.sink_form import SinkForm
from lance_format import InvalidInputError, NotSupportedError

_OF_READS = (
    "version",
    "tag",
    "timestamp",
    "columns",
    "metadata_columns",
    "filter",
    "split_size_bytes",
    "batch_size",
    "metadata_table",
)
_WAY_OF_BATCHES = (
    "write each batch by writeStream.foreachBatch(…): a LanceTable.merge there, or df.write with the options"
    " 'txnAppId' and 'txnVersion', is committed once too"
)


def check_sink(options: LanceOptions, form: SinkForm | None) -> None:
    """Refuse options, modes and triggers that the sink does not have.

    Parameters
    ----------
    options : LanceOptions
        Those of the query.
    form : SinkForm, optional
        What is known of the query; nothing if it is None.

    Raises
    ------
    InvalidInputError
        If an option is none of a sink, or contradicts the mode.
    NotSupportedError
        If the mode is not supported.
    """
    given = [*(name for name in _OF_READS if getattr(options, name)), *options.changes.given()]
    if given:
        raise InvalidInputError(f"option {given[0]!r} is for reading, and not for the sink of a stream; leave it out")
    if options.sink.txn_app_id is not None:
        raise InvalidInputError(
            "a stream has the id of its query for 'txnAppId', and the numbers of its batches for 'txnVersion'; leave"
            " these options out"
        )
    if form is None:
        return
    key = options.sink.merge_key
    if form.mode == "update" and not key:
        raise NotSupportedError(
            "output mode 'update' needs the option 'mergeKey', which names the columns by which rows of the stream"
            f" replace those of the table; or {_WAY_OF_BATCHES}"
        )
    if key and form.mode == "complete":
        raise InvalidInputError(
            "option 'mergeKey' is for the output modes 'update' and 'append'; a complete batch replaces all rows"
        )
    if key and not form.is_planned:
        raise NotSupportedError(
            "option 'mergeKey' takes the planner, which brings the rows of one key together: import pyspark_lance in"
            " the program that makes the session, or call pyspark_lance.register(spark); through Spark Connect,"
            f" {_WAY_OF_BATCHES}"
        )


def refuse_sink_options(options: LanceOptions) -> None:
    """Refuse options that only streams have.

    Raises
    ------
    InvalidInputError
        Naming the first.
    """
    given = options.sink.of_streams()
    if given:
        raise InvalidInputError(f"option {given[0]!r} is for streams, df.writeStream; leave it out of df.write")
