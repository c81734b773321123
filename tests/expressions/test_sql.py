"""sqlglot's own parser parses SQL text, and names of functions are kept."""

import pytest
from sqlglot.parser import Parser

from lance_format import InvalidInputError
from lance_format.expressions import nodes
from lance_format.expressions.parsing.sql import LanceSQL, parse

RENAMED_BY_SQLGLOT = ["array_contains", "date_trunc", "least", "left", "length", "LOG", "regexp_like", "year"]


def test_the_parser_may_be_compiled() -> None:
    # Calls of a class that is derived from a compiled one raise.
    assert LanceSQL().parser_class is Parser


@pytest.mark.parametrize("name", RENAMED_BY_SQLGLOT)
@pytest.mark.parametrize("form", ["{}(a, 1)", "`{}`(a, 1)", "(({} (a, 1)))"])
def test_functions_keep_their_names(name: str, form: str) -> None:
    assert name.upper() in Parser.FUNCTIONS
    assert parse(form.format(name)) == nodes.Call(name.lower(), (nodes.Column(("a",)), parse("1")))


def test_columns_may_be_called_like_functions() -> None:
    expected = nodes.Comparison("=", nodes.Column(("log",)), nodes.Call("log", (nodes.Column(("left",)),)))
    assert parse("log = log(left)") == expected


def test_messages_have_the_text_as_it_was_given() -> None:
    with pytest.raises(InvalidInputError, match=r"not supported in SQL expressions, near character 1: APPLY AS \(a\)$"):
        parse("APPLY(a)")
