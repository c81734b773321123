"""INVERTED indices over a table's life: repairs, compactions, updates, casts; `tests/interop` has their contents."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_format
from lance_format import InvalidInputError
from lance_format.query import PhraseQuery

NOTES = ["an owl at night", None, "two owls and an emu", "", "the emu", "night owls"]
QUERY = "owls by night"


def make(path: Path, repeats: int = 20) -> lance_format.LanceDataset:
    rows = pa.table({"id": range(len(NOTES) * repeats), "note": NOTES * repeats})
    table = lance_format.write_dataset(rows, path, max_rows_per_file=25)
    table.create_scalar_index("note", "INVERTED", with_position=True)
    return table


def found(table: lance_format.LanceDataset, query: object = QUERY) -> list[int]:
    ids: list[int] = table.to_table(["id"], full_text_query=query)["id"].to_pylist()
    return sorted(ids)


def covered(table: lance_format.LanceDataset) -> set[int]:
    return set().union(*(index["fragment_ids"] for index in table.list_indices()))


def test_rows_are_found(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert found(table) == [number for number in range(120) if number % 6 in (0, 2, 5)]
    assert found(table, PhraseQuery("night owl", "note")) == [number for number in range(120) if number % 6 == 5]


@pytest.mark.parametrize("name", ["metadata", "part_0_tokens", "part_0_docs", "part_0_invert"])
def test_damaged_indices_are_repaired(tmp_path: Path, name: str) -> None:
    table = make(tmp_path)
    expected = found(table)
    (file,) = tmp_path.glob(f"_indices/*/{name}.lance")
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 4
    file.write_bytes(content)
    table = lance_format.dataset(tmp_path)
    assert table.verify().problems
    table.verify(repair=True)
    table.checkout_latest()
    assert not table.verify().problems
    assert covered(table) == set(range(5))
    assert found(table) == expected
    assert found(table, PhraseQuery("an owl", "note"))


@pytest.mark.parametrize("stable", [False, True])
def test_compacted_and_updated_rows_are_found(tmp_path: Path, stable: bool) -> None:
    rows = pa.table({"id": range(60), "note": NOTES * 10})
    table = lance_format.write_dataset(rows, tmp_path, max_rows_per_file=7, enable_stable_row_ids=stable)
    table.create_scalar_index("note", "FTS")
    table.delete("id % 6 = 0")
    table.update({"note": "'a quokka'"}, where="id % 6 = 2")
    table.optimize.compact_files(target_rows_per_fragment=40)
    assert covered(table) == {fragment.fragment_id for fragment in table.get_fragments()}
    assert found(table) == [number for number in range(60) if number % 6 == 5]
    assert found(table, "quokka") == [number for number in range(60) if number % 6 == 2]


def test_parameters_are_given_by_name_or_by_a_config(tmp_path: Path) -> None:
    table = make(tmp_path)
    config = lance_format.IndexConfig("INVERTED", {"stem": False})
    with pytest.raises(InvalidInputError, match="lower_case is given beside"):
        table.create_scalar_index("note", config, lower_case=False)
    table.create_scalar_index("note", config)
    assert found(table, "owls") == [number for number in range(120) if number % 6 in (2, 5)]
