"""Tests of distances between vectors, and of their codes."""
