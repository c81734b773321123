"""The form in which rows of a delta reach a writer: JSON of the planner bridge, or of `connector.table_api`.

```
{"command": "MERGE", "row": [1, 2], "address": [3], "names": ["id", "name"], "changed": ["name"]}
```

Each row begins with its operation. The values of the table's columns are in `row`, and the address of the
row that is deleted or replaced is at the place `address`. DELETE has no values. A command that is only to be checked
has a name only.

| operation | |
|---|---|
| 1 | the row is deleted |
| 2 | it is replaced |
| 3, 4 | it is new |
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

DELETED = 1
REPLACED = 2
NEW: Sequence[int] = (3, 4)


@dataclass(frozen=True, slots=True)
class DeltaForm:
    """Form of the rows of a delta.

    Parameters
    ----------
    command : {"DELETE", "UPDATE", "MERGE"}
    row : tuple of int
        Where the values are, of `names`.
    address : int
        Where the address is.
    names : tuple of str
        The columns of the table, as Spark calls them.
    changed : tuple of str
        Those whose values may change in rows that are replaced.
    uuid : str, optional
        Of the delta, if the client of the write has chosen it.
    """

    command: str
    row: tuple[int, ...] = ()
    address: int = 0
    names: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    uuid: str | None = None

    @classmethod
    def parse(cls, text: str) -> DeltaForm:
        """Read the text of a form."""
        given = json.loads(text)
        lists = {name: tuple(given.get(name, ())) for name in ("row", "names", "changed")}
        (address,) = given.get("address", (0,))
        return cls(given["command"], address=address, uuid=given.get("uuid"), **lists)

    def to_json(self) -> str:
        """Return the form as `parse` reads it."""
        return json.dumps({**dataclasses.asdict(self), "address": [self.address]})
