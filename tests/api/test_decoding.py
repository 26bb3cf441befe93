"""Tests for L{kubetwist.api.decoding}."""

from __future__ import annotations

import json
import math

import orjson
from hypothesis import given
from hypothesis import strategies as st

from kubetwist.api.decoding import BodyError, decode_json
from tests.api.jsoncase import JSONTestCase


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
