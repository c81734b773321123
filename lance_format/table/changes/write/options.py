"""The options of a write, as one validated value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Unpack

from lance_format.errors import InvalidInputError
from lance_format.file import check_zone_index
from lance_format.lazy_dataclasses import dataclass
from lance_format.table.changes.write.settings import WriteTuning, auto_cleanup_entries, check_tuning, merge_properties
from lance_format.table.fragments.writer import DEFAULT_MAX_BYTES_PER_FILE, DEFAULT_MAX_ROWS_PER_FILE
from lance_format.version import FileVersion

MODES = ("create", "append", "overwrite")
_MAX_ROWS_PER_FILE = 2**32 - 1
_MAX_BYTES_PER_FILE = 2**63 - 1


class WriteKeywords(WriteTuning, total=False):
    """Keyword arguments of a write besides data, location and mode; see `WriteOptions`."""

    data_storage_version: str | None
    max_rows_per_file: int
    max_bytes_per_file: int
    enable_stable_row_ids: bool
    merge_schema: bool
    allow_unportable_names: bool
    storage_options: Mapping[str, str] | None
    encoding: Mapping[str, Any] | None
    column_encoding: Mapping[str, Mapping[str, Any]] | None
    zone_index: str | None
    commit_message: str | None
    transaction_properties: Mapping[str, str] | None
    auto_cleanup_options: Mapping[str, int] | None
    config: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options of a write to a table.

    Parameters
    ----------
    mode : {"create", "append", "overwrite"}
        "create" requires that there is no table. "append" adds rows, and creates the table if there is none.
        "overwrite" replaces the rows and the schema.
    data_storage_version : str, optional
        File format version of the data files: a number or "stable". By default the table's own, or "stable" for a new
        table.
    max_rows_per_file, max_bytes_per_file : int
        A data file is closed when it reaches either limit. The limit on bytes is at least 64 KiB.
    enable_stable_row_ids : bool
        Whether rows of a new table keep their ids when an update or a compaction moves them. Ignored for existing
        tables.
    merge_schema : bool
        Whether an append adds the columns and struct fields that the table lacks, in the same version. They are null in
        the existing rows. A column that several writers add concurrently is added once.
    allow_unportable_names : bool
        Whether new columns may have names that pylance cannot read: with a dot, a backtick or a NUL character, or
        empty.
    storage_options : mapping of str to str
    encoding, column_encoding : mapping
        Compression of this write's files, unless a field of the table overrides it; see `FileWriter`. The table does
        not keep it.
    zone_index : {"column", "unportable_column"}, optional
        Whether this write's files have statistics in the encodings of their columns too, which pylance ignores. It
        cannot read files of format 2.0 that have them, which only the second value allows. See `FileWriter`.
    commit_message : str, optional
    transaction_properties : mapping of str to str
        Kept with the transaction, like the message as its property `__lance_commit_message`; see
        `LanceDataset.read_transaction`.
    auto_cleanup_options : mapping, optional
        Automatic cleanups of a new table. Every `interval` versions, a cleanup removes versions older than
        `older_than_seconds` (two weeks by default), except the latest `retain_versions`.
    config : mapping of str to str
        Configuration entries of a table that is created or overwritten, set in the same version.

    Raises
    ------
    InvalidInputError
        If an option is invalid.
    """

    mode: str = "create"
    data_storage_version: str | None = None
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE
    max_bytes_per_file: int = DEFAULT_MAX_BYTES_PER_FILE
    enable_stable_row_ids: bool = False
    merge_schema: bool = False
    allow_unportable_names: bool = False
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    encoding: Mapping[str, Any] = field(default_factory=dict)
    column_encoding: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    zone_index: str | None = None
    commit_message: str | None = None
    transaction_properties: Mapping[str, str] = field(default_factory=dict)
    auto_cleanup_options: Mapping[str, int] | None = None
    config: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidInputError(f"mode {self.mode!r} is unknown; use one of {', '.join(MODES)}")
        _check_limit("max_rows_per_file", self.max_rows_per_file, _MAX_ROWS_PER_FILE)
        _check_limit("max_bytes_per_file", self.max_bytes_per_file, _MAX_BYTES_PER_FILE)
        for name in ("enable_stable_row_ids", "merge_schema", "allow_unportable_names"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInputError(f"{name} is {getattr(self, name)!r}; True or False is needed")
        if self.merge_schema and self.mode != "append":
            raise InvalidInputError(
                f'merge_schema is for mode "append"; with "{self.mode}" the data brings its own schema'
            )
        if self.config and self.mode == "append":
            raise InvalidInputError("config is for tables that are created or overwritten; an append keeps the table's")
        if self.data_storage_version is not None:
            FileVersion.parse(self.data_storage_version)
        check_zone_index(self.zone_index)
        merge_properties(self.transaction_properties, self.commit_message)
        if self.auto_cleanup_options is not None:
            auto_cleanup_entries(self.auto_cleanup_options)

    @classmethod
    def of(cls, mode: str, **given: Unpack[WriteKeywords]) -> WriteOptions:
        """Return options by their names. None stands for the default.

        Parameters
        ----------
        mode : str
        **given
            Options by name. Tuning arguments of pylance's writes are ignored.

        Raises
        ------
        InvalidInputError
            If an option is unknown or invalid.
        NotSupportedError
            If an option is not supported.
        """
        chosen: dict[str, Any] = {name: value for name, value in given.items() if name in cls.__slots__}
        check_tuning({name: value for name, value in given.items() if name not in chosen})
        return cls(mode=mode, **{name: value for name, value in chosen.items() if value is not None})

    @property
    def file_version(self) -> FileVersion | None:
        """The version of the data files; None for the table's own."""
        return None if self.data_storage_version is None else FileVersion.parse(self.data_storage_version)

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the transaction, with the commit message among them."""
        return merge_properties(self.transaction_properties, self.commit_message)

    @property
    def first_config(self) -> dict[str, str]:
        """The configuration of a table that the write creates."""
        cleanup = {} if self.auto_cleanup_options is None else auto_cleanup_entries(self.auto_cleanup_options)
        return {**cleanup, **self.config}


def _check_limit(name: str, value: int, maximum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= maximum:
        raise InvalidInputError(f"{name} is {value!r}; a whole number from 1 to {maximum} is needed")
