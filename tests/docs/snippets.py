"""Snippets of Markdown pages: found, and run in the order of the page.

Fences of Python and SQL are snippets. A fence of `text` after one of them is what it prints, with `…` for anything.
Pages write to `/data`, which stands for a directory, and to `s3://bucket`. Comments of HTML, which readers do not see,
say more:

| comment | before |
|---|---|
| `<!-- first: … -->` | a snippet: Python to run |
| `<!-- not run: reason -->` | a snippet that is not run |
| `<!-- since Spark 4.2 -->` | a snippet that older versions cannot run |
| `<!-- about -->` | an output whose numbers vary a little |
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
_PART = re.compile(
    r"^<!-- first:\n(?P<first>.*?)^-->$"
    r"|^<!-- not run: (?P<reason>.*?) -->$"
    r"|^<!-- since Spark (?P<since>[\d.]+) -->$"
    r"|^(?P<about><!-- about -->)$"
    r"|^(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_TOLERANCE = 0.25
LANGUAGES = ("python", "sql")
_TESTED_ELSEWHERE = {"cli.md"}


@dataclass(frozen=True, slots=True)
class Snippet:
    """Code of a page.

    Parameters
    ----------
    language : str
        A member of `LANGUAGES`.
    code : str
    line : int
        The line of the page that has the first line of the code, from 1.
    expected : str, optional
        What it prints.
    is_about : bool
        Whether numbers of the output may differ by a quarter.
    reason : str, optional
        Why it is not run.
    """

    language: str
    code: str
    line: int
    expected: str | None = None
    is_about: bool = False
    reason: str | None = None


def find_snippets(text: str) -> list[Snippet]:
    """Return the snippets of a page, those not to be run included."""
    found: list[Snippet] = []
    reason: str | None = None
    is_about = is_output = False
    for part in _PART.finditer(text):
        if part["reason"] is not None:
            reason = part["reason"]
            continue
        if part["since"] is not None:
            reason = None if _parts(pyspark.__version__) >= _parts(part["since"]) else f"needs Spark {part['since']}"
            continue
        if part["about"] is not None:
            is_about = True
            continue
        line = text.count("\n", 0, part.start()) + 2
        if part["first"] is not None:
            found.append(Snippet("python", part["first"], line))
        elif part["language"] == "text":
            if is_output:
                found.append(dataclasses.replace(found.pop(), expected=part["code"], is_about=is_about))
        elif part["language"] in LANGUAGES:
            code = re.sub(f"^{part['indent']}", "", part["code"], flags=re.MULTILINE)
            found.append(Snippet(part["language"], code, line, reason=reason))
        is_output = part["language"] in LANGUAGES
        reason, is_about = None, False
    return found


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


@dataclass(frozen=True, slots=True)
class Page:
    """A page whose snippets run in one namespace.

    Parameters
    ----------
    path : Path
    data : Path
        The directory that `/data` stands for.
    spark : SparkSession
    bucket : str, optional
        The URI that `s3://bucket` stands for.
    """

    path: Path
    data: Path
    spark: SparkSession
    bucket: str = "s3://bucket"

    def run(self) -> None:
        """Run the snippets, and compare what they print."""
        text = self.path.read_text()
        names: dict[str, Any] = {"spark": self.spark, "__name__": "__page__"}
        for snippet in find_snippets(text):
            if snippet.reason is not None:
                continue
            with _located(self.path, snippet), contextlib.redirect_stdout(io.StringIO()) as printed:
                if snippet.language == "python":
                    self._python(snippet, names)
                else:
                    self._sql(snippet)
            if snippet.expected is not None:
                found = printed.getvalue().replace(str(self.data), "/data")
                assert prints(snippet, found), f"{self.path.name}:{snippet.line} prints\n{found}"

    def _python(self, snippet: Snippet, names: dict[str, Any]) -> None:
        source = "\n" * (snippet.line - 1) + self._placed(snippet.code)
        exec(compile(source, str(self.path), "exec"), names)

    def _sql(self, snippet: Snippet) -> None:
        statements = [text.strip() for text in re.split(r";\s*$", self._placed(snippet.code), flags=re.MULTILINE)]
        for statement in filter(None, statements):
            answer = self.spark.sql(statement)
            if snippet.expected is not None and answer.columns:
                answer.show(truncate=False)

    def _placed(self, code: str) -> str:
        return re.sub(r"(?<![\w.])/data\b", str(self.data), code).replace("s3://bucket", self.bucket)


@contextlib.contextmanager
def _located(path: Path, snippet: Snippet) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"in the snippet at {path.name}:{snippet.line}")
        raise


def prints(snippet: Snippet, found: str) -> bool:
    """Return whether a snippet that printed something has printed what it should."""
    expected, found = _joined(snippet.expected or ""), _joined(found)
    if snippet.is_about:
        numbers = zip(_NUMBER.findall(expected), _NUMBER.findall(found), strict=False)
        if not all(abs(float(a) - float(b)) <= _TOLERANCE * float(a) for a, b in numbers):
            return False
        expected, found = (re.sub(r"[ -]+", " ", _NUMBER.sub("0", text)) for text in (expected, found))
    pattern = ".*".join(re.escape(part) for part in expected.split("…"))
    return re.fullmatch(pattern, found, re.DOTALL) is not None


def _joined(printed: str) -> str:
    lines = [line.rstrip() for line in printed.splitlines()]
    return "\n".join(line for line in lines if line)


@contextlib.contextmanager
def unchanged(spark: SparkSession) -> Iterator[None]:
    """Remove what snippets leave in a session: streams, settings, views, tables, namespaces of the catalog `lance`."""
    before = dict(spark.conf.getAll)
    try:
        yield
    finally:
        for query in spark.streams.active:
            query.stop()
        spark.sql("USE spark_catalog.default")
        for view in spark.catalog.listTables():
            if view.isTemporary:
                spark.catalog.dropTempView(view.name)
            else:
                spark.sql(f"DROP TABLE {view.name}")
        for row in spark.sql("SHOW NAMESPACES IN lance").collect():
            spark.sql(f"DROP NAMESPACE lance.{row[0]} CASCADE")
        for name in set(spark.conf.getAll) - set(before):
            spark.conf.unset(name)
        for name, value in before.items():
            if spark.conf.get(name, None) != value and spark.conf.isModifiable(name):
                spark.conf.set(name, value)


def pages(with_bucket: bool) -> list[Any]:
    """Return the pages that have snippets to run, as parameters of a test.

    Parameters
    ----------
    with_bucket : bool
        Whether to return the pages whose snippets use a bucket, or the others.
    """
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        run = [snippet for snippet in find_snippets(path.read_text()) if snippet.reason is None]
        uses_bucket = any("s3://bucket" in snippet.code for snippet in run)
        if path.name not in _TESTED_ELSEWHERE and run and uses_bucket == with_bucket:
            found.append(pytest.param(path, id=str(path.relative_to(ROOT))))
    return found
