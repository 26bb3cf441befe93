"""Tests for L{kubetwist.schema.bytefields}."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.cbor import base64_later, decode_cbor, encode_cbor
from kubetwist.schema.protobuf.wire import WireError
from tests.schema.release import definitions, kinds_in_protobuf, values

CORE = "io.k8s.api.core.v1"


class ByteFieldTests(SynchronousTestCase):
    """L{kubetwist.schema.bytefields.ByteFields}."""

    def replace(self, definition: str, value: Any) -> Any:
        """Replace the fields of bytes in a value."""
        return definitions().byte_fields.replace(definition, value, lambda content: content)

    @given(st.dictionaries(st.text(), st.binary()))
    def test_maps(self, data: dict[str, bytes]) -> None:
        """The values of a map of bytes are replaced, other fields are not."""
        encoded = {name: b64encode(value).decode() for name, value in data.items()}
        found = self.replace(f"{CORE}.Secret", {"data": encoded, "stringData": {**encoded}, "type": "Opaque"})
        self.assertEqual(found, {"data": data, "stringData": encoded, "type": "Opaque"})

    @given(st.sampled_from(kinds_in_protobuf()), st.data())
    @settings(max_examples=200, deadline=None)
    def test_round_trip(self, gvk: Any, data: st.DataObject) -> None:
        """An object equals itself after it was encoded in CBOR, with its fields of bytes, and decoded."""
        known = definitions().type_for(gvk)
        obj = known.decode(data.draw(values(known.root)), [])
        again = self.cbor_of(known.definition, obj)
        self.assertEqual(again, obj)
        try:
            message = definitions().protobuf.encode(known.definition, obj)
        except WireError:
            return
        decoded = definitions().protobuf.decode(known.definition, message)
        self.assertEqual(self.cbor_of(known.definition, decoded), decoded)

    def cbor_of(self, definition: str, obj: Any) -> Any:
        """Return an object after it was encoded in CBOR, and decoded."""
        copy = orjson.loads(orjson.dumps(obj))
        return decode_cbor(encode_cbor(definitions().byte_fields.replace(definition, copy, base64_later))).value

    def test_nested(self) -> None:
        """Fields within lists and references are replaced."""
        webhook = {"name": "w", "clientConfig": {"caBundle": "YQ==", "url": "YQ=="}}
        group = "io.k8s.api.admissionregistration.v1"
        found = self.replace(f"{group}.ValidatingWebhookConfiguration", {"webhooks": [webhook, {"name": "x"}]})
        self.assertEqual(found["webhooks"][0]["clientConfig"], {"caBundle": b"a", "url": "YQ=="})

    def test_recursive(self) -> None:
        """Types that refer to themselves are searched, too."""
        group = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
        config = {"clientConfig": {"caBundle": "YQ=="}}
        spec = {"conversion": {"webhook": config}, "versions": [{"schema": {"openAPIV3Schema": {"not": {}}}}]}
        found = self.replace(f"{group}.CustomResourceDefinition", {"spec": spec})
        self.assertEqual(found["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"], b"a")

    def test_unusual(self) -> None:
        """Values that do not fit the type are kept."""
        for data in (None, "YQ==", ["YQ=="], {"k": None}, {"k": 1}, {"k": "*"}):
            self.assertEqual(self.replace(f"{CORE}.Secret", {"data": data}), {"data": data})

    def test_no_bytes(self) -> None:
        """Types without such fields are not changed."""
        pod = {"spec": {"nodeName": "YQ==", "containers": [{"name": "YQ=="}]}}
        self.assertEqual(self.replace(f"{CORE}.Pod", {**pod}), pod)
