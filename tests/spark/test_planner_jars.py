"""Jars of compiled classes: found by later drivers, unless they are damaged or nothing can be written."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from connector.planner import jars
from connector.planner.jars import class_names, find_jar, keep_jar, key_of, temporary_jar


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    directory = tmp_path / "classes"
    (directory / "lance").mkdir(parents=True)
    (directory / "lance" / "B.class").write_bytes(b"b" * 100)
    (directory / "lance" / "A.class").write_bytes(b"a" * 100)
    return directory


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of jars."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_a_jar_is_found_by_its_key(classes: Path, kept: Path) -> None:
    jar = keep_jar("key", classes)
    assert jar is not None
    assert jar.parent == kept
    assert find_jar("key") == jar == keep_jar("key", classes)
    assert class_names(jar) == ["lance.A", "lance.B"]
    assert find_jar("other") is None
    assert [path.name for path in kept.iterdir()] == [jar.name]


@pytest.mark.parametrize("size", [0, 150, 10_000])
def test_a_damaged_jar_is_not_loaded_and_replaced(size: int, classes: Path, kept: Path) -> None:
    jar = keep_jar("key", classes)
    assert jar is not None
    with jar.open("r+b") as file:
        file.truncate(size)
    assert find_jar("key") is None
    keep_jar("key", classes)
    assert find_jar("key") == jar


def test_keys_are_those_of_names_contents_and_versions(tmp_path: Path) -> None:
    source = tmp_path / "A.java"
    keys = set()
    for text, version in (("class A {}", "4.3"), ("class A { }", "4.3"), ("class A {}", "4.2")):
        source.write_text(text)
        keys.add(key_of([source], version))
    source.write_text("class A {}")
    assert key_of([source], "4.3") in keys
    keys.add(key_of([source.rename(tmp_path / "B.java")], "4.3"))
    assert len(keys) == 4


def test_directories_are_tried_in_turn(classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "package").write_text("no directory")
    monkeypatch.setattr(jars, "__file__", str(tmp_path / "package" / "jars.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    jar = keep_jar("key", classes)
    assert jar is not None
    assert jar.parent == tmp_path / "home" / "pyspark-lance"
    assert find_jar("key") == jar


def test_nothing_is_kept_where_nothing_can_be_written(classes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null")
    assert keep_jar("key", classes) is None
    assert find_jar("key") is None
    jar = temporary_jar(classes)
    with zipfile.ZipFile(jar) as archive:
        assert archive.testzip() is None
    jar.unlink()
