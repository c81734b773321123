"""Sorted scans."""
