"""Jobs that write a DataFrame by a data source of their own, whose request describes the planned change."""

from __future__ import annotations

import dataclasses
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql.datasource import DataSource

import lance_format
from connector.active_session import active
from connector.jobs.failures import explain
from connector.jobs.labels import labelled
from connector.options.storage import read_storage, write_storage
from connector.protocol import PRIVATE
from connector.write.plan_writer import PlanWriter
from lance_format import LanceDataset, WriterPlan
from lance_format.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTION = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(ABC):
    """A planned change of a version of a table.

    Parameters
    ----------
    uri : str
    version : int
    uuid : str
        Of the plan, by default a new one.
    storage : mapping of str to str
        Options of the storage. They may hold secrets.
    """

    uri: str
    version: int
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @abstractmethod
    def plan(self, dataset: LanceDataset) -> WriterPlan[Any, Any]:
        """Return the plan, the same one in each process."""

    def open(self) -> LanceDataset:
        """Open the version."""
        return lance_format.dataset(self.uri, self.version, storage_options=self.storage)

    def to_options(self, source: type[DataSource]) -> dict[str, str]:
        """Return options of `format("lance")` that name the request and its data source."""
        values = {name: value for name, value in dataclasses.asdict(self).items() if name != "storage"}
        return {PRIVATE: source.name(), _OPTION: json.dumps(values), **write_storage(self.storage)}

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Rebuild the request from the options that `to_options` returned."""
        values = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in json.loads(options[_OPTION]).items()
        }
        return cls(**values, storage=read_storage(options))  # type: ignore[arg-type]


class RequestWriter(PlanWriter):
    """Writer of a request.

    Parameters
    ----------
    request : Request
    result_type : type
        The class of the results of tasks.
    """

    def __init__(self, request: Request, result_type: Any) -> None:
        super().__init__(request.uri, result_type)
        self._request = request

    def _open(self) -> LanceDataset:
        return self._request.open()

    def _plan(self, dataset: LanceDataset) -> WriterPlan[Any, Any]:
        return self._request.plan(dataset)


def write_rows(
    spark: SparkSession, rows: DataFrame, request: Request, source: type[DataSource], description: str
) -> None:
    """Run the job of a request.

    Parameters
    ----------
    spark : SparkSession
    rows : DataFrame
        The rows that the data source writes.
    request : Request
    source : type of DataSource
        One of `connector.source.private_sources`.
    description : str
        Description of the job; see `connector.jobs.running.run`.

    Raises
    ------
    LanceError
        If a task or the commit fails. No file is left, unless it is unclear whether the commit landed.
    """
    writer = rows.write.format("lance").options(**request.to_options(source)).mode("append")
    try:
        with active(spark), labelled(spark, description, f"lance-{request.uuid}"):
            writer.save()
    except Exception as error:
        raise explain(error, description) from error
