"""Settings for all tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.servers"]

# The first call of a kernel compiles it. The same examples on every run of a pipeline; other ones at every desk.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("pipeline", settings.get_profile("desk"), derandomize=True, database=None)
settings.load_profile("pipeline" if os.environ.get("CI") else "desk")

# No test may meet a cloud that this machine has credentials for.
for _name in [name for name in os.environ if name.upper().startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
    del os.environ[_name]
os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = "/nonexistent"

# A JVM of a test lives too short for the compiler that optimises: without it, Spark takes half of the CPU time. Classes
# that come from an archive take half of the CPU time of a start. An archive of another Java or Spark is ignored.
_JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
_CLASSES = Path(sys.prefix, "spark-classes.jsa")
if _CLASSES.exists():
    _JVM += [f'"-XX:SharedArchiveFile={_CLASSES}"', "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join(_JVM))
