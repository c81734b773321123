"""Verification of a file of the Lance format."""

from __future__ import annotations

from collections.abc import Iterator

from lance_format.errors import CorruptFileError, LanceError, NotSupportedError
from lance_format.file import FileReader, SearchCache, Verification
from lance_format.object_store import ObjectNotFoundError
from lance_format.table.maintenance.findings import INTACT, UNVERIFIED, Finding, status_of
from lance_format.table.versions.table_version import TableVersion


def check_lance_file(
    table: TableVersion, path: str, relative: str, kind: str, fragment_id: int | None, verification: Verification
) -> Iterator[Finding]:
    """Yield the finding of a file, or one for each of its damages.

    Parameters
    ----------
    table : TableVersion
    path : str
        In the store.
    relative : str
        Below the directory of the table, for the finding.
    kind : str
        Of the file, as users read it.
    fragment_id : int, optional
    verification : Verification
    """

    def bad(error: LanceError, size: int) -> Finding:
        offset = error.offset if isinstance(error, CorruptFileError) else None
        return Finding(relative, kind, status_of(error), fragment_id, size, 0, offset, str(error))

    try:
        source = table.store.open_reader(path)
    except ObjectNotFoundError as error:
        yield bad(error, 0)
        return
    size = source.size_bytes
    try:
        reader = FileReader(source, SearchCache(), verification=verification)
        damage = [bad(error, 0 if number else size) for number, error in enumerate(reader.find_damage())]
    except NotSupportedError:  # of another writer: an index of a kind whose files are no Lance files, say
        damage, reader = [], None
    except LanceError as error:
        damage, reader = [bad(error, size)], None
    finally:
        source.close()
    is_sealed = reader is not None and reader.seal is not None
    if not damage:
        yield Finding(relative, kind, INTACT if is_sealed else UNVERIFIED, fragment_id, size, size if is_sealed else 0)
    yield from damage
