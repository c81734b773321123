"""Making a fragment from a data file that was written by hand into the data directory of a table."""

from __future__ import annotations

from lance_format.datatypes import Field, Schema
from lance_format.errors import DatasetNotFoundError, InvalidInputError, SchemaMismatchError
from lance_format.file import FileReader, StoredBlobs, column_indices
from lance_format.object_store import ObjectNotFoundError
from lance_format.table.format.file_entries import DataFile
from lance_format.table.format.fragment import FragmentMetadata
from lance_format.table.format.layout import check_segment
from lance_format.table.versions.table_version import TableVersion


def adopt_file(table: TableVersion, name: str, fragment_id: int = 0) -> FragmentMetadata:
    """Describe a data file as a fragment; no reader sees it before it is committed.

    Parameters
    ----------
    table : TableVersion
    name : str
        Of the file, in the directory of data files.
    fragment_id : int
        Id of the fragment until the commit assigns another.

    Raises
    ------
    DatasetNotFoundError
        If there is no such file.
    SchemaMismatchError
        If the table lacks a column of the file, or the file lacks a non-nullable one.
    CorruptFileError, NotSupportedError
        If it cannot be read.
    """
    file, stored, num_rows = _describe(table, name, None)
    required = [field.name for field in table.manifest.schema.fields if not field.nullable]
    if missing := [field for field in required if field not in stored.names]:
        raise SchemaMismatchError(f"the data file {name} lacks the column {missing[0]!r}, which cannot be null")
    if not file.fields or not num_rows:
        raise InvalidInputError(
            f"the data file {name} has {num_rows} rows in {len(file.fields)} columns; nothing to make a fragment of"
        )
    return FragmentMetadata(fragment_id, (file,), num_rows)


def describe_file(table: TableVersion, name: str, base_id: int | None = None) -> DataFile:
    """Describe a data file by the columns of the table that it holds; see `adopt_file`.

    Parameters
    ----------
    table : TableVersion
    name : str
        Of the file, in the directory of data files.
    base_id : int, optional
        The directory that this one is in, by `Manifest.bases`; the table's if not given.
    """
    return _describe(table, name, base_id)[0]


def _describe(table: TableVersion, name: str, base_id: int | None) -> tuple[DataFile, Schema, int]:
    """Return the description of a file, its columns, and its number of rows."""
    check_segment(name, f"a data file of {table.root}")
    bases = table.manifest.bases
    if base_id is not None and base_id not in bases:
        raise InvalidInputError(f"base_id is {base_id!r}; the table {table.root} has {list(bases) or 'none'}")
    directory = table.directory if base_id is None else table.directory.base(bases[base_id])
    path = f"{directory.data}/{name}"
    try:
        source = table.store.open_reader(path)
    except ObjectNotFoundError as error:
        raise DatasetNotFoundError(f"there is no data file {path}") from error
    blobs = StoredBlobs(table.store, path)
    reader = FileReader(source, table.cache, blobs, verification=directory.verification(name))
    try:
        stored = reader.schema
        ids: dict[int, int] = {}
        for field in stored.fields:
            if field.name not in table.manifest.schema.names:
                raise SchemaMismatchError(f"{path} has a column {field.name!r}, which the table lacks")
            ids |= _ids(field, table.manifest.schema.field(field.name), path)
        columns = {ids[field_id]: column for field_id, column in column_indices(stored, reader.version).items()}
        major, minor = reader.version.manifest_numbers
        file = DataFile(name, tuple(columns), tuple(columns.values()), major, minor, source.size_bytes, base_id)
        return file, stored, reader.num_rows
    finally:
        reader.close()


def _ids(stored: Field, known: Field, path: str) -> dict[int, int]:
    """Return the ids of a field of a file, and of the fields below it, in the table."""
    pairs = list(zip(stored.walk(), known.walk(), strict=False))
    same = len(pairs) == len(list(stored.walk())) == len(list(known.walk())) and all(
        (mine.name, mine.logical_type) == (theirs.name, theirs.logical_type)
        and (theirs.nullable or not mine.nullable)
        and len(mine.children) == len(theirs.children)
        for mine, theirs in pairs
    )
    if not same:
        raise SchemaMismatchError(
            f"column {stored.name!r} of {path} is {stored.to_arrow_type()}, and {known.to_arrow_type()} in the table,"
            " or may be null where that of the table may not"
        )
    return {mine.id: theirs.id for mine, theirs in pairs}
