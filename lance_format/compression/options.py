"""Options of the compression of a column, from the metadata of its field.

    ┌──────────────────────────────────────────┬─────────────────────────┬─────────────────────────────────────────────┐
    │ lance-encoding:compression               │ none, zstd, lz4, fsst   │ none: values as they are                    │
    │ lance-encoding:compression-level         │ -131072 to 22           │ zstd's; lz4 has none                        │
    │ lance-encoding:rle-threshold             │ 0.0 to 1.0              │ runs a value below which runs are encoded   │
    │ lance-encoding:bss                       │ off, on, auto           │ bytes split before zstd or lz4              │
    │ lance-encoding:dict-divisor              │ more than 1             │ values a distinct one that a dictionary has │
    │ lance-encoding:dict-size-ratio           │ above 0.0, up to 1.0    │ how much smaller a dictionary has to be     │
    │ lance-encoding:dict-max-size             │ 0 and more              │ bytes of a dictionary's items at most       │
    │ lance-encoding:dict-values-compression   │ none, zstd, lz4         │ of the dictionary, from file format 2.2 on  │
    │ lance-encoding:dict-values-compression-… │ …level: -131072 to 22   │ zstd's                                      │
    │ lance-encoding:minichunk-size            │ 1 to 1073741824         │ bytes of a chunk of byte strings at most    │
    │ lance-encoding:structural-encoding       │ miniblock, fullzip      │ the layout of pages                         │
    └──────────────────────────────────────────┴─────────────────────────┴─────────────────────────────────────────────┘

Options from several sources are merged as mappings before they are parsed (`defaults.py`). Values are spelled exactly
as the reference accepts them: a table keeps them, and the reference must be able to write to it. An option that the
reference would ignore is refused for new columns, and ignored with a warning for existing ones (`understood`).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import TypeVar

from lance_format.compression.byte_codecs import LZ4, ZSTD
from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

PREFIX = b"lance-encoding:"

NAMES = (
    "compression",
    "compression-level",
    "rle-threshold",
    "bss",
    "dict-divisor",
    "dict-size-ratio",
    "dict-max-size",
    "dict-values-compression",
    "dict-values-compression-level",
    "minichunk-size",
    "structural-encoding",
)
"""The known names, without their prefix."""

NAMES_OF_FIELDS = ("packed", "blob")
"""Keys that define the column; any other key with the prefix is no option."""

_NOT_DONE = dict.fromkeys(
    ("blob-inline-size-threshold", "blob-dedicated-size-threshold", "blob-pack-file-size-threshold"),
    "blobs of any size are written into the data file",
)
"""Options of pylance that are not supported, and the behaviour instead."""

_MIN_LEVEL, _MAX_LEVEL = -131_072, 22
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_MAX_CHUNK_BYTES = 2**30
_Choice = TypeVar("_Choice", bound=enum.Enum)


class Scheme(enum.Enum):
    """Compression of a column's values."""

    NONE = "none"
    ZSTD = "zstd"
    LZ4 = "lz4"
    FSST = "fsst"

    @property
    def general(self) -> int | None:
        """The scheme of general compression; None for other members."""
        return {Scheme.ZSTD: ZSTD, Scheme.LZ4: LZ4}.get(self)


class ByteStreamSplitMode(enum.Enum):
    """Splitting of bytes before general compression."""

    OFF = "off"
    ON = "on"
    AUTO = "auto"


class StructuralEncoding(enum.Enum):
    """Page layout of a column."""

    MINI_BLOCK = "miniblock"
    FULL_ZIP = "fullzip"


