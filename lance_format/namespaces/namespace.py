"""What a catalog asks of those who keep the names and places of its tables: a server of namespaces, AWS Glue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from lance_format.arguments import checked_methods
from lance_format.errors import DatasetExistsError, InvalidInputError
from lance_format.namespaces.contents import NamespaceListing, TablePlace
from lance_format.object_store import absolute_uri


@checked_methods
class Namespace(ABC):
    """Names and places of tables. Tables are read and written where they are.

    Names are sequences of parts: `["db", "t"]` is the table `t` in the namespace `db`, and `[]` is the root. A table
    can be declared before it is written: its name and place are known then, and there are no rows.

    All methods raise `StorageError` if whoever keeps the names does not answer, or refuses.
    """

    @abstractmethod
    def listing(self, namespace: Sequence[str] = ()) -> NamespaceListing | None:
        """Return the namespaces and tables in a namespace, by default the root; None if there is no such namespace."""

    @abstractmethod
    def exists(self, namespace: Sequence[str]) -> bool:
        """Return whether there is a namespace. The root always is."""

    @abstractmethod
    def properties(self, namespace: Sequence[str]) -> dict[str, str] | None:
        """Return what is kept about a namespace; None if there is no such namespace."""

    @abstractmethod
    def create(self, namespace: Sequence[str], properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace. If there is one of this name, nothing happens.

        Parameters
        ----------
        namespace : sequence of str
        properties : mapping of str to str, optional
            Kept with the namespace.
        """

    @abstractmethod
    def remove(self, namespace: Sequence[str], *, cascade: bool = False) -> bool:
        """Remove a namespace.

        Parameters
        ----------
        namespace : sequence of str
        cascade : bool
            Whether its tables and namespaces go as well.

        Returns
        -------
        bool
            Whether it was removed. Without `cascade`, it is not removed unless it is empty.
        """

    @abstractmethod
    def find(self, table: Sequence[str]) -> TablePlace | None:
        """Return where a table is, written or only declared; None if there is none of that name.

        Raises
        ------
        NotSupportedError
            If there is one that this library cannot use.
        """

    @abstractmethod
    def declare(self, table: Sequence[str], location: str | None = None) -> TablePlace:
        """Give a table that is to be written a name and a place.

        Parameters
        ----------
        table : sequence of str
        location : str, optional
            URI of the place, by default one that is chosen by the name.

        Raises
        ------
        DatasetExistsError
            If there is a table of that name, written or only declared.
        NotSupportedError
            If the versions of the table would not be kept with the table.
        """

    @abstractmethod
    def deregister(self, table: Sequence[str]) -> bool:
        """Forget a table, and leave its files where they are; returns whether there was one."""

    @abstractmethod
    def drop(self, table: Sequence[str]) -> bool:
        """Forget a table, and delete its files; returns whether there was one."""

    @abstractmethod
    def rename(self, table: Sequence[str], to: Sequence[str]) -> None:
        """Give a table another name, or another namespace. Its files stay where they are.

        Raises
        ------
        NotSupportedError
            If tables cannot be renamed.
        """

    def reserve(self, table: Sequence[str], location: str | None = None) -> tuple[TablePlace, bool]:
        """Return the place of a table, which is declared if there is none of the name, and whether it was.

        Parameters
        ----------
        table : sequence of str
        location : str, optional
            URI of the place, by default that of the table, or one that is chosen by the name.

        Raises
        ------
        InvalidInputError
            If there is a table of that name at another place.
        NotSupportedError
            If the versions of the table are not kept with the table.
        """
        known = self.find(table)
        if known is None:
            try:
                return self.declare(table, location), True
            except DatasetExistsError:  # Another program has just declared it.
                known = self.find(table)
        if known is None or (location is not None and absolute_uri(location) != known.uri):
            where = "being created or dropped by another program" if known is None else f"at {known.uri} already"
            raise InvalidInputError(f"the table {shown(table)} is {where}; nothing was changed")
        return known, False


def shown(name: Sequence[str]) -> str:
    """Return a name as messages show it."""
    return ".".join(name) or "/"
