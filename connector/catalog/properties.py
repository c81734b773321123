"""TBLPROPERTIES: some say how a table is stored, some are the user's own, some only describe it.

| property                                       | kept as                                             |
|------------------------------------------------|-----------------------------------------------------|
| `file_format_version`, `enable_stable_row_ids` | settings that the table was created with            |
| `allow_unportable_names`                       | nothing: the names of the new table show it         |
| `<column>.lance.…`, `<column>.arrow.…`         | metadata of the column                              |
| `lance.version`, `.rows`, `.fragments`, `.bytes` | nothing: they describe the version                |
| `lance.txn.<application>`                      | nothing: a new table has no batch of an application |
| all others, `comment` among them               | an entry of the table's configuration               |
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from connector.options.column_options import PROPERTIES, stated_options
from lance_format import BatchMarker, InvalidInputError, LanceDataset

FORMAT = "file_format_version"
STABLE_ROW_IDS = "enable_stable_row_ids"
_UNPORTABLE = "allow_unportable_names"
_SETTINGS = {"".join(filter(str.isalpha, name)): name for name in (FORMAT, STABLE_ROW_IDS, _UNPORTABLE)}
"""The settings of tables by their letters alone."""
_OTHER_NAMES = {"datastorageversion": FORMAT, "newtableenablestablerowids": STABLE_ROW_IDS}
"""Names that the Python API of the reference has for settings."""
_OF_COLUMNS = ".lance."
_DESCRIBING = ("lance.version", "lance.rows", "lance.fragments", "lance.bytes")
_OF_SPARK = ("location", "provider", "owner", "external", "is_managed_location")
_OF_WRITES = ("max_row_per_file", "max_bytes_per_file", "mergeschema", "txnappid", "txnversion")


def split_properties(properties: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Divide the properties of a new table into options of its first write, and entries of its configuration.

    Properties that only describe a version are ignored, because SHOW CREATE TABLE prints them too.

    Parameters
    ----------
    properties : mapping of str to str

    Raises
    ------
    InvalidInputError
        If one is an option of single writes, which a table does not keep, or looks like a misspelt setting.
    """
    options, config = {}, {}
    for name, value in properties.items():
        _check_known(name)
        if name.lower() in _OF_WRITES:
            raise InvalidInputError(
                f"{name!r} is an option of a write, and no property of a table: give it to df.write.option or"
                " df.writeTo(…).option"
            )
        if _settles(name):
            options[name] = value
        elif name not in _DESCRIBING and not name.startswith(BatchMarker.prefix):
            config[name] = value
    return options, config


def check_changeable(values: Mapping[str, str | None]) -> None:
    """Refuse properties that cannot be changed once the table exists.

    Parameters
    ----------
    values : mapping of str to (str or None)
        None removes a property, which may have any name.

    Raises
    ------
    InvalidInputError
        Naming the first.
    """
    for name, value in values.items():
        if value is not None:
            _check_known(name)
        if _settles(name):
            raise InvalidInputError(
                f"the property {name!r} is settled when a table is created: CREATE OR REPLACE TABLE … AS SELECT, which"
                " may read the table itself, recreates it"
            )
        if name in _OF_SPARK:
            raise InvalidInputError(
                f"the {name} of a table of a catalog cannot be set: the table is a Lance table where its name says;"
                " nothing was changed"
            )
        if name in _DESCRIBING or name.lower() in _OF_WRITES:
            raise InvalidInputError(f"{name!r} cannot be set: it is no property that a table keeps")


def _check_known(name: str) -> None:
    """Refuse a property that looks like a setting and is none: it would have no effect."""
    if _settles(name):
        return
    if _OF_COLUMNS in name.lower():
        known = ", ".join(property_name for property_name in PROPERTIES if property_name.startswith(_OF_COLUMNS[1:]))
        raise InvalidInputError(
            f"the property {name!r} is unknown; nothing was changed. Those of columns begin with the column and a dot,"
            f" and end with one of {known}"
        )
    letters = "".join(filter(str.isalpha, name.lower()))
    close = difflib.get_close_matches(letters, [*_SETTINGS, *_OTHER_NAMES], n=1, cutoff=0.85)
    if close:
        setting = _SETTINGS.get(close[0]) or _OTHER_NAMES[close[0]]
        raise InvalidInputError(f"the property {name!r} is unknown; nothing was changed. Did you mean {setting!r}?")


def _settles(name: str) -> bool:
    """Return whether a property says how a table is stored."""
    return name.lower() in (FORMAT, STABLE_ROW_IDS, _UNPORTABLE) or any(
        name.lower().endswith(f".{end}") for end in PROPERTIES
    )


def describe_properties(dataset: LanceDataset) -> dict[str, str]:
    """Return the properties of a version of a table.

    Parameters
    ----------
    dataset : LanceDataset
    """
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    rows = [fragment.num_rows for fragment in fragments]
    size_bytes = sum(fragment.known_bytes for fragment in fragments)
    counted = {} if None in rows else {"lance.rows": str(sum(count or 0 for count in rows))}
    return {
        **dataset.config(),
        **stated_options(dataset.schema),
        FORMAT: dataset.data_storage_version,
        STABLE_ROW_IDS: str(dataset.has_stable_row_ids).lower(),
        "lance.version": str(dataset.version),
        "lance.fragments": str(len(fragments)),
        "lance.bytes": str(size_bytes),
        **counted,
    }
