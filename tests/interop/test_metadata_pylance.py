"""Metadata of tables, changed by either library."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

import lance_format
from lance_format import CommitConflictError, InvalidInputError
from lance_format.table.changes.columns.metadata import update_config
from tests.interop.test_table_pylance import assert_same, data

CHANGES: list[Callable[[Any], Any]] = [
    lambda table: table.update_config({"k": "1", "other": "2"}),
    lambda table: table.update_config({"k": None, "more": "3"}),
    lambda table: table.delete_config_keys(["other", "never"]),
    lambda table: table.update_config({"only": "this"}, replace=True),
    lambda table: table.update_metadata({"owner": "us", "x": "y"}),
    lambda table: table.update_metadata({"x": None}),
    lambda table: table.update_schema_metadata({"a": "b", "ü": "ö"}),
    lambda table: table.update_schema_metadata({"c": "d"}, replace=True),
    lambda table: table.update_field_metadata({"a": {"unit": "m"}, "s": {"lang": "en"}}),
    lambda table: table.update_field_metadata({"s": {"lang": None, "more": "1"}}),
    lambda table: table.update_field_metadata({"s": {"lang": "de"}}, replace=True),
]


def described(table: Any) -> list[Any]:
    fields = [dict(field.metadata or {}) for field in table.schema]
    return [table.config(), table.metadata, table.schema_metadata, dict(table.schema.metadata or {}), fields]


def test_either_library_changes_what_the_other_reads(tmp_path: Path) -> None:
    paths = [tmp_path / "ours", tmp_path / "theirs"]
    for path in paths:
        lance_format.write_dataset(data(0, 3), path)
    for change in CHANGES:
        change(lance_format.dataset(paths[0]))
        change(lance.dataset(str(paths[1])))
        views = [open_(str(path)) for path in paths for open_ in (lance.dataset, lance_format.dataset)]
        assert all(described(view) == described(views[0]) for view in views)
        for path in paths:
            assert_same(path)
    assert lance_format.dataset(paths[0]).update_config({"z": "1"}) == {"only": "this", "z": "1"}


def test_two_writers_of_one_key_conflict(tmp_path: Path) -> None:
    table = lance_format.write_dataset(data(0, 3), tmp_path)
    lance.dataset(str(tmp_path)).update_config({"k": "theirs"})
    update_config(table._table, {"mine": "1"})
    with pytest.raises(CommitConflictError, match="nothing was changed"):
        update_config(table._table, {"k": "ours"})
    assert lance.dataset(str(tmp_path)).config() == {"k": "theirs", "mine": "1"}


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update_config({"k": 1}),
        lambda table: table.update_config([("k", "v")]),
        lambda table: table.update_field_metadata({"nope": {"k": "v"}}),
        lambda table: table.update_field_metadata({}),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    table = lance_format.write_dataset(data(0, 3), tmp_path)
    with pytest.raises(InvalidInputError):
        change(table)
    assert table.latest_version == 1
