"""The tokens of a partition of a text index, and their numbers.

They are the keys and values of a finite state transducer of the Rust crate `fst`, version 3:

    u64 version │ u64 type │ nodes │ u64 number of keys │ u64 address of the root │ u32 checksum

A node is read backwards from its last byte, which is at its address. It has one transition, to the node before it
(`11` and 6 bits of a common input byte) or to another (`10` and the same), or any number of them (`0`, whether it is
final, and 6 bits of their number):

    [u8 number] ← u8 sizes ← [256 bytes of an index] ← input bytes ← addresses ← outputs ← [output if it is final]

Addresses of targets are distances from the end of the node. Nodes only refer to nodes before them.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lance_format.errors import CorruptFileError
from lance_format.kernels.texts.token_automaton import (
    MANY_TRANSITIONS,
    checksum_crc32c,
    compile_automaton,
    most_automaton_bytes,
)
from lance_format.lazy_dataclasses import dataclass

_VERSION = 3
_HEADER, _FOOTER = struct.Struct("<QQ"), struct.Struct("<QQI")
_CHECKSUM = struct.Struct("<I")
_CRC32C_POLYNOMIAL = 0x82F63B78
_CHECKSUM_ADDEND = 0xA282EAD8
_COMMON = b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG"
"""Input bytes by their number in a state, from 1 on."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the transducer.

    Parameters
    ----------
    is_final : bool
        Whether a key ends there.
    final_output : int
        What is added to its value if one does.
    transitions : tuple of (int, int, int)
        The input byte, the output and the address of the target of each, by ascending input.
    """

    is_final: bool
    final_output: int
    transitions: tuple[tuple[int, int, int], ...]


class TokenDictionary:
    """Tokens and their numbers.

    Parameters
    ----------
    data : bytes
        The transducer.
    path : str
        The file, for errors.
    numbers : uint32[num_tokens], optional
        The number of each token in the order of their bytes, where it is not what the transducer says.

    Raises
    ------
    CorruptFileError
        If it is not one.
    """

    def __init__(self, data: bytes, path: str, numbers: npt.NDArray[np.uint32] | None = None) -> None:
        self._data = data
        self._path = path
        self._numbers = numbers
        if len(data) < _HEADER.size + _FOOTER.size:
            raise self._damaged(f"it has {len(data)} bytes")
        version, _ = _HEADER.unpack_from(data)
        self.num_tokens, self._root, _ = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
        if version != _VERSION or self._root >= len(data) - _FOOTER.size:
            raise self._damaged(f"its version is {version}, and its root at {self._root}")

    @property
    def size_bytes(self) -> int:
        """Size in memory."""
        return len(self._data) + (0 if self._numbers is None else self._numbers.nbytes)

    def check(self) -> None:
        """Compare the checksum of the whole, which a search for a token does not read.

        Raises
        ------
        CorruptFileError
            If it is that of other bytes.
        """
        (stored,) = _CHECKSUM.unpack_from(self._data, len(self._data) - _CHECKSUM.size)
        if stored != _checksum(self._data[: -_CHECKSUM.size]):
            raise self._damaged("its checksum is that of other bytes")

    def find(self, token: str) -> int | None:
        """Return the number of a token; None if it does not occur."""
        address, output = self._root, 0
        for byte in token.encode():
            for value, added, target in self._node(address).transitions:
                if value == byte:
                    address, output = target, output + added
                    break
            else:
                return None
        node = self._node(address)
        if not node.is_final:
            return None
        number = output + node.final_output
        return number if self._numbers is None else int(self._numbers[number])

    def similar(self, token: str, distance: int, prefix: str) -> Iterator[str]:
        """Yield the tokens that begin with a prefix and differ from one by few changes of characters, in order.

        Parameters
        ----------
        token : str
        distance : int
            The maximum number of characters that are inserted, deleted or replaced.
        prefix : str
        """
        first = list(range(len(token) + 1))
        stack: list[tuple[int, bytes, str, list[int]]] = [(self._root, b"", "", first)]
        while stack:
            address, pending, key, row = stack.pop()
            node = self._node(address)
            if node.is_final and not pending and row[-1] <= distance and key.startswith(prefix):
                yield key
            for byte, _, target in reversed(node.transitions):
                grown = self._grown(token, distance, prefix, pending + bytes([byte]), key, row)
                if grown is not None:
                    stack.append((target, *grown))

    def _grown(
        self, token: str, distance: int, prefix: str, pending: bytes, key: str, row: list[int]
    ) -> tuple[bytes, str, list[int]] | None:
        """Return a state after one more byte; None if no token from there on is similar."""
        if len(pending) < _character_bytes(pending[0]):
            return pending, key, row
        try:
            character = pending.decode()
        except UnicodeDecodeError as error:
            raise self._damaged(f"a token is not UTF-8: {error}") from error
        grown = key + character
        if not (grown.startswith(prefix) or prefix.startswith(grown)):
            return None
        following = _next_row(token, row, character)
        return (b"", grown, following) if min(following) <= distance else None

    def _node(self, address: int) -> _Node:
        if address == 0:
            return _Node(True, 0, ())
        if not _HEADER.size <= address < len(self._data) - _FOOTER.size:
            raise self._damaged(f"there is no node at {address}")
        state = self._data[address]
        try:
            node = self._single(address, state) if state & 0x80 else self._several(address, state)
        except IndexError as error:
            raise self._damaged(f"the node at {address} is cut off") from error
        if any(not 0 <= target < address for _, _, target in node.transitions):
            raise self._damaged(f"the node at {address} refers to a later one")
        return node

    def _single(self, address: int, state: int) -> _Node:
        """Return a node with one transition."""
        number = state & 0x3F
        at = address if number else address - 1
        byte = _COMMON[number - 1] if number else self._data[at]
        if state & 0x40:
            return _Node(False, 0, ((byte, 0, at - 1),))
        at -= 1
        target_size, output_size = self._data[at] >> 4, self._data[at] & 0x0F
        end = at - target_size - output_size
        target = self._target(at - target_size, target_size, end)
        return _Node(False, 0, ((byte, self._integer(end, output_size), target),))

    def _several(self, address: int, state: int) -> _Node:
        """Return a node with any number of transitions."""
        count, at = state & 0x3F, address
        if not count:
            at -= 1
            count = self._data[at]
            count = 256 if count == 1 else count
        at -= 1
        target_size, output_size = self._data[at] >> 4, self._data[at] & 0x0F
        inputs = at - (256 if count > MANY_TRANSITIONS else 0)
        targets = inputs - count
        outputs = targets - count * target_size
        is_final = bool(state & 0x40)
        end = outputs - output_size * (count + is_final)
        if end < _HEADER.size - 1:
            raise IndexError
        found = []
        for index in range(count):
            output = self._integer(outputs - (index + 1) * output_size, output_size)
            target = self._target(targets - (index + 1) * target_size, target_size, end)
            found.append((self._data[inputs - index - 1], output, target))
        return _Node(is_final, self._integer(end, output_size) if is_final else 0, tuple(found))

    def _target(self, at: int, size: int, end: int) -> int:
        distance = self._integer(at, size)
        return end - distance if distance else 0

    def _integer(self, at: int, size: int) -> int:
        if size > 8 or at < 0:
            raise IndexError
        return int.from_bytes(self._data[at : at + size], "little")

    def _damaged(self, what: str) -> CorruptFileError:
        return CorruptFileError(f"malformed dictionary of tokens: {what}", path=self._path)


def serialize_dictionary(tokens: Sequence[bytes]) -> bytes:
    """Return the transducer of tokens whose numbers are their ranks.

    Parameters
    ----------
    tokens : sequence of bytes
        Distinct and ascending.
    """
    data = np.frombuffer(b"".join(tokens), np.uint8)
    offsets = np.array([0, *itertools.accumulate(map(len, tokens))], np.int64)
    common = np.zeros(256, np.uint8)
    common[list(_COMMON)] = np.arange(1, len(_COMMON) + 1)
    out = np.empty(most_automaton_bytes(data.size, len(tokens)), np.uint8)
    end = compile_automaton(data, offsets, max(map(len, tokens), default=0), common, out)
    root = 0 if offsets[-1] == 0 and len(tokens) else end - 1
    nodes = out[_HEADER.size : end].tobytes()
    content = _HEADER.pack(_VERSION, 0) + nodes + _FOOTER.pack(len(tokens), root, 0)[:-4]
    return content + _CHECKSUM.pack(_checksum(content))


def _checksum(content: bytes) -> int:
    """Return the masked CRC-32C of bytes."""
    checksum = checksum_crc32c(np.frombuffer(content, np.uint8), _crc32c_table())
    return ((checksum >> 15 | checksum << 17) + _CHECKSUM_ADDEND) & 0xFFFFFFFF


@functools.cache
def _crc32c_table() -> npt.NDArray[np.uint32]:
    """Return the remainder of each byte."""
    found = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        found = np.where(found & 1, found >> 1 ^ np.uint32(_CRC32C_POLYNOMIAL), found >> 1).astype(np.uint32)
    return found


def _character_bytes(lead: int) -> int:
    return 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def _next_row(token: str, row: list[int], character: str) -> list[int]:
    """Return the next row of the matrix of Levenshtein distances."""
    following = [row[0] + 1]
    for index, expected in enumerate(token):
        changed = row[index] + (expected != character)
        following.append(min(changed, row[index + 1] + 1, following[-1] + 1))
    return following
