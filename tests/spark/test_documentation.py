"""The snippets of the pages of docs/ run, and print what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.snippets import Page, pages, unchanged
from tests.servers import ObjectServer
from tests.spark.remote import hadoop_settings


@pytest.mark.slow
@pytest.mark.parametrize("path", pages(with_bucket=False))
def test_a_page(path: Path, planner: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No page writes to the working directory."""
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    with unchanged(planner):
        Page(path, tmp_path, planner).run()
    assert not list(working.iterdir())


@pytest.mark.system
@pytest.mark.parametrize("path", pages(with_bucket=True))
def test_a_page_with_a_bucket(path: Path, planner: SparkSession, tmp_path: Path, s3_server: ObjectServer) -> None:
    with unchanged(planner), hadoop_settings(planner, s3_server):
        Page(path, tmp_path, planner, s3_server.new_root()).run()
