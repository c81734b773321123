"""Fields and schemas, and their three forms: ours, Arrow's and protobuf's.

A schema is a tree. Files and manifests list its nodes in depth-first pre-order, each with an id that never changes
and the id of its parent; the type is a string, the *logical type* (`int32`, `timestamp:us:UTC`,
`fixed_size_list:float:128`, `struct` …).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Set

import pyarrow as pa

from lance_format.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_format.extension_types import EXTENSION_KEYS, metadata_of, resolve
from lance_format.lazy_dataclasses import dataclass
from lance_format.logical_types import BFLOAT16, BFLOAT16_STORAGE, JSON, logical_type_of, parse_logical_type, parse_size
from lance_format.packing import spell_out
from lance_format.proto import file_pb2
from lance_format.unenforced_keys import keys_of

TOP_LEVEL_PARENT = -1
"""The parent id of a top-level field."""

UNASSIGNED = -1
"""The id of a field that has none yet."""

_EXTENSION_NAME = EXTENSION_KEYS[0]
_JSON_NAME = b"lance.json"
# Names of JSON in data: as text and as JSONB.
_JSON_STORAGES = {b"arrow.json": ("string", "large_string"), _JSON_NAME: ("large_binary",)}
_MAX_FIELDS = 100_000
_MAX_NESTING = 62
_LIST_NAMES = ("list", "list.struct", "large_list", "large_list.struct")


@dataclass(frozen=True, slots=True)
class Field:
    """One node of a schema.

    Parameters
    ----------
    name : str
    logical_type : str
        The type in the spelling of the format.
    nullable : bool
    id : int
        Unique in the table and never reused; -1 while unassigned.
    parent_id : int
        -1 for a top-level field.
    metadata : mapping of bytes to bytes
    children : tuple of Field
        Fields of a struct, item of a list, or entries of a map.
    extension_name : str
    unenforced_primary_key : bool
        Whether it belongs to the table's primary key.
    primary_key_position, clustering_key_position : int
        Positions in these keys, from 1 on; 0 for fields outside of them.
    """

    name: str
    logical_type: str
    nullable: bool
    id: int = UNASSIGNED
    parent_id: int = TOP_LEVEL_PARENT
    metadata: Mapping[bytes, bytes] = dataclasses.field(default_factory=dict, hash=False)
    children: tuple[Field, ...] = ()
    extension_name: str = ""
    unenforced_primary_key: bool = False
    primary_key_position: int = 0
    clustering_key_position: int = 0

    @property
    def stored_type(self) -> str:
        """The stored type in the spelling of the format: bytes for JSON, and for numbers that Arrow lacks."""
        return "large_binary" if self.logical_type == JSON else self.logical_type.replace(BFLOAT16, BFLOAT16_STORAGE)

    def walk(self) -> Iterator[Field]:
        """Yield this field and all below it, in depth-first pre-order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def to_arrow_type(self) -> pa.DataType:
        """Return the Arrow type of the values, with storage types in place of extension types.

        Raises
        ------
        NotSupportedError
            If the logical type is unknown.
        CorruptFileError
            If it is malformed, or the fields below this one are not those of the type.
        """
        if len(self.children) == 1 and self.logical_type.startswith("fixed_size_list:struct:"):
            return pa.list_(self.children[0].to_storage(), self._list_size())
        if self.logical_type in ("struct", "map", *_LIST_NAMES):
            return _nested_arrow_type(self)
        if self.children:
            raise CorruptFileError(f"field {self.name!r} of type {self.logical_type[:100]} has fields below it")
        return parse_logical_type(self.logical_type)

    def _list_size(self) -> int:
        try:
            return parse_size(self.logical_type.rpartition(":")[2], 1)
        except ValueError as error:
            raise CorruptFileError(f"malformed logical type {self.logical_type[:100]!r}: {error}") from error

    def to_storage(self) -> pa.Field:
        """Return the Arrow field with metadata, and with storage types in place of extension types.

        Raises
        ------
        CorruptFileError
            If a field of type null must not be null.
        """
        arrow_type = self.to_arrow_type()
        if pa.types.is_null(arrow_type) and not self.nullable:
            raise CorruptFileError(f"field {self.name!r} has no type but null, and may not be null")
        return pa.field(self.name, arrow_type, self.nullable, metadata=dict(self.metadata) or None)

    def to_arrow(self) -> pa.Field:
        """Return the Arrow field with metadata, and with registered extension types."""
        return resolve(self.to_storage())

    @classmethod
    def from_arrow(cls, field: pa.Field) -> Field:
        """Build a field without ids from an Arrow field; text or bytes that are marked as JSON become JSON.

        Raises
        ------
        NotSupportedError
            If Lance cannot store the type.
        InvalidInputError
            If its metadata is no text.
        """
        check_depth(field)
        return cls._from_arrow(field)

    @classmethod
    def _from_arrow(cls, field: pa.Field) -> Field:
        arrow_type = field.type
        metadata = dict(field.metadata or {})
        if isinstance(arrow_type, pa.BaseExtensionType):
            metadata |= metadata_of(field)
            arrow_type = arrow_type.storage_type
        metadata = spell_out(_as_text(metadata, f"column {field.name!r}"))
        logical_type = logical_type_of(arrow_type, field.name)
        if logical_type in _JSON_STORAGES.get(metadata.get(_EXTENSION_NAME, b""), ()):
            logical_type, metadata = JSON, {**metadata, _EXTENSION_NAME: _JSON_NAME}
        return cls(
            name=field.name,
            logical_type=logical_type,
            nullable=field.nullable,
            metadata=metadata,
            children=tuple(cls._from_arrow(child) for child in _arrow_children(arrow_type)),
            extension_name=metadata.get(_EXTENSION_NAME, b"").decode(errors="replace"),
            **keys_of(metadata),
        )

    def with_fields(self, new: Iterable[Field]) -> Field:
        """Append further fields to the children of the field and those below it, by their `parent_id`."""
        listed = list(new)
        children = [child.with_fields(listed) for child in self.children]
        children += [field for field in listed if field.parent_id == self.id]
        return dataclasses.replace(self, children=tuple(children))

    def with_ids(self, ids: Iterator[int], parent_id: int) -> Field:
        """Return the field with ids for it and all below it, taken from an iterator in depth-first pre-order."""
        field_id = next(ids)
        children = tuple(child.with_ids(ids, field_id) for child in self.children)
        return dataclasses.replace(self, id=field_id, parent_id=parent_id, children=children)

    def with_ids_of(self, known: Iterable[Field], ids: Iterator[int], parent_id: int) -> Field:
        """Return the field with the ids of known fields of the same path and type, as `Schema.with_ids_of` does.

        Parameters
        ----------
        known : iterable of Field
            Candidates with ids for this field.
        ids : iterator of int
            New ids.
        parent_id : int
        """
        same = (other for other in known if (other.name, other.logical_type) == (self.name, self.logical_type))
        old = next(same, None)
        field_id, below = (next(ids), ()) if old is None else (old.id, old.children)
        children = tuple(child.with_ids_of(below, ids, field_id) for child in self.children)
        return dataclasses.replace(self, id=field_id, parent_id=parent_id, children=children)


