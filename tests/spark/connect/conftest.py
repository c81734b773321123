"""One server of Spark Connect for all tests of this directory, since its start is dear."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.servers import free_port
from tests.spark.connect.programs import DATA_SOURCE, JOBS, LANCE_TABLE
from tests.spark.programs import ERROR_OF, FORKED_PREPARED, run

_SERVER = """
import subprocess
import pyspark_lance

from pyspark.sql.connect.client import DefaultChannelBuilder

clients, directory, port = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
DefaultChannelBuilder.default_port = staticmethod(lambda: port)  # Other servers may have the usual one.
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = builder.config("spark.connect.grpc.binding.port", port).getOrCreate()
"""

_CLIENTS = """
environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_LOCAL_REMOTE")}
environment["SPARK_REMOTE"] = f"sc://localhost:{port}"
results = {"LanceTable": found}
for name, program in clients.items():
    os.mkdir(f"{directory}/{name}")
    done = subprocess.run(
        [sys.executable, "-", f"{directory}/{name}"], input=program, stdout=subprocess.PIPE, env=environment, text=True
    )
    assert done.returncode == 0
    results[name] = json.loads(done.stdout.strip().rpartition("\\n")[2])
spark.stop()
print(json.dumps(results))
"""

_CLIENT = """
import json, sys
from pyspark.sql import SparkSession

directory = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
"""

_END = """
spark.stop()
print(json.dumps(found))
"""


@pytest.fixture(scope="session")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the findings of programs: one is in the process of the server, the others are clients."""
    directory = tmp_path_factory.mktemp("connect")
    clients = {
        name: _CLIENT + ERROR_OF + program + _END
        for name, program in {"data source": DATA_SOURCE, "jobs": JOBS}.items()
    }
    arguments = json.dumps(clients), str(directory), str(free_port())
    return run(_SERVER + LANCE_TABLE + _CLIENTS, directory, *arguments, PYTHONPATH=FORKED_PREPARED)
