"""The planner bridge: what Spark's planner asks tables for, and Spark's own wrapper of Python sources never answers.

That wrapper takes filters and nothing else: every query reads all columns, `count(*)` reads the table, sizes are
unknown so that no join is a broadcast, and paths of `CREATE TABLE … USING lance` get lost. `install` compiles a few
small Java classes (`planner/java`) with the compiler that Spark brings along, and makes them visible to the driver,
where Spark finds `lance.DefaultSource` by its name. Executors never see them: what runs in tasks is Spark's own. The
classes ask `answers` what they need to know of a table.
"""

from __future__ import annotations

from connector.planner.installation import install

__all__ = ["install"]
