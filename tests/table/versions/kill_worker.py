"""Processes that die in the middle of a change, by SIGKILL.

The change is made on copies of a table, each in a process of its own, which kills itself before its first, second, …
system call that changes the storage, or, where that is a write, after half of it. The copies are `DIRECTORY/0`, … .
What is returned is the number of copies; the last change was not interrupted. Changes of several steps are made on BASE
itself, which becomes the copies one after the other.
"""

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_format


def send_batch(path: str) -> None:
    rows = pa.table({"a": [100], "s": ["row 100"]})
    write = lance_format.plan_write(path, rows.schema, mode="append")
    marker = lance_format.BatchMarker.plan(lance_format.dataset(path).config(), "q", 1)
    write.commit(write.write_fragments(rows.to_batches()), marker)


OPERATIONS: dict[str, Callable[[str], object]] = {
    "append": lambda path: lance_format.write_dataset(pa.table({"a": [100], "s": ["new"]}), path, mode="append"),
    "batch": lambda path: send_batch(path),
    "overwrite": lambda path: lance_format.write_dataset({"z": [1, 2]}, path, mode="overwrite"),
    "delete": lambda path: lance_format.dataset(path).delete("a % 3 = 0"),
    "update": lambda path: lance_format.dataset(path).update({"s": "'new'"}, "a % 4 = 0"),
    "add_columns": lambda path: lance_format.dataset(path).add_columns({"c": "a + 1"}),
    "compact_files": lambda path: lance_format.dataset(path).optimize.compact_files(),
    "restore": lambda path: lance_format.dataset(path, 1).restore(),
}
IN_STEPS: dict[str, Callable[[str], object]] = {
    "create_branch": lambda path: lance_format.dataset(path).create_branch("c/d"),
    "delete_branch": lambda path: lance_format.dataset(path).branches.delete("b"),
    "drop": lambda path: lance_format.LanceDataset.drop(path),
    "deep_clone": lambda path: lance_format.dataset(path).deep_clone(f"{path}/clone", 1),
}
"""What takes several steps, each of which may be the last; done on the table itself, whose branches know its place."""
_CHANGING = ("open", "write", "link", "unlink", "replace", "rename", "mkdir", "rmdir")


def die_at(wanted: int) -> None:
    """Make this process kill itself at a system call; a write counts twice, the second time it is half done."""
    numbers = itertools.count()

    def watch(name: str) -> None:
        proper = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return proper(*arguments, **options)
            if next(numbers) == wanted:
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "write" and next(numbers) == wanted:
                descriptor, content = arguments
                proper(descriptor, content[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return proper(*arguments, **options)

        setattr(os, name, call)

    for name in _CHANGING:
        watch(name)


def dies(operation: Callable[[str], object], path: str, wanted: int) -> bool:
    """Run an operation in a child; return whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            die_at(wanted)
            operation(path)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def die_everywhere(name: str, base: str, directory: str) -> int:
    if name in IN_STEPS:
        return stay(name, base, directory)
    warm = f"{directory}/warm"
    shutil.copytree(base, warm)
    OPERATIONS[name](warm)  # Children inherit the kernels that are compiled by now.
    for wanted in itertools.count():
        path = f"{directory}/{wanted}"
        shutil.copytree(base, path)
        if not dies(OPERATIONS[name], path, wanted):
            return wanted + 1
    raise AssertionError


def stay(name: str, base: str, directory: str) -> int:
    """Do the change on the table itself, which is moved away afterwards, and put back by a copy."""
    shutil.copytree(base, f"{directory}/copy")
    for wanted in itertools.count(-1):  # The first time without being killed: children inherit the compiled kernels.
        if wanted < 0:
            IN_STEPS[name](base)
        was_killed = wanted < 0 or dies(IN_STEPS[name], base, wanted)
        if Path(base).exists():
            shutil.move(base, f"{directory}/{wanted}")
        shutil.copytree(f"{directory}/copy", base)
        if not was_killed:
            return wanted + 1
    raise AssertionError
