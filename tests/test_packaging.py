"""Packages of the project: an sdist that builds and tests itself, and a wheel that works in any installation."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[1]
_NOT_OF_THE_PROJECT = (".*", "__pycache__", "build", "dist", "*.egg-info", "spark-warehouse")
_PACKAGES = ("connector", "lance_cli", "lance_format", "pyspark_lance")
_MIN_SETUPTOOLS = 77
_PROGRAM = """
import sys
import connector, lance_format, pyspark_lance
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "ERROR").getOrCreate()
pyspark_lance.register(spark)
spark.range(5).write.format("lance").save(sys.argv[1])
assert [row.id for row in spark.read.format("lance").load(sys.argv[1]).where("id > 3").collect()] == [4]
spark.stop()
for package in (connector, lance_format, pyspark_lance):
    print(package.__file__)
"""

_FIND = """
import pkgutil
for module in pkgutil.iter_modules():
    if module.name == "pyspark_lance":
        print(module.module_finder.path)
"""


def _run(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """Return what a program prints that finds no module by way of this process's environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "PYTHON"))}
    environment.update(variables)
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with an sdist, and the wheel built from it."""
    source, target = tmp_path_factory.mktemp("source") / "project", tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*_NOT_OF_THE_PROJECT))
    shutil.copytree(ROOT / ".ci", source / ".ci")
    installed = int(importlib.metadata.version("setuptools").partition(".")[0])
    # With an older one, the build gets its own from the package index.
    isolation = ["--no-isolation"] if installed >= _MIN_SETUPTOOLS else []
    _run(sys.executable, "-m", "build", *isolation, "--outdir", target, source, cwd=target)
    return target


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment that has all dependencies, and not the project."""
    directory = tmp_path_factory.mktemp("environment")
    _run(sys.executable, "-m", "venv", "--without-pip", directory)
    dependencies = Path(pytest.__file__).parents[1]
    (site_packages,) = directory.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(f"{dependencies}\n")
    return directory / "bin" / "python"


def test_the_sdist_has_all_that_testing_takes(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    directories = [*_PACKAGES, "benchmarks", "docker", "docs", "examples", "tests", "tools"]
    tracked = {
        str(path.relative_to(ROOT))
        for name in directories
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    tracked |= {"ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "docker-compose.yml"}
    tracked |= {"mkdocs.yml", ".ci/run"}
    assert sorted(tracked - names) == []


def test_the_wheel_has_the_packages_and_nothing_else(built: Path) -> None:
    (archive,) = built.glob("*.whl")
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        (metadata,) = (opened.read(name).decode() for name in names if name.endswith("/METADATA"))
    assert {name.partition("/")[0] for name in names if "dist-info" not in name} == set(_PACKAGES)
    for package in _PACKAGES:
        assert f"{package}/py.typed" in names
    assert "connector/planner/java/DefaultSource.java" in names
    assert "connector/catalog/java/Catalog.java" in names
    for extra in ("cli", "connect", "pandas"):
        assert f"Provides-Extra: {extra}\n" in metadata


def test_a_first_table_from_an_installed_wheel(built: Path, python: Path, tmp_path: Path) -> None:
    """In a directory that has nothing to do with the project, with the Python of an activated environment."""
    (wheel,) = built.glob("*.whl")
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    activated = {
        "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
        "VIRTUAL_ENV": str(python.parents[1]),
    }
    files = _run(
        python, "-c", _PROGRAM, tmp_path / "birds.lance", cwd=tmp_path, SPARK_LOCAL_IP="127.0.0.1", **activated
    ).split()
    assert all(Path(file).is_relative_to(python.parents[1]) for file in files)


def test_an_editable_install_is_where_spark_looks(python: Path, tmp_path: Path) -> None:
    """Spark looks for data sources in the directories of `sys.path`; pip's default may put nothing there."""
    source = tmp_path / "project"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*_NOT_OF_THE_PROJECT))
    installed = int(importlib.metadata.version("setuptools").partition(".")[0])
    isolation = ["--no-build-isolation"] if installed >= _MIN_SETUPTOOLS else []
    command = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", *isolation)
    _run(*command, "--editable", source, cwd=tmp_path)
    found = _run(python, "-c", _FIND, cwd=tmp_path).split()
    assert found[0] == str(source)
