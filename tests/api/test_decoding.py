"""Tests for L{kubetwist.api.decoding}."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api._yamldecoding import decode_yaml as parse_yaml
from kubetwist.api.decoding import MAX_DEPTH, BodyError, Decoded, decode_json, decode_yaml
from tests.api.jsoncase import JSONTestCase

from .strategies import documents


class JSONTests(JSONTestCase):
    """Tests for L{decode_json}."""

    @given(st.binary() | st.text(st.sampled_from('{}[]",:\\u0n1.e- \n')).map(str.encode))
    def test_any_bytes(self, data: bytes) -> None:
        """Bytes are decoded by the rules of JSON, or rejected with a message."""
        try:
            decoded = decode_json(data)
        except BodyError as error:
            self.assertRegex(str(error), "invalid character|unexpected end|exceeded|cannot unmarshal")
            try:
                value = json.loads(data.decode("utf-8", "replace").encode("utf-8"))
            except ValueError:
                return
            self.assertTrue(value != value or isinstance(value, (float, list, dict)) or math.isinf(value))
        else:
            orjson.dumps(decoded.value)
            if not decoded.duplicates:
                text = json.dumps(json.loads(data.decode("utf-8", "replace")))
                self.assertEqual(text.count(":"), json.dumps(decoded.value).count(":"))


#: Texts of which some are JSON, some YAML, and some have different values.
texts = st.lists(
    st.sampled_from(
        [*'{}[]",: \n\t-<', '"a"', '"b":', '"a": ', "null", "true", "1", "-20", "0.5", "1e3", "\\n", "\\u0041"]
    )
).map("".join)
#: The same as an object.
maps = st.lists(st.tuples(st.sampled_from("ab"), texts), max_size=3).map(
    lambda pairs: "{" + ",".join(f'"{key}":{text}' for key, text in pairs) + "}"
)
separators = st.tuples(st.sampled_from([",", ", ", ",\n"]), st.sampled_from([":", ": ", ":\n ", " :", "\n:"]))
indents = st.none() | st.integers(0, 2)


def outcome(decode: Callable[[bytes], Decoded], data: bytes) -> tuple[bytes, list[str], bool] | str:
    """Return the result of a parser, or its message."""
    try:
        decoded = decode(data)
    except BodyError as error:
        return f"{error}, {error.json}"
    return orjson.dumps(decoded.value), decoded.duplicates, decoded.by_map


class JSONAsYAMLTests(SynchronousTestCase):
    """Tests for L{decode_yaml} of documents that are JSON, which L{kubetwist.api._yamldecoding} decodes more slowly."""

    def assert_same(self, text: str) -> None:
        """Check that the parser of YAML returns the same."""
        data = text.encode()
        self.assertEqual(outcome(decode_yaml, data), outcome(parse_yaml, data), text)

    @given(documents, separators, indents, st.booleans())
    def test_documents(self, document: object, separator: tuple[str, str], indent: int | None, escaped: bool) -> None:
        """All encodings of a document in JSON have the same value."""
        self.assert_same(json.dumps(document, separators=separator, indent=indent, ensure_ascii=escaped))

    @given(texts | maps)
    def test_texts(self, text: str) -> None:
        """Documents that are similar to JSON have the same value, or the same error."""
        self.assert_same(text)

    def test_duplicates(self) -> None:
        """Duplicate keys are reported with their lines."""
        self.assert_same('{"a": 1,\n "a": 2}')

    def test_long_keys(self) -> None:
        """Keys have the maximum length of YAML, values do not."""
        for length in (899, 901, 1023, 1025, 5000):
            self.assert_same(json.dumps({"k" * length: 1}))
            self.assert_same(json.dumps({"key": "v" * length}))
            self.assert_same('{"key"' + " " * length + ":1}")

    def test_depth(self) -> None:
        """Documents may nest as deep as in JSON."""
        for depth in (MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1):
            self.assert_same("[" * depth + "]" * depth)

    def test_many_values(self) -> None:
        """Documents have the maximum number of values of YAML."""
        for count in (20_000, 410_000):
            self.assert_same("[" + "1," * count + "1]")
