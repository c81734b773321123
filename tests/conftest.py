"""Settings for all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The first call of a kernel compiles it. The same examples on every run of a pipeline; other ones at every desk.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("pipeline", settings.get_profile("desk"), derandomize=True, database=None)
settings.load_profile("pipeline" if os.environ.get("CI") else "desk")
