"""Structured Streaming: tables as sources and sinks of streams, and the rows that versions changed."""
