"""Writes: the tasks, their messages, and the commit on the driver."""
