"""The seal of a data file: what proves that its bytes are those that were written.

A sealed file has checksums of all its bytes, in two regions of blocks of equal size, the last one of each shorter:

    │ data region: pages, global buffers │ tail region: sums of the data region, descriptor, columns, tables │
    │ seal │ footer │

The sums of the data region are a global buffer, 4 bytes per block. The seal has those of the tail region:

    │ u32 sum of each block of the tail region │ name │
    │ u64 start of the tail region │ u32 bytes per block │ u32 blocks of the tail region │ u16 bytes of the name │
    │ u16 version 1 │ u64 sum of the seal and the footer │ "LANCESUM" │

All numbers are little-endian; `docs/integrity.md` has the rules. Blocks know nothing of pages: a reader of a range of
bytes reads the blocks around it. So nothing that is read goes unverified, and no encoding knows of checksums.
The name is that of the file when it was written, so that another file in its place is found.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from lance_format.byte_io import ByteRange
from lance_format.checksums import checksum64
from lance_format.errors import ChecksumError, NotSupportedError
from lance_format.file.container.footer import FOOTER_BYTES, TailReader
from lance_format.lazy_dataclasses import dataclass

Sums = npt.NDArray[np.uint32]
"""The checksums of successive blocks."""

SUM_TYPE = np.dtype("<u4")
BLOCK_BYTES = 4 * 1024
"""Bytes per block of new files. A smaller one takes more memory, a larger one makes reads of single rows longer."""

_END = struct.Struct("<QIIHHQ8s")
_SUMMED = struct.Struct("<QIIHH")
_MAGIC = b"LANCESUM"
_VERSION = 1
_BLOCK_BYTES = range(256, 2**24 + 1)


@dataclass(frozen=True, slots=True)
class Seal:
    """The seal of a file.

    Parameters
    ----------
    block_bytes : int
        Bytes per block.
    tail_start : int
        Offset of the tail region, and so of the sums of the data region.
    tail_end : int
        Offset of the seal.
    tail_sums : uint32[num_tail_blocks]
    name : str
        Name of the file when it was written; empty if it was not known.
    end : bytes
        The seal and the footer, as stored.
    """

    block_bytes: int
    tail_start: int
    tail_end: int
    tail_sums: Sums
    name: str
    end: bytes

    @property
    def num_data_blocks(self) -> int:
        """Number of blocks of the data region."""
        return num_blocks(self.tail_start, self.block_bytes)

    @property
    def memory_bytes(self) -> int:
        """An estimate of the memory that it takes."""
        return len(self.end) + self.tail_sums.nbytes

    def data_sums(self, data: bytes) -> Sums:
        """Return the sums of the data region of a file, given the whole file with a verified tail region."""
        return np.frombuffer(data, SUM_TYPE, self.num_data_blocks, self.tail_start).astype(np.uint32)


def num_blocks(size: int, block_bytes: int) -> int:
    """Return the number of blocks of a region."""
    return -(-size // block_bytes)


def serialize_seal(tail_start: int, block_bytes: int, tail_sums: Sums, name: str, footer: bytes) -> bytes:
    """Return the seal.

    Parameters
    ----------
    tail_start, block_bytes, tail_sums, name
        See `Seal`.
    footer : bytes
        The footer that will follow.
    """
    stored = name.encode()
    summed = _SUMMED.pack(tail_start, block_bytes, len(tail_sums), len(stored), _VERSION)
    head = tail_sums.astype(SUM_TYPE).tobytes() + stored + summed
    return head + struct.pack("<Q", checksum64(head + footer)) + _MAGIC


def read_seal(tail: TailReader) -> Seal | None:
    """Read the seal of a file, and verify it; None if the file has none.

    Raises
    ------
    ChecksumError
        If the seal, or the footer after it, is damaged.
    NotSupportedError
        If a newer release has written it.
    """
    size = tail.size_bytes
    fixed_bytes = _END.size + FOOTER_BYTES
    if size < fixed_bytes:
        return None
    (fixed,) = tail.read([ByteRange(size - fixed_bytes, fixed_bytes)])
    tail_start, block_bytes, num_sums, name_bytes, version, found, magic = _END.unpack_from(fixed)
    if magic != _MAGIC:
        return None
    head_bytes = num_sums * SUM_TYPE.itemsize + name_bytes
    tail_end = size - fixed_bytes - head_bytes
    if tail_end < 0:
        raise ChecksumError("the checksums of the file are damaged: they begin before it", offset=size - fixed_bytes)
    (head,) = tail.read([ByteRange(tail_end, head_bytes)])
    if checksum64(head + fixed[: _SUMMED.size] + fixed[_END.size :]) != found:
        raise ChecksumError("the checksums of the file, or its footer, are damaged", offset=tail_end)
    if version != _VERSION:
        raise NotSupportedError(f"the file has checksums of version {version}; a newer release has written it")
    sums_bytes = num_sums * SUM_TYPE.itemsize
    sums = np.frombuffer(head, SUM_TYPE, num_sums).astype(np.uint32)
    seal = Seal(block_bytes, tail_start, tail_end, sums, head[sums_bytes:].decode("utf-8", "replace"), head + fixed)
    _check(seal)
    return seal


def _check(seal: Seal) -> None:
    """Refuse a seal whose parts contradict each other: a defect of its writer."""
    plausible = seal.block_bytes in _BLOCK_BYTES and seal.block_bytes % SUM_TYPE.itemsize == 0
    plausible = plausible and seal.tail_start <= seal.tail_end
    plausible = plausible and len(seal.tail_sums) == num_blocks(seal.tail_end - seal.tail_start, seal.block_bytes)
    if not plausible or seal.tail_start + seal.num_data_blocks * SUM_TYPE.itemsize > seal.tail_end:
        raise ChecksumError(
            f"the checksums are said to be of {seal.tail_start} bytes in blocks of {seal.block_bytes}, and of"
            f" {len(seal.tail_sums)} blocks before byte {seal.tail_end}, which is impossible",
            offset=seal.tail_end,
        )
