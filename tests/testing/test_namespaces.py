"""Tests for L{kubetwist.testing._namespaces}; F{tests/e2e/test_baseline.py} tests the fixture."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.names import validate_dns1123_label, validate_label_value
from kubetwist.testing._namespaces import created_paths, label_value, namespace_prefix


class NameTests(SynchronousTestCase):
    """Names of namespaces and values of labels from names of tests."""

    @given(st.text())
    @example("test_" + "x" * 200)
    @example("[---]")
    @example("x" * 55 + "---y")
    def test_valid(self, name: str) -> None:
        """Each name of a test is the beginning of a valid name, and a valid value of a label."""
        self.assertEqual(list(validate_dns1123_label(namespace_prefix(name) + "abcde")), [])
        self.assertEqual(list(validate_label_value(label_value(name))), [])

    def test_readable(self) -> None:
        """The name of a namespace begins with the name of its test."""
        self.assertEqual(namespace_prefix("test_Scale[1.36-two]"), "test-scale-1-36-two-")
        self.assertEqual(label_value("test_Scale[1.36-two]"), "test_Scale-1.36-two")


class CreatedTests(SynchronousTestCase):
    """What a test waits for."""

    def test_controllers(self) -> None:
        """A test waits for what the enabled controllers create."""
        both = ["serviceaccounts/default", "configmaps/kube-root-ca.crt"]
        for arguments, paths in (
            ([], both),
            (["--controllers=*", "--kubernetes-version=1.30"], both),
            (["--controllers="], []),
            (["--controllers=serviceaccount"], both[:1]),
            (["--controllers=*,-serviceaccount-controller"], both[1:]),
        ):
            self.assertEqual(created_paths(arguments), paths, arguments)
