"""Procedures of catalogs, `CALL lance.system.<procedure>(…)`: a row of `registry` each, and a function."""
