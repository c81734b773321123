"""The end of a file, which is read first: its seal, which lets all later reads be verified, and its metadata."""

from __future__ import annotations

from lance_format.byte_io import RangeReader
from lance_format.errors import ChecksumError
from lance_format.file.container.footer import FileMetadata, TailReader, read_metadata, read_version
from lance_format.file.container.legacy_metadata import read_legacy_metadata
from lance_format.file.container.seal import Seal, read_seal
from lance_format.file.container.search_cache import Key, SearchCache
from lance_format.file.container.verified_reader import CHECKSUM_REMEDY, VerifiedReader
from lance_format.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verification:
    """A request to verify the bytes of a file.

    Parameters
    ----------
    is_wanted : bool
        Whether checksums are compared, if the file has them.
    name : str
        Name that the file had when it was written with checksums; empty if it may have had any name, and may lack
        checksums.
    """

    is_wanted: bool = True
    name: str = ""


VERIFIED = Verification()
"""Verification of a file that may have any name."""


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The end of a file.

    Parameters
    ----------
    tail : TailReader
        Reader of the file, which has the last bytes already.
    metadata : FileMetadata
    seal : Seal, optional
        None if the file has no checksums, or they are not compared.
    """

    tail: TailReader
    metadata: FileMetadata
    seal: Seal | None

    @property
    def source(self) -> RangeReader:
        """Reader of pages, which verifies what it reads if the file is sealed."""
        source = self.tail.source
        return source.of_pages() if isinstance(source, VerifiedReader) else source


@dataclass(frozen=True, slots=True)
class _KnownEnd:
    """The last bytes of a file, and what they say.

    Parameters
    ----------
    tail : bytes
    num_verified : int
        How many of them, at the end, have been compared.
    metadata : FileMetadata
    seal : Seal, optional
    """

    tail: bytes
    num_verified: int
    metadata: FileMetadata
    seal: Seal | None


def read_end(source: RangeReader, cache: SearchCache, key: Key, tail_bytes: int, verification: Verification) -> FileEnd:
    """Read the end of a file, or take it from the cache.

    Parameters
    ----------
    source : RangeReader
    cache : SearchCache
    key : tuple
        Key of the file in the cache.
    tail_bytes : int
        Bytes to read.
    verification : Verification

    Raises
    ------
    ChecksumError
        If it is damaged, or of another file.
    CorruptFileError
        If this is no Lance file, or its end contradicts itself.
    NotSupportedError
        If its version cannot be read.
    """
    known = cache.get((*key, "end"))
    if isinstance(known, _KnownEnd):
        verified = known.tail[len(known.tail) - known.num_verified :]
        if known.seal is not None:
            source = VerifiedReader(source, known.seal, known.tail, cache, key)
        return FileEnd(TailReader(source, verified), known.metadata, known.seal)
    raw = TailReader(source, None, tail_bytes)
    seal = read_verified_seal(raw, verification)
    tail = raw
    if seal is not None:
        verifying = VerifiedReader(source, seal, raw.tail, cache, key)
        tail = TailReader(verifying, verifying.verified_end())
    version = read_version(tail)
    metadata = (read_legacy_metadata if version.has_page_table else read_metadata)(tail, version)
    size = len(raw.tail) + metadata.memory_bytes + (0 if seal is None else seal.memory_bytes)
    cache.put((*key, "end"), _KnownEnd(raw.tail, len(tail.tail), metadata, seal), size)
    return FileEnd(tail, metadata, seal)


def read_verified_seal(tail: TailReader, verification: Verification) -> Seal | None:
    """Read the seal of a file; None if it has none, or checksums are not compared.

    Raises
    ------
    ChecksumError
        If the seal is damaged, missing or of another file.
    """
    if not verification.is_wanted:
        return None
    seal = read_seal(tail)
    if verification.name and seal is None:
        raise ChecksumError(f"the file has lost its checksums, which its name promises; {CHECKSUM_REMEDY}")
    if seal is not None and verification.name not in ("", seal.name):
        found = f"this is the file {seal.name[:300]!r}, in the place of {verification.name!r}"
        raise ChecksumError(f"{found}; {CHECKSUM_REMEDY}")
    return seal
