"""The demo, on a cluster whose driver and executors are processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lance
import pytest

from tests.spark.conftest import ROOT

pytestmark = pytest.mark.system


def test_the_demo_runs_on_a_cluster(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "flights.py"), "--master", "local-cluster[2,1,2048]"]
    settings = ["--conf", "spark.executor.memory=1g"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [*command, "--path", str(tmp_path), *settings],
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert "All answers agree" in done.stdout
    flights = lance.dataset(tmp_path / "flights.lance")
    flights.validate()
    assert (flights.count_rows(), flights.version, len(flights.get_fragments())) == (336_776, 2, 6)


def test_the_demo_says_so_where_java_is_missing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(tmp_path)}
    command = [sys.executable, str(ROOT / "examples" / "flights.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 1
    assert (
        done.stderr.strip()
        == "Java 17 or newer is needed and was not found: install a JDK or JRE, or set JAVA_HOME to it"
    )


@pytest.mark.nightly
def test_streams_of_the_demo_survive_a_kill(tmp_path: Path) -> None:
    """The demo compares both tables with the CSV file itself."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, str(ROOT / "examples" / "stream_flights.py"), "--path", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment)
    assert done.returncode == 0, done.stdout + (tmp_path / "log.txt").read_text()[-5000:]
    assert "Both tables agree" in done.stdout
    assert lance.dataset(tmp_path / "flights.lance").count_rows() == 336_776
