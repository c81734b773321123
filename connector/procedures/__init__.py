"""Procedures of catalogs, `CALL lance.system.<procedure>(…)`: each is a function and a row of `registry`."""
