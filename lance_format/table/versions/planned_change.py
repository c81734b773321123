"""The shape of every change of a table: a plan, its tasks, their results, one commit.

Making a *plan* reads a version of the table and writes nothing. The plan and its *tasks* are values, which can be
pickled and sent to other processes. A task writes files that no reader sees, and returns a *result*, which is a value
too. A task may run anywhere, and again if a first run was lost. The *commit* makes one version of the results. One
process, a pool of threads and a cluster run a change alike:

>>> plan = dataset.plan_update({"name": "upper(name)"}, where="id > 5", split_size_bytes=1 << 26)  # doctest: +SKIP
>>> results = list(pool.map(lambda task: task.execute(dataset), plan.tasks))  # doctest: +SKIP
>>> plan.commit(dataset, results)  # doctest: +SKIP
UpdateResult(num_rows_updated=1044)

All files of a plan carry its uuid in their names, or its results name them. A failed commit and an aborted plan can
therefore delete them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from lance_format.arguments import checked_methods
from lance_format.errors import CommitStateUnknownError, InvalidInputError, LanceError, VersionNotFoundError
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.fragments.writer import list_data_files
from lance_format.table.transaction.operations import Operation
from lance_format.table.versions.checkout import check_out
from lance_format.table.versions.cleanup.garbage import directories_of, remove_directories
from lance_format.table.versions.commit import Precondition
from lance_format.table.versions.history import load_history
from lance_format.table.versions.named_files import named_files
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.table_version import Draft, TableVersion


class TaskResult(Protocol):
    """Result of a task: a value that can be pickled."""

    @property
    def number(self) -> int:
        """The number of the task."""

    @property
    def uuid(self) -> str:
        """The uuid of the plan, which alone may commit the result."""


R = TypeVar("R", bound=TaskResult)
T = TypeVar("T")
Executor = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""A function like `map`, such as that of a pool of threads."""


@checked_methods
class ChangeTask(ABC, Generic[R]):
    """A part of a planned change: a value that can be pickled.

    Attributes
    ----------
    read_version : int
        The version that the change was planned on.
    number : int
        Number of the task within the plan.
    """

    __slots__ = ()
    read_version: int
    if TYPE_CHECKING:  # A dataclass would use a property of its base as the default of its field.

        @property
        def number(self) -> int:
            """Number of the task within the plan."""

    @abstractmethod
    def run(self, table: TableVersion) -> R:
        """Run the task on the version that the change was planned on."""

    def execute(self, dataset: OpenTable) -> R:
        """Run the task: write files that no reader sees before the commit, and return the result.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.

        Raises
        ------
        LanceError
            If the task fails. Its files remain until the plan is committed or aborted.
        """
        return self.run(check_out(dataset._table, self.read_version))


