"""Whether the manifests of a table belong to it.

The manifest of another table has the right checksums. What reads data fails on it, because the files that it names are
not there. What is answered by manifests alone is answered after one of these files was found.
"""

from __future__ import annotations

from lance_format.errors import CorruptFileError, DatasetNotFoundError
from lance_format.table.format.layout import parse_transaction_name
from lance_format.table.format.lineage import is_ancestor
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.table_directory import TableDirectory
from lance_format.table.versions.history import History, load_history


def check_belongs(directory: TableDirectory, manifest: Manifest) -> None:
    """Raise an error if neither a data file that a version names is there, nor its transaction file.

    A version that does not name both is not doubted, nor one that a cleanup has removed since it was read.

    Parameters
    ----------
    directory : TableDirectory
        The directory of its branch.
    manifest : Manifest

    Raises
    ------
    DatasetNotFoundError
        If it is not the latest version: pylance's cleanups remove the files of a version before its manifest.
    CorruptFileError
        If it is.
    """
    found = _find_missing(directory, manifest)
    if found is None:
        return
    history, missing = found
    if manifest.version < history.latest:
        raise DatasetNotFoundError(
            f"version {manifest.version} of {directory} names files that are not there, as {missing}; if a cleanup is"
            " removing this version of the table, open the latest"
        )
    raise _foreign(history, manifest, missing)


def _find_missing(directory: TableDirectory, manifest: Manifest) -> tuple[History, str] | None:
    """Return the history and a missing data file of a version that is there, although its files are not."""
    files = [file for fragment in manifest.fragments[-1:] for file in fragment.stored_files()]
    if not files or not manifest.transaction_file:
        return None
    data_file = directory.holding(files[0], manifest.bases).path(files[0].relative_path)
    for path in (data_file, directory.transaction(manifest.transaction_file)):
        if directory.store.sizes([path]) != [None]:
            return None
    history = load_history(directory)
    is_there = directory.store.sizes([history.manifest_path(manifest.version)]) != [None]
    return (history, data_file) if is_there else None


def _foreign(history: History, manifest: Manifest, missing: str) -> CorruptFileError:
    return CorruptFileError(
        f"version {manifest.version} names files that are not there, as {missing}: they were lost, or this is the"
        " manifest of another table; restore the right files from a copy, or open another version",
        path=history.manifest_path(manifest.version),
    )


class Descent:
    """Checks versions of a table, from the latest one of interest to earlier ones.

    The first one is checked by its files, and so are two of which the later one remembers another in the place of the
    earlier one. If both belong to the table, the earlier one is of a writer that was too late.

    Parameters
    ----------
    directory : TableDirectory
        The directory of their branch.
    """

    def __init__(self, directory: TableDirectory) -> None:
        self._directory = directory
        self._later: Manifest | None = None

    def check(self, manifest: Manifest) -> Manifest:
        """Return the next version.

        Raises
        ------
        CorruptFileError
            If it does not belong to the table, or the one before it does not.
        DatasetNotFoundError
            If it is the first one, and perhaps being removed.
        """
        later, self._later = self._later, manifest
        if later is None:
            check_belongs(self._directory, manifest)
        elif contradict(manifest, later):
            for each in (manifest, later):
                found = _find_missing(self._directory, each)
                if found is not None:
                    history, missing = found
                    raise _foreign(history, each, missing)
        return manifest


def contradict(earlier: Manifest, later: Manifest) -> bool:
    """Return whether a version remembers that another transaction made an earlier one."""
    uuid = parse_transaction_name(earlier.transaction_file)
    return uuid is not None and is_ancestor(later, earlier.version, uuid) is False
