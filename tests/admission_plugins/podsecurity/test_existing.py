"""Tests for L{kubetwist.admission_plugins.podsecurity.existing}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import ensureDeferred
from twisted.internet.task import Clock

from kubetwist.admission.chain import AdmissionChain
from kubetwist.admission_plugins.podsecurity.existing import NAMESPACE_MAX_PODS_TO_CHECK
from tests.admission_plugins.podsecurity.plugintools import NamespaceTestCase


class Turns(Clock):
    """
    A clock that counts yields to the reactor.

    @ivar turns: Number of yields.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        """@param seconds: The duration of each yield, in seconds."""
        super().__init__()
        self.turns = 0
        self._seconds = seconds

    def callLater(self, delay: float, *arguments: Any, **named: Any) -> Any:
        """Count calls without a delay."""
        if not delay:
            self.turns += 1
            self.rightNow += self._seconds
        return super().callLater(delay, *arguments, **named)


class ExistingPodTests(NamespaceTestCase):
    """Tests for L{kubetwist.admission_plugins.podsecurity.existing}."""

    def test_existing_pods(self) -> None:
        """A stricter level warns of existing pods that violate it, grouped by violations."""
        self.add("b", hostNetwork=True)
        self.add("a", hostNetwork=True)
        self.add("c", hostNetwork=True)
        self.add("y", hostPID=True, hostNetwork=True)
        self.add("z", hostPID=True, volumes=[{"name": "v", "hostPath": {}}])
        self.add("x", hostPID=True, volumes=[{"name": "v", "hostPath": {}}])
        self.add("fine")
        made = self.namespace({}, enforce="baseline")
        self.validate(self.plugin(), made)
        self.assertEqual(
            made.warnings,
            [
                'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
                "a (and 3 other pods): host namespaces",
                "x (and 1 other pod): host namespaces, hostPath volumes",
            ],
        )

    def test_many_pods(self) -> None:
        """A limited number of pods is checked, one of each controller first, with yields to the reactor."""
        for number in range(NAMESPACE_MAX_PODS_TO_CHECK + 20):
            self.add(f"p{number:04}", controller="same")
        self.add("zz", controller="other", hostNetwork=True)
        self.add("exempt", hostNetwork=True, runtimeClassName="vm")
        plugin = self.plugin({"exemptions": {"runtimeClasses": ["vm"]}})
        made = self.namespace({}, enforce="baseline")
        clock = self.context.reactor = Turns()
        done = ensureDeferred(AdmissionChain([plugin], clock).validate(made.attributes))
        clock.advance(0)
        self.successResultOf(done)
        self.assertGreaterEqual(clock.turns, 2 * (NAMESPACE_MAX_PODS_TO_CHECK // 50 - 1))
        self.assertEqual(
            made.warnings,
            [
                f"new PodSecurity enforce level only checked against the first"
                f" {NAMESPACE_MAX_PODS_TO_CHECK} of {NAMESPACE_MAX_PODS_TO_CHECK + 21} "
                "existing pods",
                'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
                "zz: host namespaces",
            ],
        )

    def test_timeout(self) -> None:
        """The check ends after a second."""
        for number in range(200):
            self.add(f"p{number:03}")
        made = self.namespace({}, enforce="baseline")
        clock = self.context.reactor = Turns(0.3)
        done = ensureDeferred(AdmissionChain([self.plugin()], clock).validate(made.attributes))
        clock.advance(0)
        self.successResultOf(done)
        self.assertEqual(
            made.warnings, ["new PodSecurity enforce level only checked against the first 100 of 200 existing pods"]
        )
