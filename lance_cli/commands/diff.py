"""`pyspark-lance diff`: what changed between two versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lance_format
from lance_cli.commands.history import list_versions
from lance_cli.options import Json, StorageOptions, TablePath, Wide, open_table
from lance_cli.output import Answer, Grid, count_text, headings, show, shown_value

if TYPE_CHECKING:
    from lance_format import ChangeLog, LanceDataset

_From = Annotated[int, typer.Argument(metavar="FROM", min=0, help="The earlier version; 0 is the empty table.")]
_To = Annotated[int, typer.Argument(metavar="TO", min=1, help="The later version.")]
_Rows = Annotated[int, typer.Option("--rows", min=0, help="Number of changed rows to print.")]


def run(
    path: TablePath,
    begin: _From,
    end: _To,
    storage_option: StorageOptions = None,
    rows: _Rows = 0,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Show what the versions after FROM, up to TO, changed: rows, columns, fragments and properties.

    Without stable row ids, an updated row is a deleted and an inserted one.
    """
    if begin >= end:
        raise typer.BadParameter(f"{begin} is not an earlier version than {end}")
    dataset = open_table(path, storage_option)
    after = dataset.checkout_version(end)
    facts = compare(after, begin)
    facts["changed_rows"] = list(_changed_rows(lance_format.ChangeLog(after), begin, end, rows))
    show(Answer(facts, _grids(facts), max_width=None if wide else Answer({}).max_width), as_json=as_json)


def compare(after: LanceDataset, begin: int) -> dict[str, Any]:
    """Return the changes after a version, up to and including another."""
    before = after.checkout_version(begin) if begin else None
    log = lance_format.ChangeLog(after)
    versions = [each for each in list_versions(after, after.version - begin) if each["version"] > begin]
    for each in versions:
        each |= _count_rows(log, each["version"])
    old_fields = {} if before is None else {field.name: field for field in before.schema}
    new_fields = {field.name: field for field in after.schema}
    old_fragments = {} if before is None else {x.fragment_id: x.metadata for x in before.get_fragments()}
    new_fragments = {x.fragment_id: x.metadata for x in after.get_fragments()}
    shared = old_fragments.keys() & new_fragments.keys()
    old_config = {} if before is None else before.config()
    config = after.config()
    return {
        "uri": after.uri,
        "from_version": begin,
        "to_version": after.version,
        "rows_before": 0 if before is None else before.count_rows(),
        "rows_after": after.count_rows(),
        "columns_added": [str(new_fields[name]) for name in new_fields if name not in old_fields],
        "columns_dropped": [str(old_fields[name]) for name in old_fields if name not in new_fields],
        "columns_changed": [
            f"{old_fields[name]} -> {new_fields[name]}"
            for name in new_fields
            if name in old_fields and old_fields[name] != new_fields[name]
        ],
        "fragments_added": len(new_fragments.keys() - old_fragments.keys()),
        "fragments_removed": len(old_fragments.keys() - new_fragments.keys()),
        "fragments_changed": sum(old_fragments[number] != new_fragments[number] for number in shared),
        "config_changed": sorted(
            name for name in config.keys() | old_config.keys() if config.get(name) != old_config.get(name)
        ),
        "versions": versions,
    }


def _count_rows(log: ChangeLog, version: int) -> dict[str, int | None]:
    """Count the rows that a version changed; None if the version before it is no longer there."""
    try:
        changes = log.find_changes(version)
    except (lance_format.VersionNotFoundError, lance_format.NotSupportedError):
        return {"rows_inserted": None, "rows_updated": None, "rows_deleted": None}
    counts: Counter[str] = Counter()
    for change in changes:
        counts[change.kind] += change.num_rows
    return {
        "rows_inserted": counts["insert"],
        "rows_updated": counts["update_postimage"],
        "rows_deleted": counts["delete"],
    }


def _changed_rows(log: ChangeLog, begin: int, end: int, limit: int) -> Iterator[dict[str, Any]]:
    """Yield some rows that versions changed, with the kind of the change."""
    left = limit
    for version in range(begin + 1, end + 1):
        if not left:
            return
        for change in log.find_changes(version):
            if not left:
                return
            scanner = log.open(change.version).scanner()
            offsets = change.rows()
            for batch in scanner.read_rows(change.fragment_id, None if offsets is None else offsets[:left]):
                for row in batch.slice(0, left).to_pylist():
                    left -= 1
                    yield {"version": version, "change": change.kind, "row": row}
                if not left:
                    return


def _grids(facts: dict[str, Any]) -> list[Grid]:
    names = headings(
        "#version",
        "committed",
        "operation",
        "#inserted",
        "#updated",
        "#deleted",
        "message",
    )
    rows = [
        (
            each["version"],
            each["timestamp"],
            each["operation"],
            *(count_text(each[name]) for name in ("rows_inserted", "rows_updated", "rows_deleted")),
            each["message"] or "",
        )
        for each in reversed(facts["versions"])
    ]
    general = [
        ("rows", f"{count_text(facts['rows_before'])} -> {count_text(facts['rows_after'])}"),
        (
            "fragments",
            f"{facts['fragments_added']} added, {facts['fragments_removed']} removed,"
            f" {facts['fragments_changed']} changed",
        ),
        ("columns added", facts["columns_added"]),
        ("columns dropped", facts["columns_dropped"]),
        ("columns changed", facts["columns_changed"]),
        ("config changed", facts["config_changed"]),
    ]
    grids = [Grid((), general), Grid(names, rows, "Versions")]
    changed = facts["changed_rows"]
    if changed:
        columns = list(dict.fromkeys(name for each in changed for name in each["row"]))
        values = [
            (each["version"], each["change"], *(shown_value(each["row"].get(name)) for name in columns))
            for each in changed
        ]
        grids.append(Grid([*headings("#version", "change"), *columns], values, "Rows"))
    return grids