@dataclass(frozen=True, slots=True)
class CompressionOptions:
    """Options of the compression of a column; the defaults are those of a field without metadata.

    Parameters
    ----------
    scheme : Scheme or None
        None leaves the choice to the statistics of each page.
    level : int or None
    rle_threshold : float
        Runs are encoded if there are fewer of them than this share of the values.
    byte_stream_split : ByteStreamSplitMode
    dict_divisor : int
        A dictionary has at most the number of values divided by this.
    dict_size_ratio : float
        A dictionary and its indices are at most this share of the page without one.
    dict_max_size : int or None
        Maximum bytes of the items of a dictionary.
    dict_values_scheme : Scheme or None
        Scheme of the dictionary itself; None is `scheme`, else zstd.
    dict_values_level : int or None
        Of zstd; None is `level`.
    minichunk_size : int or None
        Bytes per chunk of byte strings; ignored if larger than the file's version allows.
    structural_encoding : StructuralEncoding or None
        None leaves the choice to the size of the values.
    """

    scheme: Scheme | None = None
    level: int | None = None
    rle_threshold: float = 0.5
    byte_stream_split: ByteStreamSplitMode = ByteStreamSplitMode.AUTO
    dict_divisor: int = 2
    dict_size_ratio: float = 0.8
    dict_max_size: int | None = None
    dict_values_scheme: Scheme | None = None
    dict_values_level: int | None = None
    minichunk_size: int | None = None
    structural_encoding: StructuralEncoding | None = None

    @property
    def general_scheme(self) -> int | None:
        """The requested general compression, if any."""
        return None if self.scheme is None else self.scheme.general

    @classmethod
    def parse(cls, metadata: Mapping[bytes, bytes] | None, column: str) -> CompressionOptions:
        """Read the options of a column from the metadata of its field, whose other keys are ignored.

        Raises
        ------
        InvalidInputError
            If a value is out of range; names the column and the option.
        """
        reader = _OptionReader(metadata or {}, column)
        defaults = cls()
        options = cls(
            scheme=reader.choice("compression", Scheme),
            level=reader.integer("compression-level", _MIN_LEVEL, _MAX_LEVEL),
            rle_threshold=reader.share("rle-threshold", defaults.rle_threshold),
            byte_stream_split=reader.choice("bss", ByteStreamSplitMode) or defaults.byte_stream_split,
            dict_divisor=reader.integer("dict-divisor", 2, None) or defaults.dict_divisor,
            dict_size_ratio=reader.share("dict-size-ratio", defaults.dict_size_ratio),
            dict_max_size=reader.integer("dict-max-size", 0, None),
            dict_values_scheme=reader.choice("dict-values-compression", Scheme),
            dict_values_level=reader.integer("dict-values-compression-level", _MIN_LEVEL, _MAX_LEVEL),
            minichunk_size=reader.integer("minichunk-size", 1, _MAX_CHUNK_BYTES),
            structural_encoding=reader.choice("structural-encoding", StructuralEncoding),
        )
        if options.scheme is Scheme.LZ4 and options.level is not None:
            raise reader.error("compression-level", "nothing, because lz4 has no levels")
        if options.dict_values_scheme is Scheme.LZ4 and options.dict_values_level is not None:
            raise reader.error("dict-values-compression-level", "nothing, because lz4 has no levels")
        if options.dict_size_ratio == 0:
            raise reader.error("dict-size-ratio", "a number above 0.0 and up to 1.0")
        if options.dict_values_scheme is Scheme.FSST:
            raise reader.error("dict-values-compression", "one of none, zstd, lz4")
        return options


def understood(
    metadata: Mapping[bytes, bytes], column: str
) -> tuple[dict[bytes, bytes], tuple[InvalidInputError, ...]]:
    """Return the supported options in the metadata of a field, and a message for each unsupported one."""
    followed: dict[bytes, bytes] = {}
    wrong = []
    for key, value in metadata.items():
        name = key.removeprefix(PREFIX).decode(errors="replace")
        if not key.startswith(PREFIX) or name in NAMES_OF_FIELDS:
            continue
        if name not in NAMES:
            why = _NOT_DONE.get(name, f"it is unknown; the options are {', '.join(NAMES)}")
            wrong.append(
                InvalidInputError(
                    f"column {column!r}: option '{PREFIX.decode()}{name}' would have no effect; remove it: {why}"
                )
            )
            continue
        try:
            CompressionOptions.parse({**followed, key: value}, column)
        except InvalidInputError as error:
            wrong.append(error)
        else:
            followed[key] = value
    return followed, tuple(wrong)


class _OptionReader:
    """Reader of single options, whose errors name the option and its column."""

    def __init__(self, metadata: Mapping[bytes, bytes], column: str) -> None:
        self._metadata = metadata
        self._column = column

    def _text(self, name: str) -> str | None:
        value = self._metadata.get(PREFIX + name.encode())
        return None if value is None else value.decode(errors="replace")

    def error(self, name: str, expected: str) -> InvalidInputError:
        """Return the error of an option."""
        return InvalidInputError(
            f"column {self._column!r}: option '{PREFIX.decode()}{name}' is {self._text(name)!r}; expected {expected}"
        )

    def choice(self, name: str, choices: type[_Choice]) -> _Choice | None:
        """Return an option that is one of some words: names of schemes literally, others in any case.

        Raises
        ------
        InvalidInputError
            If it is none of them.
        """
        text = self._text(name)
        if text is None:
            return None
        try:
            return choices(text if issubclass(choices, Scheme) else text.lower())
        except ValueError:
            raise self.error(name, f"one of {', '.join(choice.value for choice in choices)}") from None

    def integer(self, name: str, least: int, most: int | None) -> int | None:
        """Return an option that is an integer; see `CompressionOptions`.

        Parameters
        ----------
        name : str
        least : int
        most : int or None
            The limits, both included.
        """
        text = self._text(name)
        if text is None:
            return None
        expected = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or number < least or (most is not None and number > most):
            raise self.error(name, expected)
        return number

    def share(self, name: str, default: float) -> float:
        """Return an option that is a number from 0 to 1.

        Raises
        ------
        InvalidInputError
            If it is none.
        """
        text = self._text(name)
        if text is None:
            return default
        number = float(text) if _NUMBER.fullmatch(text) else None
        if number is None or not 0 <= number <= 1:
            raise self.error(name, "a number from 0.0 to 1.0")
        return number
