"""Options of a compaction: given, or of the table's configuration, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from lance_format.errors import InvalidInputError, NotSupportedError
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.changes.write.plan import choose_file_version
from lance_format.table.fragments.writer import DEFAULT_MAX_BYTES_PER_FILE, DEFAULT_MAX_ROWS_PER_FILE
from lance_format.table.versions.table_version import TableVersion
from lance_format.version import FileVersion

_CONFIG_PREFIX = "lance.compaction."
_DEFAULT_BATCH_SIZE = 8192

_OTHERS = {
    "max_rows_per_group": 1024,
    "num_threads": None,
    "io_buffer_size": None,
    "index_remap_mode": "Direct",
    "compaction_mode": None,
    "enable_binary_copy": False,
    "enable_binary_copy_force": False,
    "binary_copy_read_batch_bytes": 16 * 1024 * 1024,
    "max_overlays_per_fragment": 10,
    "has_eager_remappable_index": None,
}


class _Tuning(TypedDict, total=False):
    """Options of pylance's compaction that this library ignores or refuses."""

    binary_copy_read_batch_bytes: int | None
    compaction_mode: str | None
    io_buffer_size: int | None
    max_overlays_per_fragment: int | None
    max_rows_per_group: int | None
    num_threads: int | None


class CompactionKeywords(_Tuning, total=False):
    """Keyword arguments of a compaction; see `CompactionOptions`."""

    target_rows_per_fragment: int | None
    max_bytes_per_file: int | None
    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    batch_size: int | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: Iterable[int] | None
    data_storage_version: str | None
    defer_index_remap: bool | None


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Choice of the fragments to rewrite, and the form of the new ones.

    Parameters
    ----------
    target_rows_per_fragment : int
        Fragments with fewer rows are combined with their neighbours, and larger ones are cut when they are rewritten.
    max_bytes_per_file : int
    materialize_deletions : bool
        Whether to rewrite fragments for their deleted rows alone.
    materialize_deletions_threshold : float
        The minimum fraction of deleted rows for that.
    batch_size : int
        Maximum number of rows to read at once.
    max_source_fragments, max_source_rows, max_source_bytes : int, optional
        Maximum numbers of fragments, live rows, and bytes of data files to rewrite, from the first fragments on. By
        default there is no limit.
    excluded_fragment_ids : frozenset of int
        Fragments to leave alone.
    data_storage_version : str, optional
        File format version of the new files, by default that of the table. The table's own stays, except 0.1: such a
        table is rewritten as a whole, and gets the newer version.
    defer_index_remap : bool
        Whether indices are left without the new fragments until the next `optimize_indices`. By default those that
        covered their predecessors are updated, in a version of its own.
    """

    target_rows_per_fragment: int = DEFAULT_MAX_ROWS_PER_FILE
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    batch_size: int = _DEFAULT_BATCH_SIZE
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: frozenset[int] = frozenset()
    data_storage_version: str | None = None
    defer_index_remap: bool = False

    @classmethod
    def choose(cls, table: TableVersion, wanted: Mapping[str, Any]) -> CompactionOptions:
        """Return the wanted options, else those of the table's configuration, else the defaults.

        Raises
        ------
        InvalidInputError
            If one is unknown or out of range.
        NotSupportedError
            If one asks for something that ours cannot do.
        """
        given = {name: value for name, value in wanted.items() if not _is_tuning(name, value)}
        values: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            value = given.pop(field.name, None)
            origin = field.name
            if field.name == "data_storage_version":
                version = value or table.manifest.config.get(f"{_CONFIG_PREFIX}{field.name}")
                values[field.name] = None if version is None else str(_choose_version(table, version))
                continue
            if value is None:
                origin = f"{_CONFIG_PREFIX}{field.name}"
                text = table.manifest.config.get(origin)
                value = field.default if text is None else _parse(text, field.default)
            values[field.name] = _checked(origin, value, field.default)
        if given:
            known = ", ".join(field.name for field in dataclasses.fields(cls))
            raise InvalidInputError(f"option {min(given)!r} of compaction is unknown; the options are {known}")
        return cls(**values)

    def renews(self, table: TableVersion) -> bool:
        """Return whether the compaction takes a table of format 0.1 to a newer one, which rewrites all fragments."""
        version = self.data_storage_version
        return table.manifest.file_version is FileVersion.V0_1 and version not in (None, str(FileVersion.V0_1))

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON values, with pylance's defaults for options that only it has."""
        return {**_OTHERS, **dataclasses.asdict(self), "excluded_fragment_ids": sorted(self.excluded_fragment_ids)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> CompactionOptions:
        """Rebuild what `to_json` returned, here or in pylance.

        Raises
        ------
        InvalidInputError, NotSupportedError
            See `choose`.
        """
        found: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            value = values.get(field.name)
            if field.name == "data_storage_version":
                found[field.name] = None if value is None else str(FileVersion.parse(value))
            else:
                found[field.name] = _checked(field.name, field.default if value is None else value, field.default)
        if values.get("enable_binary_copy_force"):
            _is_tuning("compaction_mode", "force_binary_copy")
        return cls(**found)


def _choose_version(table: TableVersion, name: str) -> FileVersion:
    version = FileVersion.parse(name)
    if table.manifest.file_version is FileVersion.V0_1 is not version:
        version.require_writable()
        return version
    return choose_file_version(table.manifest, name)


def _is_tuning(name: str, value: Any) -> bool:
    """Return whether an option is a tuning option of pylance."""
    if name == "compaction_mode" and value == "force_binary_copy":
        raise NotSupportedError("compaction_mode='force_binary_copy' is not supported: rows are always encoded again")
    return name in _Tuning.__annotations__


def _parse(text: str, default: Any) -> Any:
    try:
        if default is None:
            return int(text)
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        return type(default)(text)
    except (ValueError, KeyError):
        return text


def _checked(name: str, value: Any, default: Any) -> Any:
    if default is None and value is None:
        return None
    if isinstance(default, frozenset):
        try:
            return frozenset(int(number) for number in value)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"{name} is {value!r}; ids of fragments are needed") from error
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise InvalidInputError(f"{name} is {value!r}; True or False is needed")
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, float):
        if not is_number or not 0 <= value <= 1:
            raise InvalidInputError(f"{name} is {value!r}; a number from 0 to 1 is needed")
        return float(value)
    if not isinstance(value, int) or not is_number or not 0 < value < 2**63:
        raise InvalidInputError(f"{name} is {value!r}; a whole number from 1 on is needed")
    return value
