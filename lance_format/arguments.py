"""Checks of the arguments of public functions and methods against their annotations.

An argument of another type than its annotation raises an `InvalidInputError` that names it, before any effect.
Elements of sequences and mappings are checked too, but not those of iterators, which can be consumed only once. Text
must be Unicode: a lone surrogate has no encoding, and cannot be stored.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lance_format.errors import InvalidInputError
from lance_format.lazy_dataclasses import dataclass, generate_methods

_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound=Callable[..., Any])

_LIBRARY = __name__.partition(".")[0]
_MOST_SHOWN = 200
_NAMES: dict[Any, str] = {
    str: "text",
    bytes: "bytes",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    type(None): "None",
}


def checked_methods(cls: _Class) -> _Class:
    """Check the arguments of the public methods that a class defines, and of its constructor."""
    generate_methods(cls)
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, staticmethod | classmethod):
            setattr(cls, name, type(member)(checked(member.__func__)))
        elif isinstance(member, types.FunctionType):
            setattr(cls, name, checked(member))
    return cls


def checked(function: _Function) -> _Function:
    """Check the arguments of a function, and convert integers and flags of NumPy to those of Python."""

    @functools.wraps(function)
    def check(*args: Any, **kwargs: Any) -> Any:
        checks = _checks_of(function)
        found = [check_argument(value) for check_argument, value in zip(checks.positional, args, strict=False)]
        found += [checks.further(value) for value in args[len(found) :]]
        for name, value in kwargs.items():
            kwargs[name] = (checks.named.get(name) or checks.check_other(name))(value)
        return function(*found, **kwargs)

    return typing.cast(_Function, check)


@dataclass(frozen=True, slots=True)
class _Argument:
    """Check of one argument.

    Parameters
    ----------
    name : str
    hint : Any
    simple : frozenset of type
        Types whose values need no further check.
    takes_text : bool
    """

    name: str
    hint: Any
    simple: frozenset[type]
    takes_text: bool

    @classmethod
    def of(cls, name: str, hint: Any) -> _Argument:
        """Prepare the check of an argument."""
        hint = _meaning(hint)
        is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        options = typing.get_args(hint) if is_union else (hint,)
        classes = {option for option in options if isinstance(option, type) and typing.get_origin(option) is None}
        simple = {found for found in classes - {str, object} if not getattr(found, "_is_protocol", False)}
        return cls(name, hint, frozenset(simple | ({int} if float in simple else set())), str in classes)

    def __call__(self, value: Any) -> Any:
        """Check and return the value."""
        kind = type(value)
        if kind in self.simple or (kind is str and self.takes_text and value.isascii()):
            return value
        return _check(self.name, value, self.hint)


@dataclass(frozen=True, slots=True)
class _Checks:
    """Checks of the arguments of one function.

    Parameters
    ----------
    positional : tuple of callable
        By position.
    named : mapping of str to callable
        By name.
    further : callable
        Of further positional arguments.
    others : mapping of str to type
        Types of further keyword arguments.
    """

    positional: tuple[Callable[[Any], Any], ...]
    named: Mapping[str, Callable[[Any], Any]]
    further: Callable[[Any], Any]
    others: Mapping[str, Any]

    def check_other(self, name: str) -> Callable[[Any], Any]:
        """Return the check of a keyword argument without a parameter of its name."""
        return _Argument.of(name, self.others[name]) if name in self.others else _accept


def _accept(value: Any) -> Any:
    return value


@functools.cache
def _checks_of(function: Callable[..., Any]) -> _Checks:
    hints = argument_hints(function)
    positional: list[Callable[[Any], Any]] = []
    named: dict[str, Callable[[Any], Any]] = {}
    further: Callable[[Any], Any] = _accept
    others: Mapping[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if parameter.kind is parameter.VAR_KEYWORD:
            others = {} if hint is Any else hint
            continue
        check = _accept if hint is Any else _Argument.of(name, hint)
        if parameter.kind is parameter.VAR_POSITIONAL:
            further = check
            continue
        if parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(check)
        if parameter.kind is not parameter.POSITIONAL_ONLY:
            named[name] = check
    return _Checks(tuple(positional), named, further, others)


@functools.cache
def argument_hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the types of arguments; of keyword arguments that are given as a `TypedDict`, those of its keys.

    Types that are imported for type checkers only are found among the public names of the library.
    """
    hints: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        if name != "return":
            hints[name] = _resolve(annotation, function.__globals__)
    variable = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD]
    for name in variable:
        hint = hints.get(name, Any)
        is_unpacked = typing.get_origin(hint) is typing.Unpack
        hints[name] = _keys(typing.get_args(hint)[0]) if is_unpacked else Any
    return hints


def _keys(typed: Any) -> dict[str, Any]:
    return typing.get_type_hints(typed)


class _PublicNames(dict[str, Any]):
    """Public names of the library that a module does not have."""

    def __init__(self, module: Mapping[str, Any]) -> None:
        self._module = module

    def __missing__(self, name: str) -> Any:
        library = sys.modules[_LIBRARY]  # The module is complete once one of its functions is called.
        if name in self._module or name not in library.__all__:
            raise KeyError(name)
        return getattr(library, name)


def _resolve(annotation: Any, names: dict[str, Any]) -> Any:
    return eval(annotation, names, _PublicNames(names)) if isinstance(annotation, str) else annotation


