"""Hypothesis strategies shared by several test modules."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

#: Scalars that JSON can represent and orjson can encode.
scalars: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)))
)
documents: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda values: (
        st.lists(values, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",)), max_size=6), values, max_size=4)
    ),
    max_leaves=12,
)

label_keys = st.from_regex(r"\A([a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?\Z")
label_values = st.from_regex(r"\A([A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?)?\Z")
