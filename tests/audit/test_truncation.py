"""Tests for L{kubetwist.audit.truncation}."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.audit.event import Payload
from kubetwist.audit.truncation import TruncateConfig, split_batches, truncate
from tests.audit.events import event


class TruncationTests(SynchronousTestCase):
    """Tests of size limits."""

    def test_truncate(self) -> None:
        """Large events lose their objects and get an annotation; if they are still too large they are dropped."""
        limits = TruncateConfig(1000, 10_000)
        large = event(level=2, request=Payload(b'{"a":"%b"}' % (b"x" * 2000)))
        reported = truncate(large, limits)
        assert reported is not None
        made = json.loads(reported.json())
        self.assertNotIn("requestObject", made)
        self.assertEqual(made["annotations"], {"audit.k8s.io/truncated": "true"})
        self.assertIs(truncate(large, None), large)
        for level in (1, 2):
            self.assertIsNone(truncate(event(level=level, annotations={"a": "x" * 2000}), limits))

    def test_split_batches(self) -> None:
        """Batches stay below the size limit, and an event is never split."""
        items = [b"x" * size for size in (40, 40, 40, 200, 10)]
        self.assertEqual([len(part) for part in split_batches(items, TruncateConfig(1, 100))], [2, 1, 1, 1])
        self.assertEqual([len(part) for part in split_batches(items, None)], [5])
        self.assertEqual(list(split_batches([], None)), [])
