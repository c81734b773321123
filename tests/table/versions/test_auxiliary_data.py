"""Tags within manifests and auxiliary data of versions: what other writers put there survives commits."""

from pathlib import Path

import lance
import pytest

import lance_format
from lance_format import CorruptFileError
from lance_format.proto import table_pb2
from lance_format.table.format.manifest import Manifest
from tests.table.builders import changed_manifest, rows

_DATA = {"note": b"by another writer", "empty": b""}


def _latest(path: Path) -> Path:
    return min(path.glob("_versions/*.manifest"))  # Of names that count down.


def _mark(path: Path, section: bytes, position: int | None = None) -> None:
    """Give the latest manifest a tag and a section of auxiliary data, which precedes all others."""
    data = _latest(path).read_bytes()
    start = int.from_bytes(data[-16:-8], "little")

    def mark(message: table_pb2.Manifest) -> None:
        message.tag = "gold"
        message.version_aux_data = start if position is None else position

    stored = data[:start] + len(section).to_bytes(4, "little") + section + data[start:-16]
    moved = (start + 4 + len(section)).to_bytes(8, "little")
    _latest(path).write_bytes(changed_manifest(stored + moved + data[-8:], mark))


def _manifest(path: Path) -> Manifest:
    return lance_format.dataset(path)._table.manifest


def test_they_survive_commits(tmp_path: Path) -> None:
    lance_format.write_dataset(rows(0, 10), tmp_path / "t")
    _mark(tmp_path / "t", table_pb2.VersionAuxData(metadata=_DATA).SerializeToString())
    table = lance_format.dataset(tmp_path / "t")
    table.insert(rows(10, 20))
    table.create_scalar_index("a", "ZONEMAP")
    table.delete("a = 3")
    found = _manifest(tmp_path / "t")
    assert (found.tag, found.auxiliary_data) == ("gold", _DATA)
    assert found.message.version_aux_data != 0
    reference = lance.dataset(str(tmp_path / "t"))
    reference.validate()
    assert reference.count_rows() == lance_format.dataset(tmp_path / "t").count_rows() == 19


def test_tables_without_them_have_none(tmp_path: Path) -> None:
    lance_format.write_dataset(rows(0, 10), tmp_path / "t")
    found = _manifest(tmp_path / "t")
    assert (found.tag, found.auxiliary_data, found.auxiliary_section) == ("", {}, None)


def test_a_position_outside_of_the_file_is_ignored_as_by_pylance(tmp_path: Path) -> None:
    lance_format.write_dataset(rows(0, 10), tmp_path / "t")
    _mark(tmp_path / "t", b"", position=2**60)
    assert lance.dataset(str(tmp_path / "t")).count_rows() == 10
    assert _manifest(tmp_path / "t").auxiliary_data == {}
    lance_format.dataset(tmp_path / "t").insert(rows(10, 20))
    assert _manifest(tmp_path / "t").message.version_aux_data == 0


def test_malformed_auxiliary_data_is_an_error_when_it_is_asked_for(tmp_path: Path) -> None:
    lance_format.write_dataset(rows(0, 10), tmp_path / "t")
    _mark(tmp_path / "t", b"\xff\xff\xff")
    lance_format.dataset(tmp_path / "t").insert(rows(10, 20))
    assert lance_format.dataset(tmp_path / "t").count_rows() == 20
    with pytest.raises(CorruptFileError, match="auxiliary data of version 2 is malformed"):
        _ = _manifest(tmp_path / "t").auxiliary_data
