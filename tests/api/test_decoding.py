"""Tests for the JSON half of L{kubetwist.api.decoding}."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import jsondecoding as _jsondecoding
from kubetwist.api.decoding import MAX_DEPTH, BodyError, decode_json

from .strategies import documents


def nested(depth: int, within: bytes = b"") -> bytes:
    """Lists within lists, around something."""
    return b"[" * depth + within + b"]" * depth


class JSONTests(SynchronousTestCase):
    """JSON, as Go reads it."""

    def assert_says(self, data: bytes, message: str) -> None:
        """Check that a document is refused with a text."""
        error = self.assertRaises(BodyError, decode_json, data)
        self.assertEqual(str(error), message)
        self.assertEqual(error.as_body_of_object(), f"couldn't get version/kind; json parse error: {message}")

    def test_syntax_errors(self) -> None:
        """Mistakes are told of in Go's words."""
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
            self.assert_says(data, message)

    def test_lenient_text(self) -> None:
        """What is no UTF-8, and half of a surrogate pair, is replaced as Go does it."""
        self.assertEqual(decode_json(b'{"a":"\xff\xfe"}').value, {"a": "\ufffd\ufffd"})
        self.assertEqual(decode_json(b'{"\\ud83d":"\\ud83d\\ude00\\u0000"}').value, {"\ufffd": "😀\0"})

    def test_numbers(self) -> None:
        """Whole numbers of 64 bits stay whole, larger ones do not, and what is infinite is refused."""
        self.assertEqual(decode_json(b"[18446744073709551615,-9223372036854775808,-0]").value, [2**64 - 1, -(2**63), 0])
        self.assertIsInstance(decode_json(b"99999999999999999999").value, float)
        self.assertIsInstance(decode_json(b'["\xff",99999999999999999999]').value[1], float)
        self.assertRaises(BodyError, decode_json, b"1e400")
        self.assertRaises(BodyError, decode_json, b"1" * 5000)

    def test_duplicate_keys(self) -> None:
        """The last of several keys wins, objects merge, and each place is told of once, where the key comes again."""
        for data, value, duplicates in (
            (b'{"a":1,"a":2}', {"a": 2}, ["a"]),
            (b'{"a":1,"b":3,"a":2,"a":4}', {"a": 4, "b": 3}, ["a"]),
            (b'{"d":{"a":1,"a":2},"d":{"b":3}}', {"d": {"a": 2, "b": 3}}, ["d.a", "d"]),
            (
                b'{"k":1,"k":2,"d":{"a":1,"a":2},"l":[],"l":[{"x":1,"x":2}]}',
                {"k": 2, "d": {"a": 2}, "l": [{"x": 2}]},
                ["k", "d.a", "l", "l[0].x"],
            ),
            (b'{"d":{"a":{"x":1}},"d":{"a":{"y":2}}}', {"d": {"a": {"x": 1, "y": 2}}}, ["d"]),
            (b'{"l":[{"a":1},{"a":1,"a":2}]}', {"l": [{"a": 1}, {"a": 2}]}, ["l[1].a"]),
            (b'{"l":[1],"l":[2]}', {"l": [2]}, ["l"]),
            (b'{"a" :1,"b":2,"a"\t:3}', {"a": 3, "b": 2}, ["a"]),
            (b'{"a":"\\u0022:","b":1,"b":2}', {"a": '":', "b": 2}, ["b"]),
            (b'{"a":"\\u003a","b":1,"b":2}', {"a": ":", "b": 2}, ["b"]),
            (b'{"a":"\\u003A","b":1,"b":2}', {"a": ":", "b": 2}, ["b"]),
            (b'{"a":1,"\\u0061":2}', {"a": 2}, ["a"]),
        ):
            decoded = decode_json(data)
            self.assertEqual(decoded.value, value)
            self.assertEqual(decoded.duplicates, [f'duplicate field "{path}"' for path in duplicates])
            self.assertEqual(orjson.loads(orjson.dumps(decoded.value)), value)

    def test_keys_that_only_look_duplicate(self) -> None:
        """Texts full of quotes and colons are no keys."""
        for text in ('":', '" :', '"a":1,"a":2', '\\":', '"\n:', "\u0022:"):
            document = {"a": text, text: [text]}
            for dumped in (json.dumps(document), json.dumps(document, indent=1, separators=(" , ", " : "))):
                decoded = decode_json(dumped.encode())
                self.assertEqual((decoded.value, decoded.duplicates), (document, []))

    def test_depth(self) -> None:
        """Documents nest as deep as they can be encoded again with room to spare, and no deeper."""
        self.assertEqual(decode_json(nested(MAX_DEPTH)).duplicates, [])
        decode_json(nested(MAX_DEPTH, b'"\xff"'))
        decode_json(nested(MAX_DEPTH - 1, b'{"a":1,"a":2}'))
        for depth in (MAX_DEPTH + 1, 1000, 1025, 100_000):
            for within in (b"", b'"\xff"', b'{"a":1,"a":2}'):
                self.assert_says(nested(depth, within), "exceeded max depth")
        self.assert_says(b'{"a":' * 100_000, "exceeded max depth")

    def test_depth_is_found_in_one_pass(self) -> None:
        """The search for brackets that nest too deep ends at the first that does, however many follow."""
        looked: list[str] = []
        structure = _jsondecoding._structure

        def watched(text: str) -> Iterator[str]:
            for found in structure(text):
                looked.append(found)
                yield found

        self.patch(_jsondecoding, "_structure", watched)
        for data, most in ((b"[" * 2_000_000, 1), (b'{"a":' * 400_000, 2 * MAX_DEPTH + 2), (b'["[",' * 400_000, 600)):
            looked.clear()
            self.assert_says(data, "exceeded max depth")
            self.assertLessEqual(len(looked), most)
        decode_json(orjson.dumps({"brackets": "[" * 1000, "\\": "]" * 1000, "again": "\ud7ff"}))

    @given(documents, st.booleans())
    def test_round_trip(self, document: Any, spread: bool) -> None:
        """What orjson or the standard library wrote is read as it was, without duplicates, by both readers."""
        text = json.dumps(document, indent=2) if spread else orjson.dumps(document).decode()
        for decode in (decode_json, _jsondecoding._decode_leniently):
            decoded = decode(text.encode())
            self.assertEqual((decoded.value, decoded.duplicates), (document, []))

    @given(st.binary() | st.text(st.sampled_from('{}[]",:\\u0n1.e- \n')).map(str.encode))
    def test_any_bytes(self, data: bytes) -> None:
        """Bytes are either read, by the rules of JSON, or refused with a text."""
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
