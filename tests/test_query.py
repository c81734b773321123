"""Text queries as mappings and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import InvalidInputError
from lance_format.query import (
    BooleanQuery,
    BoostQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

_FACTORS, _COUNTS = st.floats(0, 1e9), st.integers(0, 2**32 - 1)
_MATCHES = st.builds(
    MatchQuery,
    st.text(max_size=5),
    st.text(max_size=5),
    boost=_FACTORS,
    fuzziness=_COUNTS,
    max_expansions=_COUNTS,
    operator=st.sampled_from(FullTextOperator),
    prefix_length=_COUNTS,
)
_SIMPLE = (
    _MATCHES
    | st.builds(PhraseQuery, st.text(max_size=5), st.text(max_size=5), slop=_COUNTS)
    | st.builds(
        lambda text, columns, operator: MultiMatchQuery(
            text, list(columns), boosts=list(columns.values()), operator=operator
        ),
        st.text(max_size=5),
        st.dictionaries(st.text(max_size=5), _FACTORS, min_size=1, max_size=3),
        st.sampled_from(FullTextOperator),
    )
)
_QUERIES = st.recursive(
    _SIMPLE,
    lambda parts: (
        st.builds(BoostQuery, parts, parts, negative_boost=_FACTORS)
        | st.builds(BooleanQuery, st.lists(st.tuples(st.sampled_from([Occur.MUST, Occur.SHOULD]), parts), min_size=1))
    ),
    max_leaves=5,
)


@given(_QUERIES)
def test_mappings_become_the_same_query(query: FullTextQuery) -> None:
    described = query.to_dict()
    assert FullTextQuery.from_dict(json.loads(json.dumps(described))).to_dict() == described


def test_numbers_have_defaults() -> None:
    query = FullTextQuery.from_dict({"match": {"column": "note", "terms": "owl"}})
    assert query.to_dict() == MatchQuery("owl", "note").to_dict()


@pytest.mark.parametrize(
    "described",
    [
        {},
        {"match": "owl"},
        {"match": {"terms": "owl"}},
        {"match": {"terms": 5, "column": "note"}},
        {"match": {"terms": "owl", "column": "note", "operator": "XOR"}},
        {"match": {"terms": "owl", "column": "note", "operator": 5}},
        {"match": {"terms": "owl", "column": "note", "fuzziness": "auto"}},
        {"match": {"terms": "owl", "column": "note", "no": 1}},
        {"match": {"terms": "owl", "column": "note"}, "phrase": {}},
        {"phrase": {"terms": "owl", "column": "note", "slop": -1}},
        {"boost": {"positive": {"match": {"terms": "owl", "column": "note"}}}},
        {"boost": {"positive": [], "negative": []}},
        {"multi_match": {"match_queries": []}},
        {"multi_match": {"match_queries": 5}},
        {"multi_match": {"match_queries": [{"terms": "a", "column": "x"}, {"terms": "b", "column": "y"}]}},
        {"boolean": {"must_not": [{"match": {"terms": "owl", "column": "note"}}]}},
        {"boolean": {"perhaps": []}},
        {"boolean": {"must": [5]}},
        {"other": {}},
        5,
    ],
    ids=str,
)
def test_other_mappings_are_refused(described: Any) -> None:
    with pytest.raises(InvalidInputError):
        FullTextQuery.from_dict(described)
