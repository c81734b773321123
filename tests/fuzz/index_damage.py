"""Single damages to files of indices that pylance has made: what a search notices, `verify` must notice.

python -m tests.fuzz.index_damage [--cases N] [--seed N] [--kind KIND]
"""

from __future__ import annotations

import argparse
import collections
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import lance
import numpy as np
import pyarrow as pa
from lance.indices import IndexConfig

import lance_format
from lance_format import CorruptFileError, DatasetNotFoundError, LanceDataset, NotSupportedError
from lance_format.query import MatchQuery, PhraseQuery
from tests.fuzz.flips import DAMAGES

ROWS = 600
_DIMENSION = 8
Search: TypeAlias = Callable[[LanceDataset], pa.Table]


@dataclass(frozen=True)
class DamagedKind:
    """An index that pylance makes, and searches that use it."""

    column: str
    kind: str
    searches: Sequence[Search]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def make(self, path: Path, *, stable: bool = False) -> None:
        """Write a table by pylance, with the index, and delete some rows."""
        rng = np.random.default_rng(0)
        words = [f"w{number}" for number in range(40)] + ["owl", "emu", "Straße", "日本"]
        vectors = pa.array(rng.normal(size=ROWS * _DIMENSION).astype(np.float32))
        rows = {
            "id": np.arange(ROWS),
            "key": pa.array(rng.permutation(ROWS), mask=rng.random(ROWS) < 0.05),
            "name": [f"bird {number % 97}" for number in range(ROWS)],
            "tags": [[f"t{number % 17}", None, "all"] if number % 9 else None for number in range(ROWS)],
            "text": [" ".join(rng.choice(words, int(rng.integers(1, 12)))) for _ in range(ROWS)],
            "v": pa.FixedSizeListArray.from_arrays(vectors, _DIMENSION),
        }
        table = lance.write_dataset(pa.table(rows), str(path), max_rows_per_file=250, enable_stable_row_ids=stable)
        if self.column == "v":
            table.create_index("v", self.kind, num_partitions=3, **self.parameters)
        elif self.kind == "INVERTED":
            table.create_scalar_index(self.column, "INVERTED", **self.parameters)
        else:
            table.create_scalar_index(
                self.column, IndexConfig(self.kind.lower().replace("_", ""), dict(self.parameters))
            )
        table.delete("id % 50 = 7")


def _filters(*given: str) -> list[Search]:
    return [lambda table, text=text: table.to_table(["id"], filter=text) for text in given]  # type: ignore[misc]


def _texts(*queries: Any) -> list[Search]:
    return [lambda table, asked=asked: table.to_table(["id"], full_text_query=asked) for asked in queries]  # type: ignore[misc]


_NUMBERS = _filters("key = 77", "key IN (5, 400, 599)", "key > 100 AND key < 140", "key IS NULL", "key >= 0")
_NAMES = _filters("name = 'bird 5'", "name IN ('bird 1', 'bird 96')", "name > 'bird 8'", "name IS NOT NULL")
_TAGS = _filters(*(f"array_has(tags, 't{number}')" for number in (0, 5, 16)), "array_has_any(tags, ['all', 't1'])")
_PARTS = _filters("contains(text, 'w13')", "text LIKE '%owl%'", "text LIKE '%w3%' AND text LIKE '%emu%'")
_WORDS = _texts(
    *(MatchQuery(word, "text") for word in ("owl", "emu w1 w2", "w13", "日本", "w7 w8 w9 w10 w11 w12 w20 w30")),
    MatchQuery("owk", "text", fuzziness=1),
    *(PhraseQuery(phrase, "text") for phrase in ("owl emu", "w1 w2", "w5 owl")),
)
_NEAREST: list[Search] = [
    lambda table, place=place: table.to_table(["id"], nearest={"column": "v", "q": [place] * _DIMENSION, "k": 20})  # type: ignore[misc]
    for place in (-0.5, 0.0, 0.7)
]
_FOLLOWING: list[Search] = [
    lambda table, place=place: table.to_table(["id"], nearest={"column": "v", "q": [place] * _DIMENSION, "ef": 600})  # type: ignore[misc]
    for place in (-0.5, 0.7)
]

