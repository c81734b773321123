"""Paths into JSON documents, and their values.

A path is a chain of steps. Each step leads from some values to others, or to none:

    $            the document, which may be left out
    .key  :key   a member of an object; ."a key" and ["a key"] are keys of any characters
    .*           all members of an object
    [0] [last-1] an item of an array, counted from the start or the end
    [*]          all items of an array; other values themselves

The reference supports more: slices, lists of items, conditions and arithmetic.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from lance_format import jsonb
from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass

_MAX_INDEX = 2**31 - 1
# A blank ends a key without quotes; other white space does not.
_STEP = re.compile(
    r"""\s*(?:
        [.:](?P<key>\w+)(?![\w\t\n\r\f\v]) | [.:](?P<quoted>"(?:[^"\\]|\\.)+") | (?P<members>\.\*)
        | \[\s*(?: (?P<inner>"(?:[^"\\]|\\.)+") | (?P<items>\*) | (?P<index>[-+]?[0-9]{1,20})
        | last\s*(?P<from_last>[-+]\s*[0-9]{1,20})? )\s*\]
    )""",
    re.VERBOSE,
)
_START = re.compile(r"\s*(?:\$|(?P<key>\w+)(?![\w\t\n\r\f\v]))?")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path.

    Parameters
    ----------
    key : bytes, optional
        Leads to a member of an object.
    index : int, optional
        Leads to an item of an array.
    from_last : bool
        Whether the last item has index 0.
    members : bool
        Leads to all members of an object; without any of these, a step leads to all items of an array.
    """

    key: bytes | None = None
    index: int | None = None
    from_last: bool = False
    members: bool = False


@lru_cache(maxsize=256)
def parse_path(text: str) -> tuple[Step, ...]:
    """Read a path.

    Raises
    ------
    InvalidInputError
        If it is malformed, or has an unsupported step.
    """
    start = _START.match(text)
    position = start.end() if start else 0
    key = start["key"] if start else None
    steps = [] if key is None else [Step(key=key.encode())]
    while text[position:].strip():
        found = _STEP.match(text, position)
        if found is None:
            raise InvalidInputError(
                f"{text!r} is no JSON path that can be followed, from {text[position:]!r} on; the steps are .key,"
                ' ["key"], .*, [0], [last] and [*]'
            )
        steps.append(_step_of(found))
        position = found.end()
    return tuple(steps)


def _step_of(found: re.Match[str]) -> Step:
    quoted = found["quoted"] or found["inner"]
    if found["members"] or found["items"]:
        return Step(members=bool(found["members"]))
    if found["key"]:
        return Step(key=found["key"].encode())
    if quoted:
        try:
            return Step(key=json.loads(quoted, strict=False).encode())
        except ValueError as error:
            raise InvalidInputError(f"{quoted} is no key of a JSON path: {error}") from error
    index = int("".join((found["index"] or found["from_last"] or "0").split()))
    if abs(index) > _MAX_INDEX:
        raise InvalidInputError(f"a JSON path has the index {index}; at most {_MAX_INDEX} is possible")
    return Step(index=index, from_last=not found["index"])


def select(document: bytes, path: tuple[Step, ...]) -> list[bytes]:
    """Return the documents to which a path leads from a document, in its order.

    Raises
    ------
    CorruptFileError
        If the document is no JSONB.
    """
    found = [document]
    for step in path:
        found = [reached for value in found for reached in _follow(value, step)]
    return found


def items(document: bytes) -> list[bytes] | None:
    """Return the items of an array; None for other values."""
    kind, kinds, bounds = jsonb.read_container(document, 0, len(document))
    if kind != jsonb.ARRAY:
        return None
    return [_part(document, kinds, bounds, element) for element in range(len(kinds))]


def child(document: bytes, key: str) -> bytes | None:
    """Return the member of an object by key, or the item of an array by index, or None."""
    kind = jsonb.read_container(document, 0, len(document))[0]
    if kind == jsonb.ARRAY and not re.fullmatch(r"\+?[0-9]{1,19}", key):
        return None
    step = Step(index=int(key)) if kind == jsonb.ARRAY else Step(key=key.encode())
    return next(iter(_follow(document, step)), None)


def _follow(document: bytes, step: Step) -> list[bytes]:
    kind, kinds, bounds = jsonb.read_container(document, 0, len(document))
    count = len(kinds) // 2 if kind == jsonb.OBJECT else len(kinds)
    elements = range(0)
    if step.key is not None or step.members:
        if kind == jsonb.OBJECT:
            members = range(count, 2 * count)
            elements = members if step.members else range(*_find(document, bounds, count, step.key or b""))
    elif step.index is None:
        if kind != jsonb.ARRAY:
            return [document]
        elements = range(count)
    elif kind == jsonb.ARRAY:
        element = count - 1 + step.index if step.from_last else step.index
        elements = range(element, element + 1) if 0 <= element < count else elements
    return [_part(document, kinds, bounds, element) for element in elements]


def _find(document: bytes, bounds: list[int], count: int, key: bytes) -> tuple[int, int]:
    """Return the range of the values of an object with a key: one value, or none."""
    for element in range(count):
        if document[bounds[element] : bounds[element + 1]] == key:
            return count + element, count + element + 1
    return 0, 0


def _part(document: bytes, kinds: list[int], bounds: list[int], element: int) -> bytes:
    return jsonb.pack(kinds[element], document[bounds[element] : bounds[element + 1]])
