"""Commands on a table in an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

import lance_format
from tests.cli.command_line import execute, json_of
from tests.cli.conftest import birds
from tests.servers import ObjectServer

pytestmark = pytest.mark.system


def test_commands_on_an_object_store(s3_server: ObjectServer, tmp_path: Path) -> None:
    uri = s3_server.new_root()
    for number in range(2):
        rows = birds(number * 100, number * 100 + 100)
        lance_format.write_dataset(rows, uri, mode="append" if number else "create", storage_options=s3_server.options)
    options = [part for key, value in s3_server.options.items() for part in ("--storage-option", f"{key}={value}")]
    assert json_of("info", uri, *options)["rows"] == 200
    assert [each["rows_inserted"] for each in json_of("diff", uri, 1, 2, *options)["versions"]] == [100]
    (file, _) = json_of("files", uri, *options)["files"]
    assert json_of("pages", f"{uri}/{file['path']}", *options)["rows"] == 100
    assert [row["id"] for row in json_of("query", uri, "id BETWEEN 99 AND 100", *options)["rows"]] == [99, 100]
    assert json_of("report", uri, *options, "-o", tmp_path / "report.html")["facts"]["table"]["rows"] == 200
    assert json_of("optimize", uri, *options)["fragments_added"] == 1
    assert json_of("verify", uri, *options)["version"] == 3
    assert json_of("vacuum", uri, "--retain-versions", 1, *options)["old_versions"] == 2
    wrong = [part.replace(s3_server.options["aws_secret_access_key"], "hunter2") for part in options]
    ended = execute("info", f"{uri}/nowhere", *wrong)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "hunter2" not in ended.err
    page = (tmp_path / "report.html").read_text()
    assert s3_server.options["aws_secret_access_key"] not in page
