"""Tests for L{kubetwist.api.jsonpieces}."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonpieces import BadJSON, check_object, members
from kubetwist.api.resource import JSONObject


class PieceTests(SynchronousTestCase):
    """Tests for L{kubetwist.api.jsonpieces}."""

    @given(
        st.dictionaries(
            st.text(max_size=4),
            st.recursive(
                st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            ),
            max_size=4,
        ),
        st.sampled_from([None, 1, "\t"]),
    )
    def test_members(self, content: JSONObject, indent: Any) -> None:
        """An object is split into the members that a decoder finds in it, with any formatting."""
        text = json.dumps(content, indent=indent).encode()
        check_object(text)
        self.assertEqual({name: json.loads(text[start:end]) for name, start, end in members(text)}, content)

    @given(st.text(alphabet='{}[]:,"\\a1 \n', max_size=30))
    def test_no_members(self, text: str) -> None:
        """A text that is not a JSON object is rejected."""
        try:
            good = isinstance(json.loads(text), dict)
        except ValueError:
            good = False
        try:
            check_object(text.encode())
            self.assertTrue(good, text)
        except BadJSON:
            self.assertFalse(good, text)
