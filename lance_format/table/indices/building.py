"""Making indices of columns, and keeping them up to date.

The kinds that this library makes are in `lance_format.table.indices.index_kinds`; others are left unchanged. Tasks read
the column of some fragments, and return what they have found, or the parts of the index that they have written.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from lance_format.datatypes import Field, Schema
from lance_format.errors import InvalidInputError, RetryableCommitConflictError
from lance_format.lazy_dataclasses import dataclass
from lance_format.progress import Work, expect
from lance_format.table.format.field_paths import find_field
from lance_format.table.format.index_metadata import SYSTEM_INDICES, IndexMetadata
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.indices.catalog import path_of
from lance_format.table.indices.column_values import narrowed
from lance_format.table.indices.index_config import IndexConfig, check_indexable, parse_config
from lance_format.table.indices.index_kind import IndexKind, PlannedIndexPart
from lance_format.table.indices.index_kinds import KINDS, made_here
from lance_format.table.transaction.operations import CreateIndex
from lance_format.table.versions.commit import Precondition
from lance_format.table.versions.open_table import OpenTable
from lance_format.table.versions.planned_change import ChangePlan, ChangeTask, delete_unnamed, run_change
from lance_format.table.versions.table_version import Draft, TableVersion

Divide = Callable[[TableVersion, Sequence[int], Schema], Sequence[tuple[int, ...]]]
"""A function that divides fragments, given by position in the list of a version, among tasks that read some columns."""


def _undivided(table: TableVersion, positions: Sequence[int], schema: Schema) -> Sequence[tuple[int, ...]]:
    """Assign all fragments to one task."""
    del table, schema
    return [tuple(positions)] if positions else []


@dataclass(frozen=True, slots=True)
class TrainedIndex:
    """Result of a task. Can be pickled.

    Parameters
    ----------
    number : int
        Of the task.
    uuid : str
        Of the plan.
    content : object
        Of the kind of the index.
    """

    number: int
    uuid: str
    content: Any


@dataclass(frozen=True, slots=True)
class TrainIndexTask(ChangeTask[TrainedIndex]):
    """Task that reads a column of some fragments for an index.

    Parameters
    ----------
    read_version : int
    number : int
        Number of the task within the plan.
    uuid : str
        The uuid of the plan.
    part : PlannedIndexPart
    positions : tuple of int
        Positions of the fragments in the list of the version.
    """

    read_version: int
    number: int
    uuid: str
    part: PlannedIndexPart
    positions: tuple[int, ...]

    def run(self, table: TableVersion) -> TrainedIndex:
        """Find what the index needs; see `execute`."""
        path = path_of(table.manifest.schema.fields, self.part.field_id)
        fragments = [table.manifest.fragments[position] for position in self.positions]
        content = KINDS[self.part.kind].train(table, self.uuid, self.part, path, fragments)
        return TrainedIndex(self.number, self.uuid, content)


@dataclass(frozen=True, slots=True)
class ChangedIndices:
    """Names of the indices that got a new part, and of those that were dropped."""

    built: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexPlan(ChangePlan[TrainedIndex, ChangedIndices]):
    """Planned parts of indices. Made by `plan_scalar_index`, `plan_optimize_indices` and `plan_rebuild`.

    Parameters
    ----------
    read_version : int
    uuid : str
    parts : tuple of PlannedIndexPart
        Of different indices. If there is none, and nothing to drop, the commit makes no version.
    tasks : tuple of TrainIndexTask
    dropped : tuple of str
        Names of indices to drop.
    """

    read_version: int
    uuid: str
    parts: tuple[PlannedIndexPart, ...]
    tasks: tuple[TrainIndexTask, ...]
    dropped: tuple[str, ...] = ()

    def announce(self, table: TableVersion) -> None:
        """Tell the physical rows and the bytes of the fragments to read, once per index."""
        columns = table.manifest.fragments.columns
        positions = [position for task in self.tasks for position in task.positions]
        num_rows = int(columns.physical_rows[positions].sum())
        expect(Work.INDEXING, num_rows, int(columns.size_bytes[positions].sum()))

    def operation(self, draft: Draft, results: Sequence[TrainedIndex]) -> CreateIndex | None:
        """Write the files of the parts, and drop other indices."""
        found = {result.number: result.content for result in results}
        new: list[IndexMetadata] = []
        replaced = {uuid for part in self.parts for uuid in part.replaced}
        indices = draft.table.manifest.indices
        removed = tuple(index for index in indices if index.name in self.dropped or index.uuid in replaced)
        for part in self.parts:
            contents = [found[task.number] for task in self.tasks if task.part.name == part.name]
            new += KINDS[part.kind].write(draft, part, contents)
        return CreateIndex(tuple(new), removed) if new or removed else None

    def precondition(self, table: TableVersion, results: Sequence[TrainedIndex]) -> Precondition | None:  # noqa: ARG002
        """Return a check that no other writer has dropped a column; see `ChangePlan.precondition`."""

        def check(latest: Manifest) -> None:
            for part in self.parts:
                if not path_of(latest.schema.fields, part.field_id):
                    raise RetryableCommitConflictError(
                        f"the column of index {part.name!r}, planned on version {self.read_version}, was dropped or"
                        " cast by another writer concurrently; nothing was changed: run it again on the latest version"
                    )

        return check

    def discard_lost(self, dataset: OpenTable) -> None:
        """Delete the files of task runs whose results were not committed; see `ChangePlan.discard_lost`."""
        delete_unnamed(dataset._table.directory, self.uuid, self.read_version, TableDirectory.index_files_of)

    def outcome(self, results: Sequence[TrainedIndex]) -> ChangedIndices:  # noqa: ARG002
        """Return the names of the indices."""
        return ChangedIndices(tuple(part.name for part in self.parts), self.dropped)


def plan_scalar_index(
    table: TableVersion,
    column: str | Sequence[str],
    index_type: str | IndexConfig,
    name: str | None = None,
    *,
    replace: bool = True,
    train: bool = True,
    divide: Divide = _undivided,
) -> IndexPlan:
    """Plan an index of a column.

    Parameters
    ----------
    table : TableVersion
    column : str or sequence of str
        Name of the column, or the dotted path of a field below structs. A sequence holds exactly one.
    index_type : str or IndexConfig
        A kind of `IndexConfig`, or an object with the attributes of one.
    name : str, optional
        Name of the index, by default that of the column with `_idx`.
    replace : bool
        Whether to replace an index of that name.
    train : bool
        Whether the index covers all fragments. Otherwise it covers none until its update.
    divide : callable
        Divides the fragments among tasks.

    Raises
    ------
    InvalidInputError
        If the column does not exist, the index exists and is not replaced, or a parameter is invalid.
    NotSupportedError
        If the index type is another one, or the column cannot have such an index.
    """
    names = [column] if isinstance(column, str) else list(column)
    if len(names) != 1 or not isinstance(names[0], str):
        raise InvalidInputError(f"column is {column!r}; an index is of one, whose name is needed")
    column = names[0]
    path = find_field(table.manifest.schema, column)
    check_indexable(path, column)
    kind, details = parse_config(index_type, path[-1])
    name = f"{column}_idx" if name is None else name
    if not name or name in SYSTEM_INDICES:
        raise InvalidInputError(f"an index cannot be called {name!r}; choose another name")
    former = tuple(index.uuid for index in table.manifest.indices if index.name == name)
    if former and not replace:
        raise InvalidInputError(f"there is an index {name!r} already; choose another name, or replace it")
    part = PlannedIndexPart(name, path[-1].id, kind.name, details, former)
    positions = range(len(table.manifest.fragments)) if train else ()
    part = kind.prepare(table, part, path, positions)
    identity = str(uuid.uuid4())
    tasks = tuple(_tasks(table, identity, path, part, positions, divide))
    return IndexPlan(table.manifest.version, identity, (part,), tasks)


def create_scalar_index(
    table: TableVersion,
    column: str | Sequence[str],
    index_type: str | IndexConfig,
    name: str | None = None,
    *,
    replace: bool = True,
    train: bool = True,
) -> TableVersion:
    """Create an index of a column and commit it; see `plan_scalar_index`."""
    return run_change(table, plan_scalar_index(table, column, index_type, name, replace=replace, train=train))[0]


def plan_optimize_indices(
    table: TableVersion,
    *,
    index_names: Collection[str] | None = None,
    num_indices_to_merge: int | None = None,
    retrain: bool = False,
    divide: Divide = _undivided,
) -> IndexPlan:
    """Plan an update of indices to cover all fragments.

    Parameters
    ----------
    table : TableVersion
    index_names : collection of str, optional
        The indices to update, by default all. Those of other kinds are ignored.
    num_indices_to_merge : int, optional
        Number of latest parts of each index to merge with the new one, if there are new fragments. With 0 the index
        gets one more part. By default one of ZONEMAP indices, and of others those that have fewer rows.
    retrain : bool
        Whether to rebuild the indices, as one part each.
    divide : callable
        Divides the fragments among tasks.

    Raises
    ------
    InvalidInputError
        If an index does not exist, or a number is invalid.
    """
    if num_indices_to_merge is not None and (isinstance(num_indices_to_merge, bool) or num_indices_to_merge < 0):
        raise InvalidInputError(f"num_indices_to_merge is {num_indices_to_merge!r}; a whole number from 0 on is needed")
    known = dict.fromkeys(index.name for index in table.manifest.indices if not index.is_system)
    for name in () if index_names is None else index_names:
        if isinstance(index_names, str) or name not in known:
            raise InvalidInputError(f"there is no index {name!r}; the indices are {', '.join(known) or '(none)'}")
    identity, parts = str(uuid.uuid4()), list[PlannedIndexPart]()
    tasks: list[TrainIndexTask] = []
    for name in known if index_names is None else dict.fromkeys(index_names):
        update = _plan_update(table, name, num_indices_to_merge, retrain)
        if update is not None:
            part, path, positions = update
            parts.append(part)
            tasks += _tasks(table, identity, path, part, positions, divide, first_number=len(tasks))
    return IndexPlan(table.manifest.version, identity, tuple(parts), tuple(tasks))


def optimize_indices(
    table: TableVersion,
    *,
    index_names: Collection[str] | None = None,
    num_indices_to_merge: int | None = None,
    retrain: bool = False,
) -> TableVersion:
    """Update indices to cover all fragments, and commit the change; commit nothing if they already do.

    See `plan_optimize_indices`.
    """
    plan = plan_optimize_indices(
        table, index_names=index_names, num_indices_to_merge=num_indices_to_merge, retrain=retrain
    )
    return run_change(table, plan)[0]


def indices_behind(before: TableVersion, after: TableVersion) -> list[str]:
    """Return the names of indices that covered fragments which have been replaced since.

    Parameters
    ----------
    before, after : TableVersion
        An earlier version, and a later one whose indices are meant. Those of kinds that this library does not make are
        left out.
    """
    gone = np.setdiff1d(before.manifest.fragments.columns.ids, after.manifest.fragments.columns.ids)
    covering = {index.name for index in before.manifest.indices if np.isin(index.covered_ids(), gone).any()}
    left = dict.fromkeys(index.name for index in after.manifest.indices if not index.is_system)
    return [name for name in left if name in covering and can_rebuild(after, name)]


def can_rebuild(table: TableVersion, name: str) -> bool:
    """Return whether an index is of a kind that this library makes."""
    return _known_parts(table, name) is not None


def plan_rebuild(
    table: TableVersion, names: Collection[str], excluded_fragment_ids: Collection[int], *, divide: Divide = _undivided
) -> IndexPlan:
    """Plan to build indices again without reading them; those that this library cannot build are dropped.

    Parameters
    ----------
    table : TableVersion
    names : collection of str
        The indices.
    excluded_fragment_ids : collection of int
        Fragments that are not read. The indices will not cover them.
    divide : callable
        Divides the fragments among tasks.
    """
    identity, parts, dropped = str(uuid.uuid4()), list[PlannedIndexPart](), list[str]()
    tasks: list[TrainIndexTask] = []
    ids = table.manifest.fragments.columns.ids.tolist()
    positions = [position for position, number in enumerate(ids) if number not in excluded_fragment_ids]
    for name in sorted(names):
        known = _known_parts(table, name)
        if known is None:
            dropped.append(name)
        else:
            path = known.path
            part = known.retrained(table, positions)
            parts.append(part)
            tasks += _tasks(table, identity, path, part, positions, divide, first_number=len(tasks))
    return IndexPlan(table.manifest.version, identity, tuple(parts), tuple(tasks), tuple(dropped))


def _tasks(
    table: TableVersion,
    identity: str,
    path: Sequence[Field],
    part: PlannedIndexPart,
    positions: Sequence[int],
    divide: Divide,
    first_number: int = 0,
) -> Iterator[TrainIndexTask]:
    """Yield the tasks that read fragments."""
    groups = KINDS[part.kind].join(divide(table, positions, Schema((narrowed(path),), {})))
    for number, group in enumerate(groups, first_number):
        yield TrainIndexTask(table.manifest.version, number, identity, part, group)


def _plan_update(
    table: TableVersion, name: str, num_to_merge: int | None, retrain: bool
) -> tuple[PlannedIndexPart, Sequence[Field], Sequence[int]] | None:
    """Return the part for the fragments that no other part covers, its column, and the fragments to read.

    None if all fragments are covered, or the index is of another kind.
    """
    known = _known_parts(table, name)
    if known is None:
        return None
    if retrain:
        positions = range(len(table.manifest.fragments))
        return known.retrained(table, positions), known.path, positions
    update = known.kind.plan_update(table, known.parts, known.path, num_to_merge)
    if update is None:
        return None
    return known.kind.prepare(table, update[0], known.path, update[1]), known.path, update[1]


@dataclass(frozen=True, slots=True)
class _KnownParts:
    """The parts of an index that this library can make: their kind, and the fields down to the indexed one."""

    kind: IndexKind[Any, Any]
    parts: tuple[IndexMetadata, ...]
    path: tuple[Field, ...]

    def retrained(self, table: TableVersion, positions: Sequence[int]) -> PlannedIndexPart:
        """Return a part that replaces them all, and covers fragments given by position."""
        last, replaced = self.parts[-1], tuple(index.uuid for index in self.parts)
        details = self.kind.untrained(self.kind.stored_details(table, last))
        part = PlannedIndexPart(last.name, self.path[-1].id, self.kind.name, details, replaced)
        return self.kind.prepare(table, part, self.path, positions)


def _known_parts(table: TableVersion, name: str) -> _KnownParts | None:
    """Return the parts of an index, without reading them; None if one is of another kind or an unknown form."""
    parts = tuple(index for index in table.manifest.indices if index.name == name)
    kind = made_here(parts[-1])
    path = path_of(table.manifest.schema.fields, parts[0].fields[0]) if parts[0].fields else ()
    if kind is None or not path or not all(made_here(index) is kind and kind.knows(index) for index in parts):
        return None
    return _KnownParts(kind, parts, path)
