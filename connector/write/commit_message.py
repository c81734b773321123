"""Message of a write task to the driver: its partition, its attempt and the fragments that it wrote, as text.

Spark pickles commit messages. This one holds only a string of JSON, which the driver validates like any other input, so
no object of an executor takes part in the commit.

```
{"partition": 3, "attempt": 0, "fragments": [<FragmentMetadata.to_json()>, …]}
```
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from lance_format import CommitError, FragmentMetadata


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
