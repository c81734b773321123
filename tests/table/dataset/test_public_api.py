import doctest
import pickle
import subprocess
import sys

import pytest

import lance_format


def test_all_names_are_there() -> None:
    for name in lance_format.__all__:
        assert getattr(lance_format, name) is not None
    assert set(lance_format.__all__) <= set(dir(lance_format))
    with pytest.raises(AttributeError, match="nope"):
        lance_format.nope  # noqa: B018


def test_naming_the_library_loads_nothing_heavy() -> None:
    heavy = ("numba", "numpy", "pyarrow", "google.protobuf", "pandas", "pyroaring")
    script = f"import sys, lance_format; print([m for m in {heavy!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_example_runs() -> None:
    assert doctest.testmod(lance_format).failed == 0


@pytest.mark.parametrize(
    "name", [name for name in lance_format.__all__ if name.endswith("Error") and name != "CorruptFileError"]
)
def test_errors_are_one_family_and_travel_between_processes(name: str) -> None:
    error = getattr(lance_format, name)("what happened")
    assert isinstance(error, lance_format.LanceError)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), "what happened")


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("CommitConflictError", OSError),
        ("DatasetExistsError", OSError),
        ("DatasetNotFoundError", ValueError),
        ("IndexNotFoundError", KeyError),
        ("IndexNotFoundError", ValueError),
        ("InvalidInputError", ValueError),
        ("NotSupportedError", NotImplementedError),
        ("RetryableCommitConflictError", OSError),
        ("SchemaMismatchError", OSError),
        ("VersionNotFoundError", ValueError),
    ],
)
def test_errors_are_caught_by_what_pylance_raises(name: str, builtin: type[Exception]) -> None:
    with pytest.raises(builtin, match=r"^what happened$"):
        raise getattr(lance_format, name)("what happened")