def _check(name: str, value: Any, hint: Any) -> Any:
    """Check the type of an argument, and return it."""
    if not _fits(value, hint):
        shown = reprlib.repr(value)[:_MOST_SHOWN]
        raise InvalidInputError(f"{name} is {shown}; {_describe(hint)} is needed{_hint_at_surrogates(value)}")
    return _as_python(value)


def _as_python(value: Any) -> Any:
    """Convert a number or a flag of NumPy to one of Python."""
    if type(value).__module__ == "numpy" and isinstance(value, collections.abc.Hashable) and hasattr(value, "item"):
        return value.item()
    return value


def _meaning(hint: Any) -> Any:
    """Return the type that an alias names, such as NumPy's `ArrayLike` since Python 3.12."""
    return getattr(hint, "__value__", hint)


def _fits(value: Any, hint: Any) -> bool:
    hint = _meaning(hint)
    if hint is Any or hint is object or isinstance(hint, TypeVar | str):
        return not isinstance(value, str) or _is_text(value)
    if hint is None or hint is type(None):
        return value is None
    origin = typing.get_origin(hint)
    if origin is None:
        return _is_instance(value, hint)
    if _is_path(origin):
        return hasattr(type(value), "__fspath__") and _is_instance(value.__fspath__(), str)
    return _ORIGINS.get(origin, _fits_origin)(value, hint)


def _is_path(origin: Any) -> bool:
    return (getattr(origin, "__module__", ""), getattr(origin, "__name__", "")) == (
        "os",
        "PathLike",
    )  # Nothing below files may import `os`.


def _is_instance(value: Any, hint: Any) -> bool:
    value = _as_python(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is str:
        return isinstance(value, str) and _is_text(value)
    if not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True
    return isinstance(value, hint) or _resembles(value, hint)


def _resembles(value: Any, hint: type) -> bool:
    """Return whether a value has all members of a class of this library, as pylance's class of the same name has."""
    if hint.__module__.partition(".")[0] != _LIBRARY:
        return False
    wanted = [name for name in (*vars(hint), *getattr(hint, "__dataclass_fields__", ())) if not name.startswith("_")]
    return bool(wanted) and all(hasattr(value, name) for name in wanted)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits_union(value: Any, hint: Any) -> bool:
    return any(_fits(value, option) for option in typing.get_args(hint))


def _fits_literal(value: Any, hint: Any) -> bool:
    return any(type(value) is type(option) and value == option for option in typing.get_args(hint))


def _fits_callable(value: Any, hint: Any) -> bool:  # noqa: ARG001
    return callable(value)


def _fits_mapping(value: Any, hint: Any) -> bool:
    if not isinstance(value, collections.abc.Mapping):
        return False
    key_hint, value_hint = typing.get_args(hint) or (Any, Any)
    return all(_fits(key, key_hint) and _fits(found, value_hint) for key, found in value.items())


def _fits_tuple(value: Any, hint: Any) -> bool:
    options = typing.get_args(hint)
    if not isinstance(value, tuple):
        return False
    if len(options) == 2 and options[1] is Ellipsis:
        return all(_fits(found, options[0]) for found in value)
    return len(value) == len(options) and all(map(_fits, value, options))


def _fits_iterable(value: Any, hint: Any) -> bool:
    """Check an iterable, and its elements if it can be iterated again; uses of numbers check these."""
    origin = typing.get_origin(hint)
    if isinstance(value, str | bytes) or not (isinstance(value, origin) or (_is_array(value) and origin in _ANY_ORDER)):
        return False
    (element,) = typing.get_args(hint) or (Any,)
    if element in (int, Any) or not hasattr(value, "__len__"):
        return True
    return all(_fits(found, element) for found in value)


def _is_array(value: Any) -> bool:
    """Return whether a value is an array of NumPy or Arrow, which counts as a sequence."""
    return hasattr(value, "__array__") and hasattr(value, "__len__") and getattr(value, "ndim", 1) == 1


def _fits_origin(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    return not isinstance(origin, type) or isinstance(value, origin)


_ANY_ORDER = (collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable)
_ORIGINS: dict[Any, Callable[[Any, Any], bool]] = {
    typing.Union: _fits_union,
    types.UnionType: _fits_union,
    typing.Literal: _fits_literal,
    collections.abc.Callable: _fits_callable,
    collections.abc.Mapping: _fits_mapping,
    dict: _fits_mapping,
    tuple: _fits_tuple,
    list: _fits_iterable,
    set: _fits_iterable,
    frozenset: _fits_iterable,
    collections.abc.Iterable: _fits_iterable,
    collections.abc.Iterator: _fits_iterable,
    collections.abc.Collection: _fits_iterable,
    collections.abc.Sequence: _fits_iterable,
}


def _describe(hint: Any) -> str:
    """Describe a type, for a message."""
    hint = _meaning(hint)
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_describe(option) for option in options if option is not type(None)))
    if origin is typing.Literal:
        return " or ".join(map(repr, options))
    if origin in (collections.abc.Mapping, dict):
        return f"a mapping of {_describe(options[0])} to {_describe(options[1])}"
    if origin is tuple:
        return f"a tuple of {', '.join(_describe(option) for option in options if option is not Ellipsis)}"
    if origin is collections.abc.Callable:
        return "a function"
    if origin is not None and _is_path(origin):
        return "a path"
    if origin in _ORIGINS and options:
        return f"a sequence of {_describe(options[0])}"
    return _NAMES.get(origin or hint) or str(getattr(hint, "__name__", hint))


def _hint_at_surrogates(value: Any) -> str:
    return "; it has a lone surrogate, which is no text" if isinstance(value, str) and not _is_text(value) else ""
