"""The declaration of a procedure, and the table that it runs on."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.types import ArrayType, DataType, DayTimeIntervalType, StructField, StructType, TimestampType

from connector.jobs import retrying
from connector.jobs.running import run
from connector.options.options import LanceOptions
from connector.options.snapshot import branch_uri, open_at
from lance_format import ChangePlan, InvalidInputError, LanceDataset
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
_ATTEMPTS = 5
_FLAGS = {"true": True, "false": False}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def columns(**types: DataType) -> StructType:
    """Return the columns of a result by their names."""
    return StructType([StructField(name, data_type) for name, data_type in types.items()])


@dataclass(frozen=True, slots=True)
class Result:
    """Rows that a procedure returns.

    Parameters
    ----------
    schema : StructType
    rows : sequence of sequence
    """

    schema: StructType
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Target:
    """The table or branch that a procedure runs on.

    Parameters
    ----------
    spark : SparkSession or None
        The session that runs jobs. If it is None, the work is done in this process.
    options : LanceOptions
    """

    spark: SparkSession | None
    options: LanceOptions

    def open(self) -> LanceDataset:
        """Open the latest version."""
        return open_at(self.options, branch_uri(self.options))

    def change(
        self, plan: Callable[[LanceDataset], ChangePlan[Any, T]], describe: Callable[[ChangePlan[Any, T]], str]
    ) -> tuple[LanceDataset, T]:
        """Plan a change, and run it as a job. Plan it again after a conflict with another writer.

        Parameters
        ----------
        plan : callable
            Plans the change of a version.
        describe : callable
            Returns the description of the job.

        Returns
        -------
        LanceDataset
            The version that the change made.
        T
            The outcome of the change.
        """
        return self.retry(lambda: self._change_once(plan, describe))

    def retry(self, attempt: Callable[[], T]) -> T:
        """Make several attempts at a change while other writers change the same rows, and return its outcome."""
        return retrying.retry(attempt, _ATTEMPTS)

    def _change_once(
        self, plan: Callable[[LanceDataset], ChangePlan[Any, T]], describe: Callable[[ChangePlan[Any, T]], str]
    ) -> tuple[LanceDataset, T]:
        dataset = self.open()
        planned = plan(dataset)
        outcome = run(self.spark, dataset, planned, description=describe(planned))
        return dataset, outcome


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure.

    Parameters
    ----------
    name : str
    data_type : DataType
    comment : str
    default : str, optional
        Its default in SQL; None if the argument is required.
    """

    name: str
    data_type: DataType
    comment: str
    default: str | None = "NULL"

    def parse(self, value: Any) -> Any:
        """Return an argument as a Python value. NULL means the default.

        Raises
        ------
        InvalidInputError
            If an item of an array is NULL.
        """
        if value is None:
            return self._default_value()
        if isinstance(self.data_type, ArrayType) and None in value:
            raise InvalidInputError(f"{self.name} is {value!r}; an array without NULL is needed")
        if isinstance(self.data_type, DayTimeIntervalType):
            return datetime.timedelta(microseconds=value)
        if isinstance(self.data_type, TimestampType):
            return _EPOCH + datetime.timedelta(microseconds=value)
        return value

    def _default_value(self) -> str | bool | None:
        if self.default is None or self.default == "NULL":
            return None
        return _FLAGS.get(self.default, self.default.strip("'"))


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure.

    Parameters
    ----------
    run : callable
        Takes the target and the arguments by name, and returns a `Result`.
    comment : str
        What it does.
    parameters : tuple of Parameter
        Those after `table`, which comes first.
    """

    run: Callable[..., Result]
    comment: str
    parameters: tuple[Parameter, ...] = ()

    def call(self, target: Target, arguments: Mapping[str, Any]) -> Result:
        """Run the procedure with arguments in JSON form.

        Raises
        ------
        InvalidInputError
            If there is no such argument, or an item of an array is NULL.
        """
        names = [each.name for each in self.parameters]
        for name in arguments:
            if name not in names:
                raise InvalidInputError(f"there is no option or argument {name!r}; there are {', '.join(names)}")
        return self.run(target, **{each.name: each.parse(arguments.get(each.name)) for each in self.parameters})
