"""Dataclasses with methods on first use are those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from functools import cached_property
from typing import Any, ClassVar

import pytest

import connector
import lance_format
from lance_format.lazy_dataclasses import dataclass, generate_methods


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: int = 2
    tags: list[str] = dataclasses.field(default_factory=list, compare=False)
    known: int | None = dataclasses.field(default=None, init=False, repr=False)
    shown: ClassVar[str] = "no field"


@dataclass(frozen=True, slots=True)
class Named(Point):
    """A point with a name, which is never empty."""

    name: str = "origin"

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a name is needed")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Keyed:
    """A class with arguments by keyword only."""

    x: int
    y: int = 3


@dataclass(frozen=True, eq=False)
class Opaque:
    """A class that compares by identity, and keeps what it computes."""

    x: int

    @cached_property
    def twice(self) -> int:
        return 2 * self.x


@dataclass(frozen=True, slots=True)
class Own:
    """A class with methods that it defines itself."""

    x: int

    def __eq__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "own"


def _standard(cls: type) -> Any:
    """The same class as the standard library makes it."""
    members = {
        name: value
        for name, value in vars(cls).items()
        if name in ("__doc__", "__post_init__", "__module__", "__qualname__")
        or (cls is Own and name in ("__eq__", "__repr__"))
    }
    members["__annotations__"] = {field.name: field.type for field in dataclasses.fields(cls)}
    for field in dataclasses.fields(cls):
        members[field.name] = dataclasses.field(
            default=field.default,
            default_factory=field.default_factory,
            init=field.init,
            repr=field.repr,
            compare=field.compare,
            kw_only=field.kw_only,
        )
    options = {Keyed: {"kw_only": True, "repr": False}, Opaque: {"eq": False}}.get(cls, {})
    return dataclasses.dataclass(frozen=True, **options)(type(cls.__name__, (), members))


CASES = [
    (Point, (1,), {}),
    (Point, (1, 5), {"tags": ["a"]}),
    (Named, (1,), {"name": "home"}),
    (Keyed, (), {"x": 1}),
    (Opaque, (4,), {}),
    (Own, (1,), {}),
]


@pytest.mark.parametrize(("cls", "args", "kwargs"), CASES)
def test_objects_are_those_of_the_standard_library(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    standard = _standard(cls)
    ours, theirs = cls(*args, **kwargs), standard(*args, **kwargs)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert inspect.signature(cls) == inspect.signature(standard)
    if cls not in (Keyed, Opaque):
        assert repr(ours) == repr(theirs)
    assert (ours == cls(*args, **kwargs)) == (theirs == standard(*args, **kwargs))
    assert (ours == dataclasses.replace(ours, x=9)) == (theirs == dataclasses.replace(theirs, x=9))
    assert ours != theirs or cls is Own
    if cls not in (Opaque, Keyed):
        assert hash(ours) == hash(theirs)
    for again in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(again) is cls
        assert dataclasses.asdict(again) == dataclasses.asdict(ours)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        ours.x = 3
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del ours.x
    with pytest.raises(TypeError, match="z"):
        cls(*args, **kwargs, z=1)
    with pytest.raises(TypeError, match="missing"):
        cls()


def test_a_constructor_checks_what_it_is_given() -> None:
    with pytest.raises(ValueError, match="a name is needed"):
        Named(1, name="")


def test_computed_attributes_are_kept() -> None:
    opaque = Opaque(4)
    assert opaque.twice == 8
    assert opaque.__dict__ == {"x": 4, "twice": 8}


def test_methods_are_generated_on_first_use() -> None:
    @dataclass(frozen=True)
    class Fresh:
        x: int

    stub = vars(Fresh)["__init__"]
    assert Fresh(1) == Fresh(1)
    assert vars(Fresh)["__init__"] is not stub
    assert vars(Fresh)["__eq__"].__code__.co_filename == "<string>"


def test_a_method_that_is_replaced_stays_replaced() -> None:
    @dataclass(frozen=True)
    class Wrapped:
        x: int

    wrapped = Wrapped.__init__
    calls = []

    def init(self: Any, *args: Any) -> None:
        calls.append(args)
        wrapped(self, *args)

    Wrapped.__init__ = init  # type: ignore[method-assign,assignment]
    assert [Wrapped(1).x, Wrapped(2).x] == [1, 2]
    assert calls == [(1,), (2,)]


def test_classes_that_can_change_are_made_by_the_standard_library() -> None:
    @dataclass(slots=True)
    class Mutable:
        x: int

    changed = Mutable(1)
    changed.x = 2
    assert changed == Mutable(2)
    assert Mutable.__hash__ is None


@pytest.mark.parametrize("package", [lance_format, connector], ids=lambda package: package.__name__)
def test_methods_of_all_classes_can_be_generated(package: Any) -> None:
    count = 0
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name.endswith(("daemon", "_pb2")):
            continue
        for name, cls in vars(importlib.import_module(module.name)).items():
            if isinstance(cls, type) and dataclasses.is_dataclass(cls) and cls.__module__ == module.name:
                generate_methods(cls)
                expected = [field.name for field in dataclasses.fields(cls) if field.init]
                assert list(inspect.signature(cls).parameters) == expected, name
                count += 1
    assert count > 40
