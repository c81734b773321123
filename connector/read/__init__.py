"""Reads: the plan on the driver, its partitions, and the tasks."""