KINDS: Mapping[str, DamagedKind] = MappingProxyType(
    {
        "ZONEMAP": DamagedKind("key", "ZONEMAP", _NUMBERS, {"rows_per_zone": 50}),
        "BTREE": DamagedKind("key", "BTREE", _NUMBERS, {"zone_size": 100}),
        "BTREE of strings": DamagedKind("name", "BTREE", _NAMES, {"zone_size": 100}),
        "BITMAP": DamagedKind("name", "BITMAP", _NAMES),
        "LABEL_LIST": DamagedKind("tags", "LABEL_LIST", _TAGS),
        "BLOOMFILTER": DamagedKind("key", "BLOOMFILTER", _NUMBERS, {"number_of_items": 100}),
        "NGRAM": DamagedKind("text", "NGRAM", _PARTS),
        "INVERTED": DamagedKind("text", "INVERTED", _WORDS, {"with_position": True}),
        "INVERTED 1": DamagedKind("text", "INVERTED", _WORDS, {"with_position": True, "format_version": 1}),
        "IVF_FLAT": DamagedKind("v", "IVF_FLAT", _NEAREST),
        "IVF_SQ": DamagedKind("v", "IVF_SQ", _NEAREST),
        "IVF_PQ": DamagedKind("v", "IVF_PQ", _NEAREST, {"num_sub_vectors": 4}),
        "IVF_HNSW_FLAT": DamagedKind("v", "IVF_HNSW_FLAT", _NEAREST),
        "IVF_HNSW_SQ": DamagedKind("v", "IVF_HNSW_SQ", [*_NEAREST, *_FOLLOWING]),
        "IVF_RQ": DamagedKind("v", "IVF_RQ", _NEAREST),
        "IVF_HNSW_PQ": DamagedKind("v", "IVF_HNSW_PQ", [*_NEAREST, *_FOLLOWING], {"num_sub_vectors": 4}),
    }
)


def is_noticed(path: Path, searches: Sequence[Search]) -> bool:
    """Return whether a search says that a file is malformed or missing; it may also be of a newer form, supposedly."""
    found = False
    for search in searches:
        try:
            search(lance_format.dataset(path))
        except (CorruptFileError, DatasetNotFoundError):
            found = True
        except NotSupportedError:
            pass
    return found


class Damages:
    """Damages files of the index of a table, one at a time."""

    def __init__(self, path: Path, kind: DamagedKind) -> None:
        self._path = path
        self._searches = kind.searches
        files = sorted(file for file in (path / "_indices").rglob("*") if file.is_file())
        self._files = {file: file.read_bytes() for file in files}

    def apply(self, rng: random.Random) -> Path:
        """Damage a file, and return it."""
        file = rng.choice(list(self._files))
        how = rng.choice(["flip", "flip", "flip", *DAMAGES])
        file.write_bytes(DAMAGES[how](rng, self._files[file]))
        return file

    def restore(self) -> None:
        """Undo all damages."""
        for file, data in self._files.items():
            file.write_bytes(data)

    def run(self, rng: random.Random) -> str:
        """Damage a file, and return which of a search and `verify` noticed it."""
        try:
            file = self.apply(rng)
            noticed = is_noticed(self._path, self._searches)
            problems = lance_format.dataset(self._path).verify().problems
            if any(found.repair == "" or "_indices/" not in found.path for found in problems):
                return f"WRONG FINDINGS of {file}: {problems}"
            if problems:
                return "both" if noticed else "verify"
            return f"UNNOTICED in {file.name}, case of {file.parent}" if noticed else "neither"
        finally:
            self.restore()


def run_campaign(directory: Path, name: str, cases: int, seed: int) -> collections.Counter[str]:
    """Damage the index of a table; return how often a search, `verify` or both noticed it."""
    found: collections.Counter[str] = collections.Counter()
    for stable in (False, True):
        path = directory / f"{name} {stable}"
        KINDS[name].make(path, stable=stable)
        assert lance_format.dataset(path).verify().problems == ()
        damages, rng = Damages(path, KINDS[name]), random.Random(f"{seed} {name} {stable}")
        found.update(damages.run(rng) for _ in range(cases // 2))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=[*KINDS])
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="verify-indices-"))
    try:
        for name in [options.kind] if options.kind else KINDS:
            found = run_campaign(directory, name, options.cases, options.seed)
            print(name, dict(found.most_common()), flush=True)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
