"""Opening the files of an index, and errors about them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from lance_format.byte_io import ByteRange, RangeReader
from lance_format.errors import CorruptFileError, DatasetNotFoundError
from lance_format.file import CHECKSUM_REMEDY, HeldSource, RemovableSource, Verification
from lance_format.object_store import ObjectNotFoundError
from lance_format.table.format.index_metadata import IndexMetadata
from lance_format.table.versions.table_version import TableVersion

_HELD_GAPS = 4
_CURE = "verify with repair=True makes the index again"


def index_path(table: TableVersion, index: IndexMetadata, name: str) -> str:
    """Return the path in the store of a file of a part of an index.

    Parameters
    ----------
    table : TableVersion
    index : IndexMetadata
    name : str
        Of the file, in the directory of the index.
    """
    return f"{table.directory.holding(index, table.manifest.bases).index(index.uuid)}/{name}"


@contextlib.contextmanager
def opening(table: TableVersion, index: IndexMetadata, name: str) -> Iterator[tuple[RangeReader, Verification]]:
    """Give the bytes of a file to a block that begins to read it; they are closed if it fails.

    Parameters
    ----------
    table, index, name
        See `index_path`.

    Yields
    ------
    source : RangeReader
    verification : Verification
        How its checksums are compared.

    Raises
    ------
    CorruptFileError
        If the block finds it malformed: with its path.
    DatasetNotFoundError
        If it is missing. A bucket tells when it is read, in the block or later.
    """
    path = index_path(table, index, name)
    missing = (
        f"the file {path} of index {index.name!r} is missing; if a cleanup has removed this version of the table,"
        f" open the latest, or else {_CURE}"
    )
    size = next((file.size_bytes for file in index.message.files if file.path == name), 0)
    try:
        source = table.store.open_reader(path, size or None)
        try:
            if table.directory.store.is_remote:
                source = _held(RemovableSource(source, missing))
            yield source, table.directory.index_verification(index.uuid, name)
        except BaseException:
            source.close()
            raise
    except CorruptFileError as error:
        if error.path:
            raise
        raise error.retold(error.what, path=path) from error
    except ObjectNotFoundError as error:
        raise DatasetNotFoundError(missing) from error


def _held(source: RangeReader) -> RangeReader:
    """Return a file that is read as a whole if that costs less than the requests for its end and for parts of it."""
    held = HeldSource(source)
    held.hold([ByteRange(0, source.size_bytes)], _HELD_GAPS * source.request_shape.gap_bytes)
    return held


@contextlib.contextmanager
def naming(index: IndexMetadata) -> Iterator[None]:
    """Name an index in the errors that a block meets in its files, and what to do: the rows of the table are there.

    Parameters
    ----------
    index : IndexMetadata

    Raises
    ------
    CorruptFileError
        If the block raises one.
    """
    try:
        yield
    except CorruptFileError as error:
        if error.what.startswith(f"index {index.name!r}"):
            raise
        what = error.what.removesuffix(f"; {CHECKSUM_REMEDY}")
        raise error.retold(f"index {index.name!r}: {what}; only the index is affected: {_CURE}") from error
