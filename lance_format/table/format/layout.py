"""Names of the files of a table.

Manifests of version `v` are called `{v}.manifest` (scheme V1) or `{2**64 - 1 - v:020}.manifest` (V2), so that the
latest comes first in a listing. A table keeps to one of them. Detached manifests, `d{v}.manifest`, are not part of the
history; `_latest.manifest` of early releases is a copy, and ignored.
"""

from __future__ import annotations

import enum
import re
import secrets
import uuid as uuids

from lance_format.errors import CorruptFileError

DATA_DIRECTORY = "data"
DELETIONS_DIRECTORY = "_deletions"
TRANSACTIONS_DIRECTORY = "_transactions"
VERSIONS_DIRECTORY = "_versions"
INDICES_DIRECTORY = "_indices"
REFS_DIRECTORY = "_refs"
TAGS_DIRECTORY = f"{REFS_DIRECTORY}/tags"
BRANCHES_DIRECTORY = f"{REFS_DIRECTORY}/branches"
BRANCH_TREE = "tree"
VERSION_HINT = f"{VERSIONS_DIRECTORY}/latest_version_hint.json"

_MAX_VERSION = 2**64 - 1
_DETACHED = 2**63
_SEALED = "-sealed"
_OWN_DATA_FILE = re.compile(rf"(?:\.tmp_)?[01]{{24}}([0-9a-f]{{13}})[0-9a-f]{{13}}(?:{_SEALED})?\.lance")
_SEALED_DATA_FILE = re.compile(rf"[01]{{24}}[0-9a-f]{{26}}{_SEALED}\.lance")
_INDEX_MARK = b"LSUM"
_DETACHED_MANIFEST = re.compile(r"d([0-9]{19,20})\.manifest")
_MANIFEST = re.compile(r"([0-9]{1,20})\.manifest")
_TRANSACTION_FILE = re.compile(r"[0-9]+-(.+)\.txn")
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}")


class ManifestNaming(enum.Enum):
    """The two schemes of manifest names."""

    V1 = 1
    V2 = 2

    def path(self, version: int) -> str:
        """Return the path of a manifest, relative to the table."""
        return f"{VERSIONS_DIRECTORY}/{self.file_name(version)}"

    def file_name(self, version: int) -> str:
        """Return the name of a manifest within its directory."""
        return f"{version}.manifest" if self is ManifestNaming.V1 else f"{_MAX_VERSION - version:020}.manifest"


def parse_manifest_name(name: str) -> tuple[int, ManifestNaming] | None:
    """Return version and scheme of a file in the versions directory, or None if it is no manifest of the history."""
    match = _MANIFEST.fullmatch(name)
    if match is None:
        return None
    digits = match[1]
    naming = ManifestNaming.V2 if len(digits) == 20 else ManifestNaming.V1
    version = _MAX_VERSION - int(digits) if naming is ManifestNaming.V2 else int(digits)
    return (version, naming) if 0 < version < _DETACHED else None


def parse_detached_name(name: str) -> int | None:
    """Return the version of a detached manifest, or None if it is none."""
    match = _DETACHED_MANIFEST.fullmatch(name)
    return int(match[1]) if match is not None and _DETACHED <= int(match[1]) <= _MAX_VERSION else None


def new_detached_version() -> int:
    """Return a number for a version that is not part of the history."""
    return _DETACHED | secrets.randbits(63)


def is_detached(version: int) -> bool:
    """Return whether a version is not part of the history."""
    return _DETACHED <= version <= _MAX_VERSION


def detached_path(version: int) -> str:
    """Return the path of the manifest of a detached version, relative to the table."""
    return f"{VERSIONS_DIRECTORY}/d{version}.manifest"


def branch_location(main: str, branch: str | None) -> str:
    """Return the path of a branch, or of the main one if None, given the path of the main one."""
    return main if branch is None else f"{main}/{BRANCH_TREE}/{branch}"


