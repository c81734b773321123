"""The demo, on a cluster whose driver and executors are processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lance

from tests.spark.conftest import ROOT


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
