"""Frozen dataclasses whose methods are generated on first use.

`dataclass` has the parameters and the meaning of the standard library's, which compiles seven methods per frozen
class: 0.7 ms. The library has some 340 such classes, and a process uses few of them. They were two fifths of the time
that the import of the data source takes.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass

__all__ = ["dataclass", "generate_methods"]

_MAKE = "_make_methods"


def _dataclass(cls: type | None = None, /, *, slots: bool = False, kw_only: bool = False, **other: bool) -> Any:
    """Make a dataclass; see `dataclasses.dataclass`."""

    def make(plain: type) -> type:
        if not other.get("frozen") or other.keys() - {"frozen", "eq", "repr"}:
            return dataclasses.dataclass(slots=slots, kw_only=kw_only, **other)(plain)
        made: type = dataclasses.dataclass(init=False, eq=False, repr=False, slots=slots, kw_only=kw_only)(plain)
        _complete(made, slots=slots, eq=other.get("eq", True), shown=other.get("repr", True))
        return made

    return make if cls is None else make(cls)


if not TYPE_CHECKING:
    dataclass = _dataclass


def generate_methods(cls: type) -> None:
    """Generate the methods of a dataclass now, for those that look at them; other classes stay as they are."""
    if _MAKE in vars(cls):
        vars(cls)[_MAKE]()


def _complete(cls: type, *, slots: bool, eq: bool, shown: bool) -> None:
    """Give a class the methods of a frozen dataclass that it does not define."""
    defined = {name for name, value in vars(cls).items() if name != "__hash__" or value is not None}
    fixed: dict[str, Any] = {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
    if slots:
        # By default, copies and unpickled objects are filled by assignments.
        fixed |= {"__getstate__": _get_state, "__setstate__": _set_state}
    for name in fixed.keys() - defined:
        setattr(cls, name, fixed[name])
    lazy = {"__init__", *(["__repr__"] if shown else []), *(["__eq__", "__hash__"] if eq else [])} - defined

    @functools.cache
    def make() -> dict[str, Any]:
        generated = vars(_twin(cls, slots=slots))
        for name in lazy:
            if vars(cls)[name] is stubs[name]:
                setattr(cls, name, generated[name])
        return dict(generated)

    stubs = {name: _stub(make, name) for name in lazy}
    for name, stub in stubs.items():
        setattr(cls, name, stub)
    setattr(cls, _MAKE, staticmethod(make))
    if "__init__" in lazy:
        cls.__signature__ = _Signature()  # type: ignore[attr-defined]


def _stub(make: Any, name: str) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return make()[name](self, *args, **kwargs)

    call.__name__ = name
    return call


def _twin(cls: type, *, slots: bool) -> type:
    """Return a dataclass of the standard library with the same fields, whose methods fit both classes."""
    fields = dataclasses.fields(cls)
    members: dict[str, Any] = {
        field.name: dataclasses.field(
            default=field.default,
            default_factory=field.default_factory,
            init=field.init,
            repr=field.repr,
            hash=field.hash,
            compare=field.compare,
            kw_only=field.kw_only,
        )
        for field in fields
    }
    members["__annotations__"] = {field.name: field.type for field in fields}
    members["__module__"], members["__qualname__"] = cls.__module__, cls.__qualname__
    members["__doc__"] = cls.__doc__
    if hasattr(cls, "__post_init__"):
        members["__post_init__"] = cls.__post_init__
    return dataclasses.dataclass(frozen=True, slots=slots)(type(cls.__name__, (), members))


class _Signature:
    """The signature of a class, which `inspect` looks up."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        generate_methods(next(cls for cls in owner.__mro__ if _MAKE in vars(cls)))
        if instance is not None:
            raise AttributeError("__signature__")
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def _refuse_assignment(_: object, name: str, __: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
