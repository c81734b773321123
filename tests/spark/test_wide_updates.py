"""UPDATE and MERGE of some of many columns: the others keep their values, wherever they are among them."""

from __future__ import annotations

from tests.spark.conftest import Catalog

_COLUMNS = [f"c{number}" for number in range(60)]


def test_every_second_column(catalog: Catalog) -> None:
    catalog.sql(f"CREATE TABLE @.wide (id BIGINT, {', '.join(f'{name} INT' for name in _COLUMNS)})")
    for row in (1, 2):
        values = ", ".join(str(100 * row + number) for number in range(len(_COLUMNS)))
        catalog.sql(f"INSERT INTO @.wide VALUES ({row}, {values})")
    changed = ", ".join(f"{name} = -{name}" for name in _COLUMNS[1::2])
    catalog.sql(f"UPDATE @.wide SET {changed} WHERE id = 2")
    changed = ", ".join(f"{name} = t.{name} + 1000" for name in _COLUMNS[::3])
    new = ", ".join("7" for _ in _COLUMNS)
    catalog.sql(
        f"MERGE INTO @.wide t USING (SELECT explode(array(2L, 3L)) AS id) s ON t.id = s.id"
        f" WHEN MATCHED THEN UPDATE SET {changed}"
        f" WHEN NOT MATCHED THEN INSERT (id, {', '.join(_COLUMNS)}) VALUES (s.id, {new})"
    )
    second = [
        (200 + number) * (-1 if number % 2 else 1) + (0 if number % 3 else 1000) for number in range(len(_COLUMNS))
    ]
    found = catalog.sql("SELECT * FROM @.wide ORDER BY id")
    assert found == [(1, *range(100, 160)), (2, *second), (3, *[7] * 60)]
