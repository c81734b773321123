"""The planner bridge: pushdown that Spark's own wrapper of Python data sources does not support.

That wrapper accepts only filters: every query reads all columns, `count(*)` reads the table, sizes are unknown, so no
join is a broadcast, and paths of `CREATE TABLE … USING lance` are lost. `install` compiles a few small Java classes
(`planner/java`) with the compiler that Spark includes, and makes them visible to the driver, where Spark finds
`lance.DefaultSource` by its name. Executors never see them: tasks run Spark's own classes. The classes query `answers`
for properties of tables, and have it plan and end reads and writes.
"""

from __future__ import annotations

from connector.planner.installation import install, name_source

__all__ = ["install", "name_source"]
