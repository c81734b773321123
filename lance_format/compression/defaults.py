"""Compression options of a writer, for all columns or single ones; metadata of fields overrides them.

Metadata of a field and of its parents overrides the writer's options for the column, which override its options for all
columns. Names are those of `options.py`, without their prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from lance_format.compression.options import NAMES, NAMES_OF_FIELDS, PREFIX
from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

_SCHEME = PREFIX + b"compression"
_LEVEL = PREFIX + b"compression-level"


@dataclass(frozen=True, slots=True)
class EncodingDefaults:
    """Options of a writer; made by `parse`.

    Parameters
    ----------
    everywhere : mapping of str to str
        By name.
    columns : mapping of str to mapping
        By column, and by name.
    """

    everywhere: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def parse(
        cls,
        everywhere: Mapping[str, object] | None,
        columns: Mapping[str, Mapping[str, object]] | None,
        known: Sequence[str],
    ) -> EncodingDefaults:
        """Check names; values are checked by `CompressionOptions.parse`.

        Parameters
        ----------
        everywhere, columns : mapping, optional
            Values are converted by `str`, and may have any case.
        known : sequence of str
            The existing columns; nested ones are named with dots.

        Raises
        ------
        InvalidInputError
            If there is no such option, or no such column.
        """
        for column in columns or {}:
            if column not in known:
                raise InvalidInputError(
                    f"encoding options for column {column!r}: there is none; the columns are {', '.join(known)}"
                )
        return cls(
            _checked(everywhere or {}), {column: _checked(options) for column, options in (columns or {}).items()}
        )

    def of(self, path: Sequence[str]) -> dict[bytes, bytes]:
        """Return the options of a column in the form of a field's metadata.

        Parameters
        ----------
        path : sequence of str
            The names from the top-level field to the leaf. Options of an outer field hold for the leaf too.
        """
        merged: dict[bytes, bytes] = _as_metadata(self.everywhere)
        overlay(merged, self.named(path))
        return merged

    def named(self, path: Sequence[str]) -> dict[bytes, bytes]:
        """Return the options of a column, given by its name, or that of a parent."""
        merged: dict[bytes, bytes] = {}
        for depth in range(len(path)):
            overlay(merged, self.given(".".join(path[: depth + 1])))
        return merged

    def given(self, column: str) -> dict[bytes, bytes]:
        """Return the options that are given for exactly one column, by its name."""
        return _as_metadata(self.columns.get(column, {}))


def overlay(options: dict[bytes, bytes], closer: Mapping[bytes, bytes]) -> None:
    """Override options by those closer to a column; overriding a scheme also drops its level.

    Parameters
    ----------
    options : dict
    closer : mapping
    """
    if _SCHEME in closer:
        options.pop(_LEVEL, None)
    options.update(closer)


def _as_metadata(options: Mapping[str, str]) -> dict[bytes, bytes]:
    return {PREFIX + name.encode(): value.encode() for name, value in options.items()}


def _checked(options: Mapping[str, object]) -> dict[str, str]:
    prefix = PREFIX.decode()
    checked = {}
    for given, value in options.items():
        name = given.removeprefix(prefix)
        if name in NAMES_OF_FIELDS:
            raise InvalidInputError(
                f"encoding option {given!r} must be in the metadata of a field, because readers need it: "
                f"use field.with_metadata({{'{prefix}{name}': 'true'}})"
            )
        if name not in NAMES:
            raise InvalidInputError(f"there is no encoding option {given!r}; the options are {', '.join(NAMES)}")
        checked[name] = str(value).strip().lower()
    return checked
