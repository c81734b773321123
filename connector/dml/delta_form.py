"""The form in which rows of a delta reach a writer: JSON of the planner bridge, or of `connector.table_api`.

```
{"command": "MERGE", "row": [1, 2], "address": [3], "names": ["id", "name"], "changed": ["name"]}
```

Each row begins with its operation. `row` has the positions of the table's columns, and `address` that of the address of
the deleted or replaced row. DELETE has no values. Replaced rows keep the values of the columns in `kept`, which the
writer reads from the table; what they have of these columns is ignored. `names` and `kept` together are all columns,
and rows that are new have all columns in `names`. Some values of the columns in `partly` may be those of the replaced
rows, as Spark has read them. If `repeats` is true, a row may be deleted more than once. A command
to be checked only has just a name.

| operation | |
|---|---|
| 1 | the row is deleted |
| 2 | it is replaced |
| 3, 4 | it is new |
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import field

from lance_format.lazy_dataclasses import dataclass

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
        Positions of the values of `names`.
    address : int
        Position of the address.
    names : tuple of str
        Columns of the table, by Spark's names.
    changed : tuple of str
        Those whose values may change in rows that are replaced.
    uuid : str, optional
        Uuid of the delta, if the client of the write has chosen it.
    notes : mapping of str to str
        Properties of the transaction, such as those of a `BatchMarker`.
    kept : tuple of str
        The columns whose values replaced rows keep.
    partly : tuple of str
        Those of `changed` that some replaced rows may keep, as a whole or in part.
    repeats : bool
        Whether a row may be deleted more than once.
    """

    command: str
    row: tuple[int, ...] = ()
    address: int = 0
    names: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    uuid: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    partly: tuple[str, ...] = ()
    repeats: bool = False

    @classmethod
    def parse(cls, text: str) -> DeltaForm:
        """Read the text of a form."""
        given = json.loads(text)
        lists = {name: tuple(given.get(name, ())) for name in ("row", "names", "changed", "kept", "partly")}
        (address,) = given.get("address", (0,))
        return cls(
            given["command"],
            address=address,
            uuid=given.get("uuid"),
            notes=given.get("notes", {}),
            repeats=given.get("repeats", False),
            **lists,
        )

    def to_json(self) -> str:
        """Return the form as `parse` reads it."""
        return json.dumps({**dataclasses.asdict(self), "address": [self.address]})
