"""Changes of a table, again and again.

The work is `a`, `b` or `c`, which inserts a key unless it is there, and upserts that column of others; `append`, which
adds rows with other keys, by pylance; `delete`, which deletes them again; or `update`, which changes column `d`.
"""

import datetime

import lance
import pyarrow as pa

import lance_format

KEYS = 12
FIRST_FOUND = 500
PATIENCE = datetime.timedelta(minutes=8)
"""With others on a machine that does much else; the test gives up after ten."""


def work_on(work: str, path: str, rounds: int) -> None:
    for number in range(rounds):
        table = lance_format.dataset(path)
        if work == "append":
            lance.dataset(path).insert(pa.table({"k": [1000 + number], "d": [0]}))
        elif work == "delete":
            table.delete(f"k = {1000 + number}", conflict_retries=1000, retry_timeout=PATIENCE)
        elif work == "update":
            table.update({"d": "d + 1"}, "k < 5", conflict_retries=1000, retry_timeout=PATIENCE)
        else:
            merge = table.merge_insert("k").conflict_retries(1000).retry_timeout(PATIENCE)
            merge.when_not_matched_insert_all().execute({"k": [FIRST_FOUND + number]})
            merge.when_matched_update_all().execute({"k": range(KEYS), work: [number] * KEYS})
