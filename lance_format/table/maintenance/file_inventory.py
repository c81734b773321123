"""Files below the directory of a table, and files that its versions name, as streams of Arrow."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from lance_format.errors import VersionNotFoundError
from lance_format.object_store import ObjectStore
from lance_format.table.format.fragment import place_of
from lance_format.table.format.layout import INDICES_DIRECTORY, TRANSACTIONS_DIRECTORY
from lance_format.table.format.manifest import Manifest
from lance_format.table.versions.table_version import TableVersion

Progress = Callable[[int, int | None], object]

DATA_FILE = "data file"
TRANSACTION_FILE = "transaction file"

_BATCH_ROWS = 8192
_BASE = pa.field("base_uri", pa.dictionary(pa.int32(), pa.string()), nullable=False)
_PATH = pa.field("path", pa.string(), nullable=False)
_FOUND = pa.schema(
    [
        _BASE,
        _PATH,
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
_NAMED = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        _BASE,
        _PATH,
        pa.field("type", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    ]
)


def list_all_files(table: TableVersion) -> pa.RecordBatchReader:
    """List all files below the directory of a table; see `LanceDataset.all_files`."""
    root = table.root
    rows = (
        (root, info.path[len(root) + 1 :], info.size_bytes, int(info.modified * 1e6))
        for info in table.store.list_tree(root)
    )
    return _stream(rows, _FOUND)


def list_tracked_files(table: TableVersion, min_version: int | None, progress: Progress | None) -> pa.RecordBatchReader:
    """List the files that versions of a table name; see `LanceDataset.tracked_files`."""
    return _stream(_tracked(table, min_version or 0, progress), _NAMED)


def _tracked(table: TableVersion, min_version: int, progress: Progress | None) -> Iterator[tuple[int, str, str, str]]:
    history = table.history()
    versions = sorted(version for version in history.names if version >= min_version)
    known: dict[str, list[str]] = {}
    for count, version in enumerate(versions, start=1):
        with contextlib.suppress(VersionNotFoundError):  # A cleanup removed it since it was listed.
            manifest = history.load(version)
            path = history.manifest_path(version)[len(table.root) + 1 :]
            yield version, table.root, path, "manifest"
            for place, path, kind in list_named_files(manifest, table.root, table.store, known):
                yield version, place, path, kind
        if progress is not None:
            progress(count, len(versions))


def list_named_files(
    manifest: Manifest, root: str, store: ObjectStore, known: dict[str, list[str]] | None = None
) -> Iterator[tuple[str, str, str]]:
    """Yield the directories, the relative paths and the kinds of the files that a version names.

    Parameters
    ----------
    manifest : Manifest
    root : str
        The path of the table, or of its branch, in the store.
    store : ObjectStore
    known : dict of str to list of str, optional
        Listed files of indices by directory. New listings are added.
    """
    known = {} if known is None else known
    if manifest.transaction_file:
        yield root, f"{TRANSACTIONS_DIRECTORY}/{manifest.transaction_file}", TRANSACTION_FILE
    for fragment in manifest.fragments:
        for file in fragment.stored_files():
            yield place_of(file, root, manifest.bases), file.relative_path, DATA_FILE
        deletion = fragment.deletion_file
        if deletion is not None:
            yield place_of(deletion, root, manifest.bases), deletion.path(fragment.id), "deletion file"
    for index in manifest.indices:
        place = root if index.base_id is None else manifest.bases[index.base_id]
        directory = f"{place}/{INDICES_DIRECTORY}/{index.uuid}"
        if directory not in known:
            known[directory] = [info.path[len(place) + 1 :] for info in store.list_tree(directory)]
        for path in known[directory]:
            yield place, path, "index file"


def _stream(rows: Iterable[Sequence[object]], schema: pa.Schema) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        left = iter(rows)
        while some := list(itertools.islice(left, _BATCH_ROWS)):
            columns = [
                pa.array(values, field.type) for values, field in zip(zip(*some, strict=True), schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