@checked_methods
class ChangePlan(ABC, Generic[R, T]):
    """A planned change: a value that can be pickled.

    Attributes
    ----------
    read_version : int
        The version that the change was planned on.
    uuid : str
        Identifies the transaction, and the files that its tasks write.
    tasks : sequence of ChangeTask
        The tasks, in any order.
    """

    __slots__ = ()
    read_version: int
    uuid: str
    tasks: Sequence[ChangeTask[R]]

    @abstractmethod
    def operation(self, draft: Draft, results: Sequence[R]) -> Operation | None:
        """Return the operation of the results, and write files that only the commit can write.

        None if nothing changes; the commit then makes no version.

        Parameters
        ----------
        draft : Draft
            The draft of the version that the change was planned on. The files are added to it.
        results : sequence
        """

    @abstractmethod
    def outcome(self, results: Sequence[R]) -> T:
        """Return the outcome of the change, such as counts of rows."""

    def input_bytes(self, dataset: OpenTable) -> int | None:
        """Return the maximum size of the files that all tasks together read, or None if it is unknown.

        Parameters
        ----------
        dataset : LanceDataset
            The version that the change was planned on.
        """
        return bytes_of(dataset._table.manifest.fragments)

    def announce(self, table: TableVersion) -> None:
        """Tell those who watch the progress how much work the tasks have; see `lance_format.progress.expect`."""

    def identity(self, results: Sequence[R]) -> str:  # noqa: ARG002
        """Return the uuid of the transaction that commits results."""
        return self.uuid

    def properties(self, results: Sequence[R]) -> Mapping[str, str]:  # noqa: ARG002
        """Return notes to keep with the transaction, which `transaction_properties` has."""
        return {}

    def precondition(self, table: TableVersion, results: Sequence[R]) -> Precondition | None:  # noqa: ARG002
        """Return the check that runs before each attempt to create the new version; see `commit`."""
        return None

    def files(self, results: Sequence[R]) -> Iterable[str]:  # noqa: ARG002
        """Return the paths, relative to the table, of files that tasks wrote and that do not carry the uuid."""
        return ()

    def own(self, results: Iterable[R]) -> list[R]:
        """Check that results are of this plan, and return them.

        Plans have equal numbers of tasks by chance. Results of another plan name other rows and files.

        Raises
        ------
        InvalidInputError
            If one is of another plan.
        """
        given = list(results)
        for result in given:
            number, plan = getattr(result, "number", None), getattr(result, "uuid", None)
            if number is None or plan is None:
                raise InvalidInputError(f"the results of tasks are needed; one is {repr(result)[:200]}")
            if plan != self.uuid:
                raise InvalidInputError(
                    f"the result of task {number} is of the plan {plan}, not of this one, {self.uuid}: commit the"
                    " results of a plan by that plan; nothing was changed"
                )
        return given

    def checked(self, results: Iterable[R]) -> list[R]:
        """Check that there is one result per task of this plan, and return them.

        Raises
        ------
        InvalidInputError
            If a result is missing or of another plan, or there are several of one task.
        """
        given = self.own(results)
        counts = Counter(result.number for result in given)
        counts.subtract(task.number for task in self.tasks)
        wrong = min((number for number, count in counts.items() if count), default=None)
        if wrong is not None:
            raise InvalidInputError(
                f"there are {len(given)} results of {len(self.tasks)} tasks, and those of task {wrong} are"
                f" {'missing' if counts[wrong] < 0 else 'too many'}: commit one of each task"
            )
        return given

    def commit(self, dataset: OpenTable, results: Iterable[R]) -> T:
        """Make one version of the results, and move the dataset to it. A second commit changes nothing.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.
        results : iterable
            One result per task.

        Raises
        ------
        InvalidInputError
            If there is not one result per task of this plan. Nothing is changed, and no file deleted.
        RetryableCommitConflictError
            If another writer changed the same rows, or a cleanup removed the versions since the plan was made: plan the
            change again. The files of the results are deleted.
        CommitStateUnknownError
            If it is unclear whether the commit landed. The files are kept.
        """
        return self._commit(dataset, self.checked(results))

    def _commit(self, dataset: OpenTable, given: list[R], *, keeps_rows: bool = False) -> T:
        """Commit results; see `Draft` for the keeping of rows."""
        table = self.find_planned(dataset)
        landed = self._find_landed(table)
        if landed is not None:
            dataset._table = dataclasses.replace(table, manifest=landed)
        else:
            with Draft(table, self.uuid, self._paths(table, given), is_shared=True, keeps_rows=keeps_rows) as draft:
                dataset._table = _land(draft, self, given) or dataset._table
        return self.outcome(given)

    def find_planned(self, dataset: OpenTable) -> TableVersion:
        """Return the version that the change was planned on, from the dataset if a cleanup has removed it.

        Raises
        ------
        VersionNotFoundError
            If it was removed, and the dataset is at another version.
        """
        try:
            return check_out(dataset._table, self.read_version)
        except VersionNotFoundError:
            if dataset._table.manifest.version != self.read_version:
                raise
            return dataset._table

    def _find_landed(self, table: TableVersion) -> Manifest | None:
        """Return the version that an earlier commit of the plan made, or None."""
        try:
            return table.history().find_transaction(self.uuid, self.read_version)
        except VersionNotFoundError as error:
            raise CommitStateUnknownError(
                f"{error}: a cleanup removed it, so that it cannot be told whether the change was committed before; no"
                " file was deleted. Look at the latest version before running it again"
            ) from error

    def abort(self, dataset: OpenTable, results: Iterable[R] = ()) -> None:
        """Delete the files that tasks have written, unless they are part of the table.

        Parameters
        ----------
        dataset : LanceDataset
        results : iterable
            Results of the tasks that have ended.

        Raises
        ------
        InvalidInputError
            If a result is of another plan. No file is deleted.
        """
        ended = self.own(results)
        table = self.find_planned(dataset)
        Draft(table, self.uuid, self._paths(table, ended)).discard()

    def discard_lost(self, dataset: OpenTable) -> None:
        """Delete the files of task runs whose results were not committed.

        A cluster may run a task more than once. The commit takes one result, and the files of the other runs remain.
        Call it after the commit of all results, once no task runs.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.
        """
        delete_unnamed(dataset._table.directory, self.uuid, self.read_version)

    def _paths(self, table: TableVersion, results: Sequence[R]) -> list[str]:
        return [f"{table.root}/{path}" for path in self.files(results)]


