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
    """Tests for findings and their words."""

    def test_text(self) -> None:
        """A detail is put in parentheses behind the reason."""
        self.assertEqual(str(CheckResult("host ports", "80")), "host ports (80)")
        self.assertEqual(str(CheckResult("host ports", "")), "host ports")

    def test_names(self) -> None:
        """Names are quoted, in the singular or the plural."""
        self.assertEqual(named(["a"]), 'container "a"')
        self.assertEqual(named(["a", "b"]), 'containers "a", "b"')

    def test_setters(self) -> None:
        """The pod, containers, or both set a field."""
        self.assertEqual(setters(True, []), "pod")
        self.assertEqual(setters(False, ["a"]), 'container "a"')
        self.assertEqual(setters(True, ["a"]), 'pod and container "a"')

    def test_containers_of_all_kinds(self) -> None:
        """Containers of every kind are looked at; one without a security context has an empty one."""
        spec = every_container(securityContext={"privileged": True})["spec"]
        spec["containers"].append({"name": "plain"})
        self.assertEqual(sorted(bad_containers(spec, lambda context: context.get("privileged"))), ["c", "e", "i"])
        self.assertEqual(bad_containers(spec, lambda context: not context), ["plain"])

    def test_systems(self) -> None:
        """A pod is for Windows, or in a user namespace, only if it says so itself."""
        self.assertTrue(is_windows({"os": {"name": "windows"}}))
        self.assertFalse(is_windows({"os": {"name": "linux"}}) or is_windows({}))
        self.assertTrue(in_user_namespace({"hostUsers": False}))
        self.assertFalse(in_user_namespace({}) or in_user_namespace({"hostUsers": None}))
