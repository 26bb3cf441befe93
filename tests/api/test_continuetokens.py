"""Tests for L{kubetwist.api.continuetokens}."""

from __future__ import annotations

import base64
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.continuetokens import ContinueTokenError, decode_continue, encode_continue
from tests.api.strategies import documents


def token(content: Any) -> str:
    """Return a token with any content."""
    return base64.urlsafe_b64encode(orjson.dumps(content)).rstrip(b"=").decode()


class ContinueTokenTests(SynchronousTestCase):
    """Tests for continue tokens."""

    def test_format(self) -> None:
        """A token has the reference's format: the last key without the prefix, and a zero byte."""
        text = encode_continue("default/p3", 5, "default/")
        content = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        self.assertEqual(content, {"v": "meta.k8s.io/v1", "rv": 5, "start": "p3\0"})
        self.assertEqual(orjson.loads(base64.urlsafe_b64decode(encode_continue("a", 0) + "=="))["rv"], -1)

    def test_slash(self) -> None:
        """The key may start with a slash, which is not part of it."""
        text = encode_continue("default/p3", 5, "default/", slash=True)
        content = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        self.assertEqual(content["start"], "/p3\0")
        for form in (text, encode_continue("default/p3", 5, "default/")):
            self.assertEqual(decode_continue(form, "default/"), (5, "default/p3"))

    def test_errors(self) -> None:
        """Invalid tokens are rejected with the reference's messages."""
        for text, problem in {
            "not-a-token": ": invalid character '\\u009e' looking for beginning of value",
            "": ": unexpected end of JSON input",
            "ab$c": ": illegal base64 data at input byte 2",
            "abcde": ": illegal base64 data at input byte 4",
            token({"v": "x"}): ": server does not recognize this encoded version x",
            token({"v": "meta.k8s.io/v1", "start": "a"}): ": incorrect encoded start resourceVersion "
            "(version meta.k8s.io/v1)",
            token({"v": "meta.k8s.io/v1", "rv": 1}): ": encoded start key empty (version meta.k8s.io/v1)",
            token([]): ": json: cannot unmarshal array into Go value of type storage.continueToken",
            token({"rv": "1"}): ": json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        }.items():
            error = self.assertRaises(ContinueTokenError, decode_continue, text)
            self.assertEqual(str(error), "continue key is not valid" + problem)

    def test_traversal(self) -> None:
        """The key of a token cannot be outside of the prefix."""
        for start in ("../secrets/a", "a/../../b", "./a", "a//b", "//a", "a/", "/..", "."):
            text = token({"v": "meta.k8s.io/v1", "rv": 1, "start": start})
            error = self.assertRaises(ContinueTokenError, decode_continue, text, "configmaps/")
            self.assertEqual(str(error), f"continue key is not valid: {start}")

    @given(st.from_regex(r"\A[a-z0-9.-]+(/[a-z0-9-]+)?\Z").filter(lambda key: "." not in key), st.integers(0, 1 << 62))
    def test_round_trip(self, key: str, revision: int) -> None:
        """A token is decoded to its arguments."""
        self.assertEqual(decode_continue(encode_continue("p/" + key, revision, "p/"), "p/"), (revision, "p/" + key))

    @given(st.text() | documents.map(token) | documents.map(lambda value: token({"v": "meta.k8s.io/v1", "rv": value})))
    def test_any_text(self, text: str) -> None:
        """Any text is a token within its prefix, or is rejected with a message."""
        try:
            _, key = decode_continue(text, "prefix/")
        except ContinueTokenError as error:
            self.assertTrue(str(error).startswith("continue key is not valid"))
        else:
            self.assertTrue(key.startswith("prefix/"))
