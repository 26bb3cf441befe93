"""Tests for L{kubetwist.api.jsondecoding}."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from kubetwist.api import jsondecoding as _jsondecoding
from kubetwist.api.decoding import MAX_DEPTH, BodyError, decode_json
from tests.api.jsoncase import JSONTestCase
from tests.api.strategies import documents


class JSONTests(JSONTestCase):
    """Tests for the decoding of JSON as in Go."""

    def test_syntax_errors(self) -> None:
        """Syntax errors have Go's messages."""
        for data, message in {
            b"": "unexpected end of JSON input",
            b"  ": "unexpected end of JSON input",
            b'{"a":1': "unexpected end of JSON input",
            b'{"a"': "unexpected end of JSON input",
            b'{"a': "unexpected end of JSON input",
            b"tru": "unexpected end of JSON input",
            b"-": "unexpected end of JSON input",
            b"1.": "unexpected end of JSON input",
            b"[1e": "unexpected end of JSON input",
            b'"\\u12': "unexpected end of JSON input",
            b'{"a":1,}': "invalid character '}' looking for beginning of object key string",
            b"{'a':1}": "invalid character '\\'' looking for beginning of object key string",
            b"{1:2}": "invalid character '1' looking for beginning of object key string",
            b'{"a" 1}': "invalid character '1' after object key",
            b'{"a":1 "b"': "invalid character '\"' after object key:value pair",
            b'{"a":}': "invalid character '}' looking for beginning of value",
            b"[1,]": "invalid character ']' looking for beginning of value",
            b"[1 2]": "invalid character '2' after array element",
            b"[{} {}]": "invalid character '{' after array element",
            b'[{"a":[1]} "]"]': "invalid character '\"' after array element",
            b"{} x": "invalid character 'x' after top-level value",
            b"{}{}": "invalid character '{' after top-level value",
            b'"\\x"': "invalid character 'x' in string escape code",
            b'"a\nb"': "invalid character '\\n' in string literal",
            b'"a\x00"': "invalid character '\\x00' in string literal",
            b'"\\u12g4"': "invalid character 'g' in \\u hexadecimal character escape",
            b"NaN": "invalid character 'N' looking for beginning of value",
            b'["NaN",NaN]': "invalid character 'N' looking for beginning of value",
            b"-Infinity": "invalid character 'I' in numeric literal",
            b"trux": "invalid character 'x' in literal true (expecting 'e')",
            b"nan": "invalid character 'a' in literal null (expecting 'u')",
            b"[-]": "invalid character ']' in numeric literal",
            b"[1.]": "invalid character ']' after decimal point in numeric literal",
            b"1.x": "invalid character 'x' after decimal point in numeric literal",
            b"[1e+]": "invalid character ']' in exponent of numeric literal",
            b"01": "invalid character '1' after top-level value",
            b"0x10": "invalid character 'x' after top-level value",
            b"+1": "invalid character '+' looking for beginning of value",
            b"\xef\xbb\xbf{}": "invalid character 'ï' looking for beginning of value",
            b"\xff": "invalid character 'ÿ' looking for beginning of value",
            b'["\xff",\xfe]': "invalid character 'þ' looking for beginning of value",
            b'["\xc3\xa9\xff"\xc3\xa9]': "invalid character 'Ã' after array element",
        }.items():
            self.assert_rejected(data, message)

    def test_lenient_text(self) -> None:
        """Invalid UTF-8, and halves of surrogate pairs, are replaced as in Go."""
        self.assertEqual(decode_json(b'{"a":"\xff\xfe"}').value, {"a": "\ufffd\ufffd"})
        self.assertEqual(decode_json(b'{"\\ud83d":"\\ud83d\\ude00\\u0000"}').value, {"\ufffd": "😀\0"})

    def test_numbers(self) -> None:
        """Integers of 64 bits remain integers, larger ones become floats, and infinite ones are rejected."""
        self.assertEqual(decode_json(b"[18446744073709551615,-9223372036854775808,-0]").value, [2**64 - 1, -(2**63), 0])
        self.assertIsInstance(decode_json(b"99999999999999999999").value, float)
        self.assertIsInstance(decode_json(b'["\xff",99999999999999999999]').value[1], float)
        self.assertRaises(BodyError, decode_json, b"1e400")
        self.assertRaises(BodyError, decode_json, b"1" * 5000)

    def test_depth_is_found_in_one_pass(self) -> None:
        """The search for deep nesting ends at the first bracket that is too deep, however many follow."""
        examined: list[str] = []
        structure = _jsondecoding._structure

        def counting_structure(text: str) -> Iterator[str]:
            for brackets in structure(text):
                examined.append(brackets)
                yield brackets

        self.patch(_jsondecoding, "_structure", counting_structure)
        for data, most in ((b"[" * 2_000_000, 1), (b'{"a":' * 400_000, 2 * MAX_DEPTH + 2), (b'["[",' * 400_000, 600)):
            examined.clear()
            self.assert_rejected(data, "exceeded max depth")
            self.assertLessEqual(len(examined), most)
        decode_json(orjson.dumps({"brackets": "[" * 1000, "\\": "]" * 1000, "again": "\ud7ff"}))

    @given(documents, st.booleans())
    def test_round_trip(self, document: Any, spread: bool) -> None:
        """The output of orjson and of the standard library is decoded to the same value, by both parsers."""
        text = json.dumps(document, indent=2) if spread else orjson.dumps(document).decode()
        for decode in (decode_json, _jsondecoding._decode_leniently):
            decoded = decode(text.encode())
            self.assertEqual((decoded.value, decoded.duplicates), (document, []))
