"""Compression options of each leaf: those of its field, of its parents, and of the caller of a writer.

Unsupported options are refused for new columns. Existing columns may have them, because other writers allow them: they
are ignored, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from lance_format.blob_fields import describe, is_description
from lance_format.compression.defaults import EncodingDefaults, overlay
from lance_format.compression.options import CompressionOptions, StructuralEncoding, understood
from lance_format.datatypes import Field
from lance_format.errors import InvalidInputError
from lance_format.file.columns.leaf_columns import Leaf, leaves_of
from lance_format.file.columns.leaves import BLOB_SHAPE, PACKED_SHAPE
from lance_format.file.columns.storable import has_fixed_width
from lance_format.file.writing.option_effects import useless_mark, useless_options

_DEFAULTS = CompressionOptions()


def options_of(leaf: Leaf, defaults: EncodingDefaults) -> CompressionOptions:
    """Return the compression options of a leaf, which inherits those of its parents.

    Raises
    ------
    InvalidInputError
        If an option of the caller is invalid.
    """
    if _asks_for_nothing(leaf, defaults):
        return _DEFAULTS
    path = [part.name for part in leaf.path]
    merged = defaults.of(path)
    CompressionOptions.parse(merged, leaf.name)
    named = defaults.named(path)
    names = [".".join(path[:depth]) for depth in range(1, len(path) + 1)]
    for part, name in zip(leaf.path, names, strict=True):
        for error in useless_options(part, name, defaults.given(name)).values():
            raise error
    _check_effect(leaf, named)
    problems: list[InvalidInputError] = []
    for part, name in zip(leaf.path, names, strict=True):
        followed, wrong = _followed(part, name, leaf.name)
        problems += wrong
        for options in (merged, named):
            overlay(options, followed)
    try:
        _check_effect(leaf, named)
    except InvalidInputError as error:
        problems.append(error)
    for problem in problems:
        warnings.warn(f"{problem}; the table has it already, and it is left out", stacklevel=2)
    return CompressionOptions.parse(merged, leaf.name)


def asks_for_general(leaf: Leaf, defaults: EncodingDefaults) -> bool:
    """Return whether zstd or LZ4 is requested for a leaf or a parent by name, not only for all columns."""
    if _asks_for_nothing(leaf, defaults):
        return False
    asked = defaults.named([part.name for part in leaf.path])
    for part in leaf.path:
        overlay(asked, understood(part.metadata, leaf.name)[0])
    return CompressionOptions.parse(asked, leaf.name).general_scheme is not None


def _asks_for_nothing(leaf: Leaf, defaults: EncodingDefaults) -> bool:
    """Return whether neither the caller nor metadata says anything of a leaf, which is looked up sooner."""
    return not (defaults.everywhere or defaults.columns or _has_metadata(leaf))


def _has_metadata(leaf: Leaf) -> bool:
    for part in leaf.path:  # noqa: SIM110  # A generator takes twice as long, and wide tables have many columns.
        if part.metadata:
            return True
    return False


def check_requests(fields: Iterable[Field]) -> None:
    """Refuse new columns whose metadata asks for what cannot be done.

    Raises
    ------
    InvalidInputError
        Naming the first column and option.
    """
    for leaf in filter(_has_metadata, (leaf for field in fields for leaf in leaves_of(describe(field)))):
        merged: dict[bytes, bytes] = {}
        for depth, part in enumerate(leaf.path, 1):
            followed, wrong = _followed(part, ".".join(above.name for above in leaf.path[:depth]), leaf.name)
            if wrong:
                raise wrong[0]
            overlay(merged, followed)
        _check_effect(leaf, merged)


def _followed(part: Field, name: str, leaf_name: str) -> tuple[dict[bytes, bytes], list[InvalidInputError]]:
    """Return the options in the metadata of a field that can affect its columns, and an error for each other one."""
    options, unknown = understood(part.metadata, leaf_name)
    useless = useless_options(part, name, options)
    mark = useless_mark(part, name)
    wrong = [*unknown, *useless.values(), *(() if mark is None else (mark,))]
    return {key: value for key, value in options.items() if key not in useless}, wrong


def _check_effect(leaf: Leaf, asked: dict[bytes, bytes]) -> None:
    """Refuse zstd and LZ4 that the caller requests for a column, by name, where the format does not allow them."""
    options = CompressionOptions.parse(asked, leaf.name)
    if options.general_scheme is None:
        return
    is_packed = leaf.shape is PACKED_SHAPE
    if leaf.shape is BLOB_SHAPE or is_description(leaf.field):
        what = "blobs are stored as they are"
    elif is_packed and not has_fixed_width(leaf.arrow_type):
        what = "packed structs with strings are stored as they are"
    elif options.structural_encoding is StructuralEncoding.FULL_ZIP and leaf.shape.bits_per_offset is None:
        what = "full-zip pages store values of a fixed width as they are"
    else:
        return
    raise InvalidInputError(
        f"column {leaf.name!r}: {what}, so that 'lance-encoding:compression' has no effect; remove it"
    )
