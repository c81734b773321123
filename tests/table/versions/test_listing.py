"""The latest version of names in any order agrees with parsing every name."""

import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_format
from lance_format.errors import CorruptFileError, DatasetNotFoundError, VersionNotFoundError
from lance_format.table.format.layout import ManifestNaming, parse_manifest_name
from lance_format.table.versions.history import load_history
from lance_format.table.versions.listing import ManifestNames
from tests.table.builders import open_directory, rows

VERSIONS = st.one_of(st.integers(0, 40), st.integers(2**63 - 2, 2**63 + 1), st.integers(2**64 - 2, 2**64 - 1))
V2 = VERSIONS.map(lambda version: f"{2**64 - 1 - version:020}.manifest")
V1 = VERSIONS.map(lambda version: f"{version}.manifest")
OTHERS = st.sampled_from(
    [
        "latest_version_hint.json",
        "_latest.manifest",
        "d9223372036854775808.manifest",
        "d18446744073709551615.manifest",
        ".tmp_18446744073709551614.manifest_0123456789abcdef0123456789abcdef",
        "!8446744073709551600.manifest",
        "99999999999999999999.manifest",
        "00000000000000000001.manifest",
        "1844674407370955161x.manifest",
        "18446744073709551600.manifesT",
    ]
)


def parsed(listed: list[str]) -> dict[int, tuple[str, ManifestNaming]]:
    found = {}
    for name in sorted(listed):
        match = parse_manifest_name(name)
        if match is not None:
            found[match[0]] = name, match[1]
    return found


@given(st.one_of(st.lists(st.one_of(V2, OTHERS)), st.lists(st.one_of(V1, OTHERS)), st.lists(st.one_of(V1, V2))))
def test_names_in_any_order(listed: list[str]) -> None:
    listed = list(dict.fromkeys(listed))
    expected = parsed(listed)
    namings = {match[1] for name in listed if (match := parse_manifest_name(name)) is not None}
    if len(namings) > 1:
        with pytest.raises(CorruptFileError, match="mixed"):
            ManifestNames(listed)
        return
    names = ManifestNames(listed)
    assert names.latest == max(expected, default=0)
    assert bool(names) == bool(expected)
    assert names.naming is (namings.pop() if namings else ManifestNaming.V2)
    assert [version in names for version in range(42)] == [version in expected for version in range(42)]
    assert (0 in names, names.get(names.latest)) == (False, expected.get(names.latest, (None,))[0])
    assert list(names.items()) == [(version, expected[version][0]) for version in sorted(expected)]
    assert len(names) == len(expected)


def test_versions_of_a_table(tmp_path: Path) -> None:
    for number in range(4):
        lance_format.write_dataset(rows(number, number + 1), tmp_path / "t", mode="append")
    (tmp_path / "t/_versions/18446744073709551500.manifest").mkdir()  # No file, and so no version.
    (tmp_path / "t/_versions" / ManifestNaming.V2.path(2).rpartition("/")[2]).unlink()
    history = load_history(open_directory(tmp_path / "t"))
    assert (history.latest, list(history.names)) == (4, [1, 3, 4])
    assert lance_format.dataset(tmp_path / "t", 3).count_rows() == 3
    for version in (-1, 0, 2, 5, 2**63, 2**64 - 1, 2**70):
        with pytest.raises(VersionNotFoundError, match=f"no version {version}; it has 1, 3, 4"):
            lance_format.dataset(tmp_path / "t", version)
    with pytest.raises(DatasetNotFoundError):
        lance_format.dataset(tmp_path / "none", 1)


def test_versions_of_an_early_release(tmp_path: Path) -> None:
    """Names of V1 are found by listing, in any order."""
    lance_format.write_dataset(rows(0, 1), tmp_path / "t")
    numbers = list(range(2, 13))
    for number in numbers:
        lance_format.write_dataset(rows(number, number + 1), tmp_path / "t", mode="append")
    versions = tmp_path / "t/_versions"
    random.Random(1).shuffle(numbers)
    for number in (*numbers, 1):
        shutil.move(versions / ManifestNaming.V2.path(number).rpartition("/")[2], versions / f"{number}.manifest")
    assert lance_format.dataset(tmp_path / "t").version == 12
    assert lance_format.dataset(tmp_path / "t", 9).version == 9
    assert lance_format.write_dataset(rows(0, 1), tmp_path / "t", mode="append").version == 13
    assert (versions / "13.manifest").exists()


@given(st.lists(st.one_of(V2, OTHERS), unique=True), st.integers(0, 10), st.lists(V2, unique=True))
def test_the_beginning_of_a_listing_is_enough(listed: list[str], length: int, later: list[str]) -> None:
    """All is listed for a version that the beginning does not have; versions of later commits stay unseen."""
    listed.sort()
    whole = ManifestNames(listed)
    stored = list(listed)
    names = ManifestNames(listed[:length], lambda: list(stored))
    assert (names.latest, names.naming) == (whole.latest, whole.naming)
    stored += [name for name in later if (parse_manifest_name(name) or (0,))[0] > whole.latest]
    for version in parsed(listed[:length]):
        assert names[version] == whole[version]
    assert dict(names) == dict(whole)


def test_a_beginning_with_names_of_scheme_v1_is_completed() -> None:
    listed = sorted(f"{version}.manifest" for version in range(1, 30))
    names = ManifestNames(listed[:3], lambda: listed)
    assert (names.latest, names.naming, len(names)) == (29, ManifestNaming.V1, 29)
