"""Tables with checksums that both libraries change, in any order: both read the same, and `verify` says what is so."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_format

LIBRARIES: dict[str, Any] = {"ours": lance_format, "pylance": lance}
_SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())])

Model = dict[int, tuple[int, str]]


def _table(model: Model) -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "v": v, "s": s} for k, (v, s) in sorted(model.items())], _SCHEMA)


class Changes:
    """Random changes of one table, and its expected rows by key."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.path = str(path)
        self.model: Model = {}
        self._rng = rng
        self._next = 0
        options = {"data_storage_version": rng.choice(["2.0", "2.1", "2.2"]), "max_rows_per_file": 300}
        rows = self._new_rows(700)
        lance_format.write_dataset(_table(rows), self.path, enable_stable_row_ids=rng.random() < 0.5, **options)
        self.model.update(rows)

    def _new_rows(self, count: int) -> Model:
        keys = range(self._next, self._next + count)
        self._next += count
        return {k: (k * 7, f"bird {k}") for k in keys}

    def _residue(self) -> tuple[str, Callable[[int], bool]]:
        divisor = self._rng.choice([5, 11, 50])
        rest = self._rng.randrange(divisor)
        return f"k % {divisor} = {rest}", lambda k: k % divisor == rest

    def append(self, library: Any, _: Any) -> None:
        rows = self._new_rows(self._rng.choice([1, 40, 350]))
        library.write_dataset(_table(rows), self.path, mode="append")
        self.model.update(rows)

    def delete(self, _: Any, dataset: Any) -> None:
        where, holds = self._residue()
        dataset.delete(where)
        self.model = {k: row for k, row in self.model.items() if not holds(k)}

    def update(self, _: Any, dataset: Any) -> None:
        where, holds = self._residue()
        dataset.update({"v": "v + 1"}, where=where)
        self.model = {k: (v + 1, s) if holds(k) else (v, s) for k, (v, s) in self.model.items()}

    def merge(self, _: Any, dataset: Any) -> None:
        known = self._rng.sample(sorted(self.model), min(20, len(self.model)))
        rows = {**{k: (-k, "merged") for k in known}, **self._new_rows(5)}
        dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(_table(rows))
        self.model.update(rows)

    def compact(self, _: Any, dataset: Any) -> None:
        dataset.optimize.compact_files()

    def index(self, _: Any, dataset: Any) -> None:
        dataset.create_scalar_index("k", "ZONEMAP")

    def restore(self, _: Any, dataset: Any) -> None:
        dataset.restore()

    def step(self) -> str:
        """Make a change by one of the libraries, and return its name."""
        name = self._rng.choice(["append", "delete", "update", "merge", "compact", "index", "restore"])
        library = self._rng.choice(sorted(LIBRARIES))
        getattr(self, name)(LIBRARIES[library], LIBRARIES[library].dataset(self.path))
        return f"{library} {name}"

    def check(self) -> None:
        """Compare what both read with the model, and what `verify` says with the bytes of the files."""
        for library in LIBRARIES.values():
            assert library.dataset(self.path).to_table().sort_by("k").equals(_table(self.model))
        report = lance_format.dataset(self.path).verify()
        assert not report.problems
        for finding in report.findings:
            content = (Path(self.path) / finding.path).read_bytes()
            has_checksums = {
                "data file": content[-48:-40] == b"LANCESUM",
                "index file": content[-48:-40] == b"LANCESUM",
                "deletion file": "/_deletions/" in f"/{finding.path}" and _id_of(finding.path) >> 40 == 0x4C5355,
                "manifest": content[4:12] == b"LANCESUM",
                "transaction file": content[-11:-8] == b"\xf9\xff\x7f",
            }[finding.type]
            expected = ("intact", len(content)) if has_checksums else ("no checksums", 0)
            assert (finding.status, finding.verified_bytes) == expected, finding
            assert finding.size_bytes == len(content)

    def check_that_damage_is_found(self) -> None:
        """Flip a bit in one of the files that have checksums; the report names that file alone."""
        report = lance_format.dataset(self.path).verify()
        finding = self._rng.choice([x for x in report.findings if x.status == "intact" and x.type == "data file"])
        file = Path(self.path) / finding.path
        content = file.read_bytes()
        damaged = bytearray(content)
        damaged[self._rng.randrange(len(content))] ^= 1 << self._rng.randrange(8)
        file.write_bytes(damaged)
        assert {x.path for x in lance_format.dataset(self.path).verify().problems} == {finding.path}
        file.write_bytes(content)


def _id_of(path: str) -> int:
    """Return the id in the name of a deletion file, `<fragment>-<version>-<id>.arrow`."""
    return int(Path(path).stem.split("-")[2])


def _run(path: Path, seed: int, steps: int) -> None:
    rng = random.Random(seed)
    changes = Changes(path, rng)
    done: list[str] = []
    changes.check_that_damage_is_found()
    for _ in range(steps):
        done.append(changes.step())
        try:
            changes.check()
        except Exception as error:
            raise AssertionError(f"seed {seed}, after {', '.join(done)}: {error}") from error


@pytest.mark.parametrize("seed", range(3))
def test_tables_that_both_change(tmp_path: Path, seed: int) -> None:
    _run(tmp_path / "t", seed, 6)


@pytest.mark.nightly
def test_tables_that_both_change_for_long(tmp_path: Path) -> None:
    for number in range(int(os.environ.get("LANCE_MACHINE_EXAMPLES", "60"))):
        _run(tmp_path / str(number), random.randrange(2**32), 30)
