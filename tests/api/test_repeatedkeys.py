"""Tests for L{kubetwist.api.repeatedkeys}."""

from __future__ import annotations

import json

import orjson

from kubetwist.api.decoding import decode_json
from tests.api.jsoncase import JSONTestCase


class DuplicateTests(JSONTestCase):
    """Tests for documents with duplicate keys."""

    def test_duplicate_keys(self) -> None:
        """The last duplicate wins, objects are merged, and each position is reported once."""
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
        """Strings with quotes and colons are not keys."""
        for text in ('":', '" :', '"a":1,"a":2', '\\":', '"\n:', "\u0022:"):
            document = {"a": text, text: [text]}
            for dumped in (json.dumps(document), json.dumps(document, indent=1, separators=(" , ", " : "))):
                decoded = decode_json(dumped.encode())
                self.assertEqual((decoded.value, decoded.duplicates), (document, []))