def main_location(location: str, branch: str | None) -> str:
    """Return the path of the main branch, given that of a branch; a path outside `tree` is returned as it is."""
    return location if branch is None else location.removesuffix(f"/{BRANCH_TREE}/{branch}")


def transaction_name(read_version: int, uuid: str) -> str:
    """Return the name of a transaction file, relative to the transactions directory."""
    return f"{read_version}-{uuid}.txn"


def parse_transaction_name(name: str) -> str | None:
    """Return the uuid in the name of a transaction file, or None if there is none."""
    match = _TRANSACTION_FILE.fullmatch(name)
    return match[1] if match else None


def new_data_file_name(job: str, *, sealed: bool = False) -> str:
    """Return a unique name that identifies its write.

    Its first 24 random bits are spelled as digits, which spreads files over the shards of an object store. Of the 26
    hexadecimal digits that follow, the first 13 are those of the write's uuid.

    Parameters
    ----------
    job : str
        The uuid of the write.
    sealed : bool
        Whether the file will have checksums. Its name says so, because manifests keep names: damage that hides the
        checksums of the file is found.
    """
    random = secrets.token_bytes(10)
    shard, rest = f"{int.from_bytes(random[:3], 'big'):024b}", random[3:].hex()[:13]
    return f"{shard}{_job_digits(job)}{rest}{_SEALED if sealed else ''}.lance"


def promises_checksums(name: str) -> bool:
    """Return whether the name of a data file says that the file has checksums."""
    return _SEALED_DATA_FILE.fullmatch(name) is not None


def new_index_uuid(job: str) -> uuids.UUID:
    """Return a random identity for an index whose files have checksums, which it says: it is of version 8.

    Twelve of its hexadecimal digits are the first of the uuid of the write, which identify it.

    Parameters
    ----------
    job : str
        The uuid of the write.
    """
    mine = _job_digits(job)[:12]
    variant = "89ab"[secrets.randbelow(4)]
    digits = f"{_INDEX_MARK.hex()}{mine[:4]}8{mine[4:7]}{variant}{mine[7:]}{secrets.token_hex(5)}"
    return uuids.UUID(digits)


def is_index_of(uuid: str, job: str) -> bool:
    """Return whether an index is of a write, by its identity.

    Parameters
    ----------
    uuid : str
        That of an index, or the name of a directory.
    job : str
        The uuid of the write.
    """
    digits = uuid.replace("-", "")
    found = digits[8:12] + digits[13:16] + digits[17:22]
    return len(uuid) == len(job) and digits.startswith(_INDEX_MARK.hex()) and found == _job_digits(job)[:12]


def index_file_name(uuid: str, name: str) -> str:
    """Return the name that a file of an index has in its checksums, where the names of files are all alike."""
    return f"{uuid}/{name}"


def index_promises_checksums(uuid: str) -> bool:
    """Return whether the identity of an index says that its files have checksums."""
    found = uuids.UUID(uuid)
    return found.bytes.startswith(_INDEX_MARK) and found.bytes[6] >> 4 == 8


def is_data_file_of(name: str, job: str) -> bool:
    """Return whether a file is a data file of a write, finished or not."""
    match = _OWN_DATA_FILE.match(name)
    return match is not None and match[1] == _job_digits(job)


def _job_digits(job: str) -> str:
    return job.replace("-", "")[:13]


def check_segment(name: str, what: str) -> str:
    """Return a file name that a file of the table holds, once it is shown to stay in its directory.

    Raises
    ------
    CorruptFileError
        If the name is anything but one plain path segment.
    """
    if not _SEGMENT.fullmatch(name):
        raise CorruptFileError(f"{what} is called {name[:300]!r}; letters, digits and . _ - are expected")
    return name


def check_relative_path(path: str, what: str) -> str:
    """Return the path of a file within the table, once it is shown to stay in the table.

    Raises
    ------
    CorruptFileError
        If it is anything but plain segments.
    """
    segments = path.split("/")
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise CorruptFileError(f"the file for the {what} is called {path[:300]!r}; a path within the table is expected")
    return path
