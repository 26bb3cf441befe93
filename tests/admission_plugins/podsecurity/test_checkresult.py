"""Tests for L{kubetwist.admission_plugins.podsecurity.checkresult}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.podsecurity.checkresult import (
    CheckResult,
    bad_containers,
    in_user_namespace,
    is_windows,
    named,
    setters,
)
from tests.admission_plugins.fakes import every_container


class FindingTests(SynchronousTestCase):
    """Tests for L{CheckResult} and the phrases of messages."""

    def test_text(self) -> None:
        """The text is the reason with the detail in parentheses."""
        self.assertEqual(str(CheckResult("host ports", "80")), "host ports (80)")
        self.assertEqual(str(CheckResult("host ports", "")), "host ports")

    def test_names(self) -> None:
        """Names are quoted, in the singular or the plural."""
        self.assertEqual(named(["a"]), 'container "a"')
        self.assertEqual(named(["a", "b"]), 'containers "a", "b"')

    def test_setters(self) -> None:
        """The phrase names the pod, the containers, or both."""
        self.assertEqual(setters(True, []), "pod")
        self.assertEqual(setters(False, ["a"]), 'container "a"')
        self.assertEqual(setters(True, ["a"]), 'pod and container "a"')

    def test_containers_of_all_kinds(self) -> None:
        """Containers of every kind are checked; a missing security context is empty."""
        spec = every_container(securityContext={"privileged": True})["spec"]
        spec["containers"].append({"name": "plain"})
        self.assertEqual(sorted(bad_containers(spec, lambda context: context.get("privileged"))), ["c", "e", "i"])
        self.assertEqual(bad_containers(spec, lambda context: not context), ["plain"])

    def test_systems(self) -> None:
        """A pod is for Windows, or in a user namespace, only if its spec sets that."""
        self.assertTrue(is_windows({"os": {"name": "windows"}}))
        self.assertFalse(is_windows({"os": {"name": "linux"}}) or is_windows({}))
        self.assertTrue(in_user_namespace({"hostUsers": False}))
        self.assertFalse(in_user_namespace({}) or in_user_namespace({"hostUsers": None}))
