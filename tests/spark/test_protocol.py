"""The names of options that Java and Python exchange are the same on both sides."""

from __future__ import annotations

import re
from pathlib import Path

import connector
from connector import protocol

JAVA = Path(connector.__file__).parent


def names_in_java() -> set[str]:
    """Return the names that the Java sources spell out, or build of the prefix and a word."""
    text = "\n".join(path.read_text() for path in sorted(JAVA.glob("*/java/*.java")))
    built = re.findall(r'shown\("(\w+)"', text)
    return {*re.findall(r'"(__lance\.\w+)"', text), *(protocol.PREFIX + word for word in built)}


def names_in_python() -> set[str]:
    return {value for name, value in vars(protocol).items() if name.isupper() and name != "PREFIX"}


def test_java_and_python_know_the_same_options() -> None:
    assert names_in_java() == names_in_python()


def test_the_table_of_options_has_all_of_them() -> None:
    assert protocol.__doc__ is not None
    assert set(re.findall(r"^`(__lance\.\w+)`", protocol.__doc__, re.MULTILINE)) == names_in_python()
