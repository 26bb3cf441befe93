"""Tests for L{kubetwist.storage.etcd._descriptors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.etcd._descriptors import (
    decode,
    encode,
)
from tests.storage.etcd.answers import text


class TableTests(SynchronousTestCase):
    """Tests for L{encode} and L{decode}: txaioetcd's dictionaries as protobuf."""

    def test_there_and_back(self) -> None:
        """Encoding and decoding returns the message without fields that have default values."""
        for name, message in (
            ("LeaseGrantRequest", {"TTL": "5", "ID": "-3"}),
            ("LeaseTimeToLiveResponse", {"ID": "7", "TTL": "-1", "keys": [text(b"a"), ""]}),
            (
                "RangeRequest",
                {"key": text(b"\xff"), "sort_order": "DESCEND", "sort_target": "VALUE", "count_only": True},
            ),
            ("StatusResponse", {"version": "3.6.0", "dbSize": "12", "leader": str(2**64 - 1), "isLearner": True}),
            ("Compare", {"target": "MOD", "mod_revision": "0", "key": text(b"k")}),
            ("TxnResponse", {"responses": [{"response_put": {}}, {"response_range": {"count": "1"}}]}),
        ):
            self.assertEqual(decode(name, encode(name, message)), message)
        self.assertEqual(encode("RangeRequest", {"key": "", "limit": 0, "keys_only": False, "range_end": None}), b"")

    def test_nonsense(self) -> None:
        """Unknown fields or invalid values in a request are an error; unknown fields in a response are ignored."""
        for message in ({"nothing": 1}, {"sort_order": "UP"}, {"key": "*"}, {"limit": "many"}):
            with self.assertRaises(ValueError):
                encode("RangeRequest", message)
        self.assertEqual(decode("RangeRequest", b"\x28\x63"), {"sort_order": "99"})
