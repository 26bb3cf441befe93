"""Tests of L{kubetwist.http.yamlencoding}."""

from __future__ import annotations

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.negotiation import encode_yaml


class EncodeYAMLTests(SynchronousTestCase):
    """L{encode_yaml}."""

    def test_style(self) -> None:
        """Keys are sorted, lists are not indented, lines are folded at 80 columns, and multi-line texts are blocks."""
        document = {
            "b": [{"name": "x"}, "z"],
            "a": "one\n\ntwo",
            "message": 'configmaps "absent" is forbidden: User "bob" cannot get resource "configmaps" in API group ""',
        }
        self.assertEqual(
            encode_yaml(document),
            b"a: |-\n  one\n\n  two\n"
            b"b:\n- name: x\n- z\n"
            b'message: \'configmaps "absent" is forbidden: User "bob" cannot get resource "configmaps"\n'
            b'  in API group ""\'\n',
        )

    def test_quotes(self) -> None:
        """A string that would be parsed as another type is quoted."""
        for text in (
            "",
            "true",
            "y",
            "No",
            "null",
            "~",
            "12",
            "0x1F",
            "1e3",
            "1.5",
            "12:30:45",
            "2024-01-02T03:04:05Z",
        ):
            self.assertEqual(encode_yaml({"a": text}), b'a: "%b"\n' % text.encode())
        for text in ("yellow", "1.2.3", "10Mi", "v1", "a b", "ünïcode"):
            self.assertEqual(encode_yaml({"a": text}), f"a: {text}\n".encode())

    def test_no_aliases(self) -> None:
        """Repeated objects are written without aliases."""
        shared = {"a": 1}
        self.assertEqual(encode_yaml([shared, shared]), b"- a: 1\n- a: 1\n")

    @settings(max_examples=80)
    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**53), 2**53)
            | st.text(st.characters(codec="utf-8"), max_size=12),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text("aAbyn01:-# ", max_size=4), inner, max_size=3)
            ),
            max_leaves=8,
        )
    )
    def test_round_trip(self, document: object) -> None:
        """An encoded document is parsed as the same value."""
        self.assertEqual(yaml.safe_load(encode_yaml(document)), document)
