"""Fragments as JSON, in the form of pylance's `FragmentMetadata.to_json`, which writers send to the committer.

The names are those of the protobuf, except for the kind of a deletion file, and for sequences of numbers, which are the
bytes of a message as a list, or name a part of a file:

    {"id": 0, "files": [{"path": …, "fields": [0], …}], "physical_rows": 10, "deletion_file": null,
     "row_id_meta": {"Inline": [10, 4, …]}, "created_at_version_meta": {"inline": [10, 8, …]}, …}
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import ParseDict

from lance_format.proto import table_pb2

_DELETION_TYPES = {"array": "ARROW_ARRAY", "bitmap": "BITMAP"}
_DELETION_NAMES = {
    table_pb2.DeletionFile.ARROW_ARRAY: "array",
    table_pb2.DeletionFile.BITMAP: "bitmap",
}
# Of each sequence: its name, the members of the protobuf that hold it, and what JSON calls the two.
_SEQUENCES = (
    ("row_id_meta", "inline_row_ids", "external_row_ids", "Inline", "External"),
    (
        "created_at_version_meta",
        "inline_created_at_versions",
        "external_created_at_versions",
        "inline",
        "external",
    ),
    (
        "last_updated_at_version_meta",
        "inline_last_updated_at_versions",
        "external_last_updated_at_versions",
        "inline",
        "external",
    ),
)


def fragment_to_json(message: table_pb2.DataFragment) -> dict[str, Any]:
    """Return the form of a fragment that JSON can hold."""
    found: dict[str, Any] = {
        "id": message.id,
        "files": [_file_to_json(file) for file in message.files],
        "physical_rows": message.physical_rows,
        "deletion_file": None,
    }
    if message.HasField("deletion_file"):
        deletion = message.deletion_file
        found["deletion_file"] = {
            "read_version": deletion.read_version,
            "id": deletion.id,
            "file_type": _DELETION_NAMES[deletion.file_type],
            "num_deleted_rows": deletion.num_deleted_rows,
            "base_id": deletion.base_id if deletion.HasField("base_id") else None,
        }
    for name, inline, external, inline_name, external_name in _SEQUENCES:
        found[name] = None
        if message.HasField(inline):
            found[name] = {inline_name: list(getattr(message, inline))}
        elif message.HasField(external):
            part = getattr(message, external)
            found[name] = {external_name: {"path": part.path, "offset": part.offset, "size": part.size}}
    return found


def fragment_from_json(value: str | bytes | Mapping[str, Any]) -> table_pb2.DataFragment:
    """Parse the result of `fragment_to_json`, or its text, into the protobuf of a fragment.

    Raises
    ------
    ParseError, ValueError, TypeError, AttributeError, LookupError, RecursionError
        If it is malformed, or has unknown entries.
    """
    found = dict(json.loads(value) if isinstance(value, str | bytes) else value)
    if found.get("overlays") == []:
        del found["overlays"]
    found["files"] = [_given(file) for file in found.get("files") or ()]
    if found.get("deletion_file") is not None:
        deletion = _given(found["deletion_file"])
        kind = str(deletion.get("file_type"))
        found["deletion_file"] = deletion | {"file_type": _DELETION_TYPES.get(kind, kind)}
    for name, inline, external, inline_name, external_name in _SEQUENCES:
        sequence = found.pop(name, None)
        if sequence is None:
            continue
        ((form, content),) = sequence.items()
        if form == inline_name:
            found[inline] = base64.b64encode(bytes(content)).decode()
        else:
            found[{external_name: external}[form]] = content
    return ParseDict(_given(found), table_pb2.DataFragment())


def _file_to_json(file: table_pb2.DataFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "fields": list(file.fields),
        "column_indices": list(file.column_indices),
        "file_major_version": file.file_major_version,
        "file_minor_version": file.file_minor_version,
        "file_size_bytes": file.file_size_bytes or None,
        "base_id": file.base_id if file.HasField("base_id") else None,
    }


def _given(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}
