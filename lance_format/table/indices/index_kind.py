"""What the kinds of indices have in common: how one is asked for, trained, written and brought up to date."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.versions.table_version import Draft, TableVersion

D = TypeVar("D")
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class PlannedIndexPart:
    """Planned part of an index. Can be pickled.

    Parameters
    ----------
    name : str
        Of the index.
    field_id : int
        Of the column.
    kind : str
        See `lance_format.table.indices.index_kinds.KINDS`.
    details : object
        Parameters of the kind.
    replaced : tuple of str
        The uuids of the parts that it replaces.
    keeps_content : bool
        Whether it keeps their content.
    known_ids : frozenset of int
        Fragments that the other parts of the index cover.
    """

    name: str
    field_id: int
    kind: str
    details: Any
    replaced: tuple[str, ...] = ()
    keeps_content: bool = False
    known_ids: frozenset[int] = frozenset()


class IndexKind(ABC, Generic[D, C]):
    """A kind of index. `D` are its parameters, `C` is what a task finds in some fragments; both can be pickled."""

    name: str
    """As users spell it."""

    @abstractmethod
    def configure(self, parameters: Mapping[str, Any], field: Field) -> D:
        """Return the parameters of a new index, with defaults filled in.

        Parameters
        ----------
        parameters : mapping of str to object
            As users give them.
        field : Field
            The column.

        Raises
        ------
        InvalidInputError
            If one is unknown or invalid.
        NotSupportedError
            If values of the column cannot be indexed in this way.
        """

    def prepare(
        self,
        table: TableVersion,  # noqa: ARG002
        part: PlannedIndexPart,
        path: Sequence[Field],  # noqa: ARG002
        positions: Sequence[int],  # noqa: ARG002
    ) -> PlannedIndexPart:
        """Return a part with all that its tasks need, which the planner finds out.

        Parameters
        ----------
        table : TableVersion
        part : PlannedIndexPart
        path : sequence of Field
            See `train`.
        positions : sequence of int
            Of the fragments that the tasks will read.
        """
        return part

    def join(self, groups: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        """Return what tasks read, joined if they are to be fewer.

        Parameters
        ----------
        groups : sequence of tuple of int
            Positions of fragments.
        """
        return groups

    def untrained(self, details: D) -> D:
        """Return the parameters of an index that is made again from those of a stored part."""
        return details

    @abstractmethod
    def knows(self, index: IndexMetadata) -> bool:
        """Return whether a part of an index of this kind is of a known form."""

    @abstractmethod
    def stored_details(self, table: TableVersion, index: IndexMetadata) -> D:
        """Return the parameters of a part of a known form; its files may be read for that."""

    def told(self, index: IndexMetadata) -> Mapping[str, Any]:
        """Return what the manifest tells of a part, for users; see `IndexDescription`."""
        del index
        return {}

    @abstractmethod
    def check(self, table: TableVersion, index: IndexMetadata) -> None:
        """Read the whole content of a part of an index of this kind, as searches do, some of it at a time.

        Parameters
        ----------
        table : TableVersion
        index : IndexMetadata

        Raises
        ------
        UnusableError
            If it is of a form that is not known here.
        NotSupportedError
            If its files are.
        CorruptFileError
            If it is malformed, or names rows that there are not.
        DatasetNotFoundError
            If a file is missing.
        """

    @abstractmethod
    def train(
        self,
        table: TableVersion,
        uuid: str,
        part: PlannedIndexPart,
        path: Sequence[Field],
        fragments: Sequence[FragmentMetadata],
    ) -> C:
        """Read a column of some fragments.

        Parameters
        ----------
        table : TableVersion
        uuid : str
            Of the plan; it is part of the names of files that are written.
        part : PlannedIndexPart
        path : sequence of Field
            The fields from a column to the indexed field.
        fragments : sequence of FragmentMetadata
        """

    @abstractmethod
    def write(self, draft: Draft, part: PlannedIndexPart, contents: Sequence[C]) -> tuple[IndexMetadata, ...]:
        """Return the parts that the contents found by all tasks become; files that are still to be written are.

        Parameters
        ----------
        draft : Draft
            Files that are written are added to it.
        part : PlannedIndexPart
        contents : sequence
        """

    @abstractmethod
    def plan_update(
        self, table: TableVersion, parts: Sequence[IndexMetadata], path: Sequence[Field], num_to_merge: int | None
    ) -> tuple[PlannedIndexPart, Sequence[int]] | None:
        """Return a part for the fragments that no part covers, and the positions of the fragments to read.

        None if all are covered.

        Parameters
        ----------
        table : TableVersion
        parts : sequence of IndexMetadata
            Of the index, all of this kind.
        path : sequence of Field
            See `train`.
        num_to_merge : int, optional
            The number of latest parts that it replaces; by default the kind decides.
        """


def take_whole_number(parameters: dict[str, Any], name: str, default: int) -> int:
    """Remove a parameter from a dictionary and return it.

    Parameters
    ----------
    parameters : dict of str to object
    name : str
    default : int
        What is returned if there is no such parameter.

    Raises
    ------
    InvalidInputError
        If it is no number from 1 to 2^32 - 1.
    """
    found = parameters.pop(name, default)
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found < 2**32:
        raise InvalidInputError(f"{name} is {found!r}; a whole number from 1 to {2**32 - 1} is needed")
    return found


def take_probability(parameters: dict[str, Any], name: str, default: float) -> float:
    """Remove a parameter from a dictionary and return it.

    Parameters
    ----------
    parameters : dict of str to object
    name : str
    default : float
        What is returned if there is no such parameter.

    Raises
    ------
    InvalidInputError
        If it is no number between 0 and 1.
    """
    found = parameters.pop(name, default)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1:
        raise InvalidInputError(f"{name} is {found!r}; a number between 0 and 1 is needed")
    return float(found)


def refuse_others(parameters: Mapping[str, Any], kind: str, known: Sequence[str]) -> None:
    """Refuse the parameters that are left.

    Parameters
    ----------
    parameters : mapping of str to object
    kind : str
    known : sequence of str
        Names of the parameters that exist.

    Raises
    ------
    InvalidInputError
        If there is one.
    """
    if parameters:
        there = f"there {'is' if len(known) == 1 else 'are'} {' and '.join(known)}" if known else "it has none"
        raise InvalidInputError(f"parameter {min(parameters)!r} of {kind} indices is unknown; {there}")
