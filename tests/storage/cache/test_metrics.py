"""Tests for L{kubetwist.storage.cache.metrics}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.cache.metrics import CacheMetrics, KeptEncodings


class CacheTallyTests(SynchronousTestCase):
    """Tests for L{CacheMetrics}."""

    def test_asked(self) -> None:
        """Requests to the storage are timed by operation; failures are also counted."""
        metrics = CacheMetrics()
        metrics.observe_backend_request("create", 0.25)
        metrics.observe_backend_request("create", 0.5, failed=True)
        metrics.observe_backend_request("list", 1.0)
        result = {name: (one.count, one.sum) for name, one in metrics.requests.items()}
        self.assertEqual(result, {"create": (2, 0.75), "list": (1, 1.0)})
        self.assertEqual(metrics.failures, {"create": 1})


class KeptEncodingsTests(SynchronousTestCase):
    """Tests for L{KeptEncodings}."""

    def test_counted(self) -> None:
        """Forms are counted from their creation until they are dropped."""
        metrics = CacheMetrics()
        first, second = KeptEncodings(metrics), KeptEncodings(metrics)
        first["protobuf"] = b"12345"
        first["cbor"] = b"123"
        second["protobuf"] = b"1"
        self.assertEqual((metrics.encodings, metrics.encoded_bytes), (3, 9))
        first["cbor"] = b"1"
        self.assertEqual((first["cbor"], metrics.encodings, metrics.encoded_bytes), (b"1", 3, 7))
        del first
        self.assertEqual((metrics.encodings, metrics.encoded_bytes), (1, 1))
        del second
        self.assertEqual((metrics.encodings, metrics.encoded_bytes), (0, 0))
