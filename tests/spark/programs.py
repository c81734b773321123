"""Programs as users write them: each in a process of its own, whose session is its first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.spark.conftest import PREPARED, ROOT

FORKED_PREPARED = os.pathsep.join([str(PREPARED), str(ROOT)])
"""`PYTHONPATH` with which the processes in which Spark plans are forked prepared."""

ERROR_OF = """
def error_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
"""
"""Source of a function that programs have."""

_BEGINNING = """
import json, os, sys
from pyspark.sql import SparkSession

def session():
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "OFF").config("spark.sql.shuffle.partitions", "2")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
"""

CONNECT = """
import subprocess

if len(sys.argv) == 2:  # the server, at a port that is free, with the client as a process of its own
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
    server = builder.config("spark.connect.grpc.binding.port", "0").config("spark.log.level", "OFF").getOrCreate()
    service = getattr(server._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    url = f"sc://localhost:{getattr(service, 'MODULE$').localPort()}"
    subprocess.run([sys.executable, __file__, sys.argv[1], url], check=True)
    server.stop()
    sys.exit()

path = sys.argv[1]
spark = SparkSession.builder.remote(sys.argv[2]).getOrCreate()
"""
"""The beginning of a program of one argument, `path`, that runs in a session of Spark Connect."""


def run(program: str, directory: Path, *arguments: str, **variables: str) -> Any:
    """Run a program that lies in a directory of its own and is started in another, and return the JSON that it prints.

    Parameters
    ----------
    program : str
        What comes after `session()`, which makes a session, and `error_of(call)`, which returns what it raises.
    directory : Path
        Where it is started.
    *arguments : str
    **variables : str
        Of the environment.
    """
    place = directory / "programs"
    place.mkdir(exist_ok=True)
    script = place / "program.py"
    script.write_text(_BEGINNING + ERROR_OF + program)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        **variables,
    }
    environment.pop("PYSPARK_DRIVER_PYTHON", None)
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        cwd=directory,
        env=environment,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.strip().rpartition("\n")[2])
