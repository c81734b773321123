"""The columns of a table with the ids of their fields, as users see them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lance_format.arguments import checked_methods
from lance_format.datatypes import Field, Schema
from lance_format.file.columns.json_columns import with_text
from lance_format.lazy_dataclasses import dataclass


@checked_methods
@dataclass(frozen=True, slots=True)
class LanceField:
    """A field of a `LanceSchema`.

    Parameters
    ----------
    field : Field
    """

    _field: Field

    def __repr__(self) -> str:
        return f"LanceField({self.id()}: {self._field.to_arrow()})"

    def name(self) -> str:
        """Return the name."""
        return self._field.name

    def id(self) -> int:
        """Return the field id, which data files refer to."""
        return self._field.id

    def children(self) -> list[LanceField]:
        """Return the child fields."""
        return [LanceField(child) for child in self._field.children]

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the field."""
        return {key.decode(): value.decode(errors="replace") for key, value in self._field.metadata.items()}

    def is_unenforced_primary_key(self) -> bool:
        """Return whether the field is part of the primary key."""
        return self._field.unenforced_primary_key

    def unenforced_primary_key_position(self) -> int | None:
        """Return the position in the primary key, from 1 on; None if it has none."""
        return self._field.primary_key_position or None

    def is_unenforced_clustering_key(self) -> bool:
        """Return whether the field is part of the clustering key."""
        return self._field.clustering_key_position > 0

    def unenforced_clustering_key_position(self) -> int | None:
        """Return the position in the clustering key, from 1 on; None if it has none."""
        return self._field.clustering_key_position or None


@checked_methods
@dataclass(frozen=True, slots=True)
class LanceSchema:
    """The columns of a table with field ids.

    `LanceDataset.lance_schema`, `LanceFragment.merge_columns` and `from_pyarrow` make it.

    Parameters
    ----------
    schema : Schema
    """

    _schema: Schema

    def __repr__(self) -> str:
        return f"LanceSchema({self.fields()!r})"

    def fields(self) -> list[LanceField]:
        """Return the columns."""
        return [LanceField(field) for field in self._schema.fields]

    def field(self, name: str) -> LanceField | None:
        """Return a column, or None if there is none of that name."""
        return next((field for field in self.fields() if field.name() == name), None)

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """Return a column by its exact name, else by its name in any case; None if there is none."""
        alike = [field for field in self.fields() if field.name().lower() == name.lower()]
        return self.field(name) or next(iter(alike), None)

    def unenforced_primary_key(self) -> list[LanceField]:
        """Return the fields of the unenforced primary key, in key order."""
        found = [field for field in self._schema.walk() if field.unenforced_primary_key]
        return [LanceField(field) for field in sorted(found, key=lambda field: field.primary_key_position or 2**32)]

    def unenforced_clustering_key(self) -> list[LanceField]:
        """Return the fields of the unenforced clustering key, in key order."""
        found = [field for field in self._schema.walk() if field.clustering_key_position]
        return [LanceField(field) for field in sorted(found, key=lambda field: field.clustering_key_position)]

    def select(self, names: Iterable[str]) -> LanceSchema:
        """Return some columns, in the order given. `LanceOperation.Project` drops the others."""
        return LanceSchema(self._schema.select(names))

    def to_pyarrow(self) -> pa.Schema:
        """Return the columns without ids."""
        return with_text(self._schema).to_arrow()

    @classmethod
    def from_pyarrow(cls, schema: pa.Schema) -> LanceSchema:
        """Assign ids to the fields of a schema, in depth-first order from 0 on.

        Raises
        ------
        NotSupportedError
            If Lance cannot store a type.
        """
        return cls(Schema.from_arrow(schema))


def schema_of(schema: LanceSchema) -> Schema:
    """Return the fields of a public schema."""
    return schema._schema
