"""Tests of L{kubetwist.registry.generic.storedcbor}."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.cbor import decode_cbor
from kubetwist.api.documents import CBOR_MAGIC
from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.generic.storedcbor import StoredCBOR

GVK = GroupVersionKind("example.com", "v1", "Kite")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


class StoredCBORTests(SynchronousTestCase):
    """L{StoredCBOR}."""

    @given(VALUES)
    def test_any(self, value: object) -> None:
        """A stored object has the tag of CBOR, its kind and version, and is read as it was."""
        stored = StoredCBOR().encode(GVK, orjson.dumps({"metadata": {"name": "a"}, "spec": value}))
        self.assertTrue(stored.startswith(CBOR_MAGIC))
        expected = {"kind": "Kite", "apiVersion": "example.com/v1", "metadata": {"name": "a"}, "spec": value}
        self.assertEqual(decode_cbor(stored).value, expected)
