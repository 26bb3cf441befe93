"""Tests of L{kubetwist.metrics.history.samples}."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.history.increments import Observations
from kubetwist.metrics.history.samples import Errors, Sample


def sample(count: int) -> Sample:
    """Return a sample with the same number everywhere."""
    key = ("GET", "pods")
    return Sample(
        {key: Observations(float(count), [count, 0])},
        {key: Errors(count, 0.0, count)},
        {"system": (float(count), 0.0)},
        Observations(float(count), [0, count]),
        Observations(),
        {"memory": float(count)},
        {"revision": float(count)},
        {"ready": float(count)},
    )


class SampleTests(SynchronousTestCase):
    """L{Sample}."""

    def test_encode(self) -> None:
        """A sample is the same after its way through JSON."""
        self.assertEqual(Sample.decode(json.loads(json.dumps(sample(3).encode()))), sample(3))
        self.assertEqual(Sample.decode(json.loads(json.dumps(Sample().encode()))), Sample())

    def test_add(self) -> None:
        """Samples of processes are added, except for what they share, and for the worst readiness."""
        total = Sample()
        total.add(sample(1))
        total.add(sample(2))
        self.assertEqual(total.requests["GET", "pods"], Observations(3.0, [3, 0]))
        self.assertEqual(total.errors["GET", "pods"], Errors(3.0, 0.0, 3.0))
        self.assertEqual(total.levels, {"system": (3.0, 0.0)})
        self.assertEqual(total.delays.counts, [0, 3])
        self.assertEqual((total.sums, total.highest, total.lowest), ({"memory": 3}, {"revision": 2}, {"ready": 1}))

    def test_errors(self) -> None:
        """Errors are counted by kind."""
        errors = Errors()
        for code in (404, 409, 429, 500, 503, 504):
            errors.count(code, 1.0)
        self.assertEqual(errors, Errors(2.0, 1.0, 3.0))
        self.assertEqual(errors.total, 6.0)