@dataclass(frozen=True, slots=True)
class Schema:
    """The top-level fields of a file or table, and its metadata."""

    fields: tuple[Field, ...]
    metadata: Mapping[bytes, bytes] = dataclasses.field(default_factory=dict, hash=False)

    def walk(self) -> Iterator[Field]:
        """Yield all fields in depth-first pre-order."""
        for field in self.fields:
            yield from field.walk()

    def with_relatives(self, field_ids: Set[int]) -> frozenset[int]:
        """Return the ids of the fields whose values change with those of some fields: these, all above and all below.

        A data file may name a list by its items only, or a struct without its children; an index is of one of them.
        """

        def related(field: Field) -> set[int]:
            if field.id in field_ids:
                return {node.id for node in field.walk()}
            found = set[int]().union(*map(related, field.children))
            return {field.id, *found} if found else found

        return frozenset[int]().union(*map(related, self.fields))

    @property
    def names(self) -> list[str]:
        """The names of the top-level fields."""
        return [field.name for field in self.fields]

    def field(self, name: str) -> Field:
        """Return the top-level field of that name.

        Raises
        ------
        InvalidInputError
            If there is none.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise InvalidInputError(f"there is no column {name!r}; the columns are {', '.join(self.names) or '(none)'}")

    def with_fields(self, new: Iterable[Field]) -> Schema:
        """Append further fields to the schema, each below the field of its `parent_id`."""
        listed = list(new)
        below = [field for field in listed if field.parent_id != TOP_LEVEL_PARENT]
        fields = [field.with_fields(below) for field in self.fields] if below else list(self.fields)
        return Schema((*fields, *(x for x in listed if x.parent_id == TOP_LEVEL_PARENT)), self.metadata)

    def by_name(self) -> dict[str, Field]:
        """Return the top-level fields by their names, for those who look many up."""
        return {field.name: field for field in self.fields}

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of some top-level fields, in the order given."""
        known = self.by_name()
        return Schema(tuple(known.get(name) or self.field(name) for name in names), self.metadata)

    def to_storage(self) -> pa.Schema:
        """Return the Arrow schema, with storage types in place of extension types."""
        return pa.schema([field.to_storage() for field in self.fields], metadata=dict(self.metadata) or None)

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema, with registered extension types."""
        return pa.schema([field.to_arrow() for field in self.fields], metadata=dict(self.metadata) or None)

    def with_ids_of(self, known: Schema, first_id: int) -> Schema:
        """Return the schema with the ids of fields of the same path and type in another one; others get new ids.

        Parameters
        ----------
        known : Schema
        first_id : int
            The first of the new ids, which are assigned in depth-first pre-order.
        """
        ids = iter(range(first_id, 2**31))
        known_fields = {field.name: (field,) for field in known.fields}
        made = (field.with_ids_of(known_fields.get(field.name, ()), ids, TOP_LEVEL_PARENT) for field in self.fields)
        return Schema(tuple(made), self.metadata)

    @classmethod
    def from_arrow(cls, schema: pa.Schema, *, first_id: int = 0) -> Schema:
        """Build a schema from Arrow's, with ids assigned in depth-first pre-order from `first_id` on.

        Raises
        ------
        InvalidInputError
            If two sibling fields share a name, or the metadata is no text.
        NotSupportedError
            If Lance cannot store a type.
        """
        ids = iter(range(first_id, 2**31))
        fields = [Field.from_arrow(field) for field in schema]
        _check_unique_names(fields, "the schema")
        return cls(
            tuple(field.with_ids(ids, TOP_LEVEL_PARENT) for field in fields),
            _as_text(schema.metadata, "the schema"),
        )


def parse_fields(messages: Iterable[file_pb2.Field]) -> tuple[Field, ...]:
    """Build the tree of fields from the flat list that files and manifests hold.

    Raises
    ------
    CorruptFileError
        If ids repeat, siblings share a name, or a parent does not precede its child.
    """
    listed = list(messages)
    if len(listed) > _MAX_FIELDS:
        raise CorruptFileError(f"the schema lists {len(listed)} fields; at most {_MAX_FIELDS} are read")
    children: dict[int, list[file_pb2.Field]] = {TOP_LEVEL_PARENT: []}
    named: set[tuple[int, str]] = set()
    for message in listed:
        if message.id < 0 or message.id in children:
            raise CorruptFileError(f"the schema has field id {message.id} ({message.name!r}) twice or below 0")
        if message.parent_id not in children:
            raise CorruptFileError(
                f"field {message.name!r} names parent {message.parent_id}, which does not precede it"
            )
        if (message.parent_id, message.name) in named:
            raise CorruptFileError(f"the schema has two fields {message.name!r} side by side")
        named.add((message.parent_id, message.name))
        children[message.parent_id].append(message)
        children[message.id] = []

    def build(message: file_pb2.Field, depth: int) -> Field:
        if depth > 100:
            raise CorruptFileError(f"field {message.name!r} is nested more than 100 levels deep")
        return Field(
            name=message.name,
            logical_type=message.logical_type,
            nullable=message.nullable,
            id=message.id,
            parent_id=message.parent_id,
            metadata={key.encode(): value for key, value in message.metadata.items()},
            children=tuple(build(child, depth + 1) for child in children[message.id]),
            extension_name=message.extension_name,
            unenforced_primary_key=message.unenforced_primary_key,
            primary_key_position=message.unenforced_primary_key_position,
            clustering_key_position=message.unenforced_clustering_key_position,
        )

    return tuple(build(message, 0) for message in children[TOP_LEVEL_PARENT])


def parse_schema(messages: Iterable[file_pb2.Field], metadata: Mapping[str, bytes]) -> Schema:
    """Build a schema from the lists that files and manifests hold; see `parse_fields`."""
    return Schema(parse_fields(messages), {key.encode(): value for key, value in metadata.items()})


def serialize_fields(fields: Iterable[Field]) -> list[file_pb2.Field]:
    """Flatten fields into the pre-order list that files and manifests hold."""
    return [
        file_pb2.Field(
            name=field.name,
            id=field.id,
            parent_id=field.parent_id,
            logical_type=field.logical_type,
            nullable=field.nullable,
            encoding=_field_encoding(field),
            metadata={key.decode(errors="replace"): value for key, value in field.metadata.items()},
            extension_name=field.extension_name,
            unenforced_primary_key=field.unenforced_primary_key,
            unenforced_primary_key_position=field.primary_key_position,
            unenforced_clustering_key_position=field.clustering_key_position,
        )
        for top in fields
        for field in top.walk()
    ]


def serialize_metadata(metadata: Mapping[bytes, bytes]) -> dict[str, bytes]:
    """Return schema metadata in the form of files and manifests."""
    return {key.decode(errors="replace"): value for key, value in metadata.items()}


def _field_encoding(field: Field) -> file_pb2.Field.Encoding:
    kind = field.logical_type.split(":", 1)[0]
    if kind in ("struct", "null", "map"):
        return file_pb2.Field.NONE
    if kind in ("string", "binary", "large_string", "large_binary", JSON):
        return file_pb2.Field.VAR_BINARY
    return file_pb2.Field.DICTIONARY if kind == "dict" else file_pb2.Field.PLAIN


def _as_text(metadata: Mapping[bytes, bytes] | None, owner: str) -> dict[bytes, bytes]:
    """Check that metadata is text, and return it: the reference replaces anything else."""
    for key, value in (metadata or {}).items():
        for part, what in ((key, "key"), (value, f"value {value[:100]!r} of the key")):
            try:
                part.decode()
            except UnicodeDecodeError as error:
                raise InvalidInputError(
                    f"the metadata of {owner} has the {what} {key!r}, which is no UTF-8; encode it, as by base64"
                ) from error
    return dict(metadata or {})


def _check_unique_names(fields: Iterable[Field], parent: str) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise InvalidInputError(f"{parent} has two columns named {field.name!r}; rename one of them")
        seen.add(field.name)
        _check_unique_names(field.children, f"column {field.name!r}")


def check_depth(field: pa.Field) -> None:
    """Refuse types that are nested deeper than Arrow can pass between libraries.

    Raises
    ------
    NotSupportedError
        If a type is nested too deeply.
    """
    level, depth = [field.type], 0
    while level:
        if depth > _MAX_NESTING:
            raise NotSupportedError(
                f"column {field.name!r} is nested more than {_MAX_NESTING} levels deep, and no other library of Arrow"
                " could read it; flatten it"
            )
        storages = (t.storage_type if isinstance(t, pa.BaseExtensionType) else t for t in level)
        level = [t.field(index).type for t in storages for index in range(t.num_fields)]
        depth += 1


def _arrow_children(arrow_type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(arrow_type):
        return [arrow_type.field(index) for index in range(arrow_type.num_fields)]
    is_list_of_structs = pa.types.is_fixed_size_list(arrow_type) and pa.types.is_struct(arrow_type.value_type)
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type) or is_list_of_structs:
        return [arrow_type.value_field]
    if pa.types.is_map(arrow_type):
        return [pa.field("entries", pa.struct([arrow_type.key_field, arrow_type.item_field]), nullable=False)]
    return []


def _nested_arrow_type(field: Field) -> pa.DataType:
    if field.logical_type == "struct":
        return pa.struct([child.to_storage() for child in field.children])
    if len(field.children) != 1:
        raise CorruptFileError(f"field {field.name!r} of type {field.logical_type} has {len(field.children)} children")
    child = field.children[0]
    if field.logical_type == "map":
        if child.logical_type != "struct" or len(child.children) != 2:
            raise CorruptFileError(
                f"the entries of map {field.name!r} are a {child.logical_type[:100]} of {len(child.children)} fields;"
                " expected a struct of 2"
            )
        key = child.children[0].to_storage()
        if pa.types.is_null(key.type):
            raise CorruptFileError(f"the keys of map {field.name!r} have no type but null")
        return pa.map_(key.with_nullable(False), child.children[1].to_storage())
    return pa.list_(child.to_storage()) if field.logical_type.startswith("list") else pa.large_list(child.to_storage())
