"""The notebooks of examples/ run in the session of the tests, and at night in kernels of their own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.docs.snippets import unchanged
from tests.spark.conftest import ROOT

_NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
_CHECKS: dict[str, Any] = {
    "images_and_vectors": lambda names: names["accuracy"] > 0.98 and len(names["nearest"]) == 8,
    "quick_start": lambda names: names["strongest"] < 50 and len(names["days"]) > 360,
    "streaming_dashboard": lambda names: names["total"] == pc.sum(names["expected"]["dep_delay"]).as_py() > 500_000,
    "time_travel_and_branches": lambda names: names["raw_rows"] == 26_115 and -15 < names["coldest"] < -10,
}
"""Facts that a notebook finds, by its name."""


def _cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.mark.system
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive:UserWarning")
@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook(path: Path, planner: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    names: dict[str, Any] = {"__name__": "__notebook__"}
    with unchanged(planner):
        for number, cell in enumerate(_cells(path), 1):
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    assert _CHECKS[path.stem](names)


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_have_no_outputs(path: Path) -> None:
    """Outputs would become untrue without a failure, and hide changes of the code."""
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in _cells(path))


@pytest.mark.nightly
@pytest.mark.parametrize("path", _NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_in_a_kernel(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(output.output_type == "display_data" for cell in notebook.cells for output in cell.get("outputs", []))
