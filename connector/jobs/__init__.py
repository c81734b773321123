"""Planned changes as Spark jobs: their tasks run on executors, the driver commits once."""