class WriterPlan(ChangePlan[R, T]):
    """A planned change whose caller has the rows: it opens a writer per task, and decides how many tasks there are.

    Tasks are numbered from 0. `finish()` of a writer returns the result of its task.
    """

    __slots__ = ()
    tasks: Sequence[ChangeTask[R]] = ()

    @abstractmethod
    def open_writer(self, dataset: OpenTable, number: int) -> Any:
        """Return the writer of a task, which is a context manager that deletes its files after an exception.

        Parameters
        ----------
        dataset : LanceDataset
            Any version of the table.
        number : int
            Number of the task, from 0.
        """

    def checked(self, results: Iterable[R]) -> list[R]:
        """Check that there is one result per task, and return them in the order of the tasks.

        Raises
        ------
        InvalidInputError
            If a result is missing or of another plan, or there are several of one task.
        """
        given = sorted(self.own(results), key=lambda result: result.number)
        numbers = [result.number for result in given]
        if numbers != list(range(len(given))):
            raise InvalidInputError(f"one result of each task from 0 to {len(given) - 1} is needed, not of {numbers}")
        return given


def run_change(table: TableVersion, plan: ChangePlan[R, T], executor: Executor = map) -> tuple[TableVersion, T]:
    """Run the tasks of a plan, and commit their results.

    Parameters
    ----------
    table : TableVersion
        The version that the change was planned on.
    plan : ChangePlan
    executor : callable
        Runs the tasks.

    Returns
    -------
    TableVersion
        The new version; the given one if nothing changed.
    T
        The outcome of the change.

    Raises
    ------
    LanceError
        If a task or the commit fails. No file is left, unless it is unclear whether the commit landed.
    """
    with Draft(table, plan.uuid) as draft:
        results = run_tasks(table, plan, executor)
        draft.paths += plan._paths(table, results)
        return _land(draft, plan, results) or table, plan.outcome(results)


def run_tasks(table: TableVersion, plan: ChangePlan[R, T], executor: Executor = map) -> list[R]:
    """Run the tasks of a plan without committing; see `run_change`. Files of tasks remain even if one fails."""
    plan.announce(table)
    return list(executor(lambda task: task.run(table), plan.tasks))


def bytes_of(fragments: Iterable[FragmentMetadata]) -> int | None:
    """Return the size of the data files of fragments, or None if the table does not record it."""
    sizes = [file.file_size_bytes for fragment in fragments for file in fragment.files]
    return sum(sizes) if all(sizes) else None


def delete_unnamed(
    directory: TableDirectory,
    uuid: str,
    after: int,
    list_written: Callable[[TableDirectory, str], list[str]] = list_data_files,
) -> None:
    """Delete the files of a change that no version names.

    Parameters
    ----------
    directory : TableDirectory
        The directory of the branch that was changed.
    uuid : str
        The uuid in the names of the files.
    after : int
        The version that the change was planned on. Only later versions may name the files.
    list_written : callable
        Returns the paths of the files, by default those of data files.
    """
    with contextlib.suppress(LanceError):
        written = list_written(directory, uuid)
        if not written:
            return
        used: set[str] = set()
        history = load_history(directory)
        for version in history.names:
            if version > after:
                used.update(named_files(history.load(version), directory))
        unnamed = [path for path in written if path not in used and path.rpartition("/")[0] not in used]
        directory.store.delete_all(unnamed)
        remove_directories(directory.store, directories_of(unnamed, directory))


def _land(draft: Draft, plan: ChangePlan[R, T], results: Sequence[R]) -> TableVersion | None:
    operation = plan.operation(draft, results)
    if operation is None:
        return None
    precondition = plan.precondition(draft.table, results)
    return draft.commit(
        operation, uuid=plan.identity(results), precondition=precondition, properties=plan.properties(results)
    )
