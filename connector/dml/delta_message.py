"""Message of a task to the driver: what it changed, as bytes that the library reads like any other input.

Spark pickles commit messages; this one carries nothing but bytes, so that no object of an executor's making ever takes
part in the commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from lance_format import CommitError, InvalidInputError, RowDeltaChanges


@dataclass(frozen=True, slots=True)
class DeltaMessage(WriterCommitMessage):
    """The message of one task.

    Parameters
    ----------
    payload : bytes
        Of `RowDeltaChanges.to_bytes`.
    """

    payload: bytes

    def parse(self) -> RowDeltaChanges:
        """Check the payload and return what it says.

        Raises
        ------
        CommitError
            If it is not what a task sends.
        """
        try:
            return RowDeltaChanges.from_bytes(self.payload)
        except InvalidInputError as error:
            raise CommitError(f"a write task sent a malformed commit message: {error}") from error
