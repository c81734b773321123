"""Files below the directory of a table, and files that its versions name, as streams of Arrow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory
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
    directory = table.directory
    rows = (
        (directory.root, directory.relative(info.path), info.size_bytes, int(info.modified * 1e6))
        for info in directory.store.list_tree(directory.root)
    )
    return _stream(rows, _FOUND)


def list_tracked_files(table: TableVersion, min_version: int | None, progress: Progress | None) -> pa.RecordBatchReader:
    """List the files that versions of a table name; see `LanceDataset.tracked_files`."""
    return _stream(_tracked(table, min_version or 0, progress), _NAMED)


def _tracked(table: TableVersion, min_version: int, progress: Progress | None) -> Iterator[tuple[int, str, str, str]]:
    history = table.history()
    versions = sorted(version for version in history.names if version >= min_version)
    known: dict[str, list[str]] = {}
    for count, (version, manifest) in enumerate(history.read_each(history.load, versions), start=1):
        path = table.directory.relative(history.manifest_path(version))
        yield version, table.root, path, "manifest"
        for holding, path, kind in list_named_files(manifest, table.directory, known):
            yield version, holding.root, holding.relative(holding.path(path)), kind
        if progress is not None:
            progress(count, len(versions))


def list_named_files(
    manifest: Manifest, directory: TableDirectory, known: dict[str, list[str]] | None = None
) -> Iterator[tuple[TableDirectory, str, str]]:
    """Yield the directories, the paths relative to a table, and the kinds of the files that a version names.

    Parameters
    ----------
    manifest : Manifest
    directory : TableDirectory
        The directory of the table, or of its branch.
    known : dict of str to list of str, optional
        Listed files of indices by directory. New listings are added.
    """
    known = {} if known is None else known
    if manifest.transaction_file:
        path = directory.transaction(manifest.transaction_file)
        yield directory, directory.relative(path), TRANSACTION_FILE
    for fragment in manifest.fragments:
        for file in fragment.stored_files():
            yield directory.holding(file, manifest.bases), file.relative_path, DATA_FILE
        deletion = fragment.deletion_file
        if deletion is not None:
            yield directory.holding(deletion, manifest.bases), deletion.path(fragment.id), "deletion file"
    for index in manifest.indices:
        holding = directory.holding(index, manifest.bases)
        files = holding.index(index.uuid)
        if files not in known:
            known[files] = [holding.relative(info.path) for info in holding.store.list_tree(files)]
        for path in known[files]:
            yield holding, path, "index file"


def _stream(rows: Iterable[Sequence[object]], schema: pa.Schema) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        left = iter(rows)
        while some := list(itertools.islice(left, _BATCH_ROWS)):
            columns = [
                pa.array(values, field.type) for values, field in zip(zip(*some, strict=True), schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
