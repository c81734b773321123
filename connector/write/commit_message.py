"""Messages of tasks to the driver.

Spark pickles commit messages. These hold only text or bytes, which the driver validates like any other input, so no
object of an executor takes part in the commit. A write task tells its partition, its attempt and the fragments that it
wrote:

```
{"partition": 3, "attempt": 0, "fragments": [<FragmentMetadata.to_json()>, …]}
```
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import WriterCommitMessage

from lance_format import CommitError, FragmentMetadata, InvalidInputError
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LanceCommitMessage(WriterCommitMessage):
    """The message of one task.

    Parameters
    ----------
    payload : str
        JSON, as above.
    """

    payload: str

    @classmethod
    def of(cls, partition_id: int, attempt: int, fragments: Sequence[FragmentMetadata]) -> LanceCommitMessage:
        """Describe the fragments that an attempt of the task of a partition wrote.

        Parameters
        ----------
        partition_id : int
        attempt : int
            The attempt of the task.
        fragments : sequence of FragmentMetadata
        """
        written = [fragment.to_json() for fragment in fragments]
        return cls(json.dumps({"partition": partition_id, "attempt": attempt, "fragments": written}))

    def parse(self) -> TaskResult:
        """Validate and return the payload.

        Raises
        ------
        CommitError
            If it is malformed.
        """
        try:
            content = json.loads(self.payload)
            partition_id, attempt, fragments = content["partition"], content["attempt"], content["fragments"]
            are_numbers = all(type(number) is int and number >= 0 for number in (partition_id, attempt))
            if not are_numbers or not isinstance(fragments, list):
                raise ValueError("numbers of a partition and an attempt, and a list of fragments are expected")
            return TaskResult(
                partition_id, attempt, tuple(FragmentMetadata.from_json(fragment) for fragment in fragments)
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CommitError(f"a write task sent a malformed commit message: {error}") from error


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The fragments that the task of one partition wrote, in order.

    Parameters
    ----------
    partition_id : int
    attempt : int
        The number of the attempt of the task, from 0.
    fragments : tuple of FragmentMetadata
    """

    partition_id: int
    attempt: int
    fragments: tuple[FragmentMetadata, ...]


@dataclass(frozen=True, slots=True)
class TaskMessage(WriterCommitMessage):
    """The message of a task of a planned change: its result as bytes.

    Parameters
    ----------
    payload : bytes
        Of `to_bytes` of the result.
    """

    payload: bytes

    def parse(self, result_type: Any) -> Any:
        """Return the result.

        Parameters
        ----------
        result_type : type
            The class of the result.

        Raises
        ------
        CommitError
            If the payload is not what a task sends.
        """
        try:
            return result_type.from_bytes(self.payload)
        except InvalidInputError as error:
            raise CommitError(f"a write task sent a malformed commit message: {error}") from error
