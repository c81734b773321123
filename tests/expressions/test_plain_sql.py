"""Plain text means the same whether sqlglot parses it or not."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.tokens import Tokenizer

from lance_format import InvalidInputError
from lance_format.expressions import Expression, nodes
from lance_format.expressions.parsing import sql
from lance_format.expressions.parsing.plain_sql import parse_plain

NAMES = ["a", "B_2", "_x", "s.t", "`odd name`", "`a.b`", "type", "date", "value", "a.b.c"]
CONSTANTS = ["1", "-5", "007", "1.5", "-0.25", "'x'", "''", "'a b ; -- c'", "TRUE", "false", "999999999999999999"]
LISTS = ["(1)", "(1,2 , 3)", "( -1,\n2 )", "('x')", "('x' ,'y z')", "(1.5, -2.5)", "('a)b', '(')"]
TERMS = [
    *(f"{NAMES[number % len(NAMES)]} {operator} {constant}" for number, operator in enumerate(["=", "==", "!=", "<>"])
      for constant in CONSTANTS),
    *(f"{NAMES[number % len(NAMES)]}{operator}{constant}" for number, operator in enumerate(["<", "<=", ">", ">="])
      for constant in CONSTANTS),
    *(f"{NAMES[number]} {word} {values}" for number, values in enumerate(LISTS) for word in ("IN", "not in")),
    "a IN(1,2)",
    "a IS NULL",
    "`odd name` is not null",
    "a LIKE 'x%_'",
    "s.t not like ''",
]  # fmt: skip
NOT_PLAIN = [
    "", " ", "a", "a =", "= 1", "a = 1 b = 2", "a = b", "1 = a", "a = NULL", "a + 1 = 2", "lower(a) = 'x'", "a = 1e5",
    "a = .5", "a = 1.", "a = 'it''s'", 'a = "x"', "a = '\\'", "a IN (1, 2.5)", "a IN (1, NULL)", "a IN ()",
    "a BETWEEN 1 AND 2", "a = 1 -- yes", "a = /* no */ 1", "a = 1; b = 2", "a[1] = 2", "a::int = 1", "(a = 1", "a = 1)",
    "a = date '2020-01-01'", "a IS TRUE", "a ILIKE 'x'", "a LIKE 'x' ESCAPE '!'", "a = 1 IS NULL", "NOT", "a = 1 AND",
    "a = 12345678901234567890", "é = 1", "a -1 = 2", "a = 1 - 1", "a <=> 1", "a = X'ab'", "a IN (SELECT 1)",
    "a = 'x' 'y'", "a = 'x' COLLATE y", "(a, b) = 1", "a = 1 AND b", "exists = 1 (2)",
]  # fmt: skip


def same(one: Expression, other: Expression) -> bool:
    """Compare trees; constants with their types."""
    return (
        type(one) is type(other)
        and nodes_alike(one, other)
        and len(one.children) == len(other.children)
        and all(same(*pair) for pair in zip(one.children, other.children, strict=True))
    )


def nodes_alike(one: Expression, other: Expression) -> bool:
    match one, other:
        case nodes.In(_, values), nodes.In(_, others):
            return bool(values.type == others.type and values.equals(others))
        case nodes.Literal(value), nodes.Literal(constant):
            return bool(value.type == constant.type and value.equals(constant))
        case nodes.Comparison(operator), nodes.Comparison(sign):
            return operator == sign
        case nodes.Like(), nodes.Like():
            return (one.pattern, one.ignore_case) == (other.pattern, other.ignore_case)
        case nodes.Column(path), nodes.Column(names):
            return path == names
    return True


@pytest.mark.parametrize("text", TERMS)
def test_terms(text: str) -> None:
    plain = parse_plain(text)
    assert plain is not None
    assert same(plain, sql.parse(text))


def joined(terms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    words = st.sampled_from([" AND ", " or ", "\nOR "])
    return (
        st.tuples(terms, words, terms).map("".join)
        | st.tuples(terms, words, terms, words, terms).map("".join)
        | terms.map("NOT {}".format)
        | terms.map("({})".format)
        | terms.map(" ( {} )\n".format)
    )


@given(st.recursive(st.sampled_from(TERMS), joined, max_leaves=8))
def test_conditions(text: str) -> None:
    plain = parse_plain(text)
    assert plain is not None
    assert same(plain, sql.parse(text))


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_is_more_is_left_to_others(text: str) -> None:
    assert parse_plain(text) is None


@pytest.mark.parametrize("word", sorted(word for word in Tokenizer.KEYWORDS if re.fullmatch(r"[A-Za-z_]\w*", word)))
def test_keywords_are_columns_where_they_are_elsewhere(word: str) -> None:
    for form in ("{} = 1", "{} IN (1, 2)", "{} IS NULL", "{} LIKE 'x'", "NOT {} > 1.5", "a.{} = 1", "b = 1 AND {} = 1"):
        text = form.format(word)
        plain = parse_plain(text)
        if plain is None:
            continue
        try:
            expected = sql.parse(text)
        except InvalidInputError as error:
            raise AssertionError(text) from error
        assert same(plain, expected), text


def test_long_lists_are_one_token() -> None:
    numbers = list(range(-50_000, 50_000))
    texts = ",".join(f"'{x}'" for x in numbers)
    found = parse_plain(f"a IN ({', '.join(map(str, numbers))}) AND b NOT IN ({texts})")
    assert isinstance(found, nodes.And)
    first, second = found.operands
    assert isinstance(first, nodes.In)
    assert first.values.equals(pa.array(numbers))
    assert isinstance(second, nodes.Not)
    assert isinstance(second.operand, nodes.In)
    assert second.operand.values.equals(pa.array(map(str, numbers)))
