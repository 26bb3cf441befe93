"""Tests for L{kubetwist.server.workers.description}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.workers.description import VARIABLE, FrontDescription, take_description


class DescriptionTests(SynchronousTestCase):
    """Tests for L{take_description}."""

    def test_front(self) -> None:
        """A front finds its description once, so that programs that it starts do not inherit it."""
        description = FrontDescription(2, 3, 6443, "/var/lib/kubetwist")
        environment = {VARIABLE: description.encode()}
        self.assertEqual(take_description(environment), description)
        self.assertEqual(environment, {})

    def test_other_process(self) -> None:
        """Another process has no description."""
        self.assertIsNone(take_description({}))
