"""Tests for L{kubetwist.registry.core.namespace.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.namespace.validation import validate_namespace, validate_namespace_finalize
from tests.registry.strategytools import problems


class NamespaceTests(SynchronousTestCase):
    """Namespaces."""

    def test_finalizer_of_namespace(self) -> None:
        """A finalizer of a namespace has a domain, unless it is the server's own."""
        self.assertEqual(problems("", "Namespace", spec={"finalizers": ["example.com/a"]}), [])
        self.assertEqual(
            problems("", "Namespace", spec={"finalizers": ["bare"]}),
            [
                'spec.finalizers: Invalid value: "bare": '
                "name is neither a standard finalizer name nor is it fully qualified"
            ],
        )


class FinalizeTests(SynchronousTestCase):
    """C{namespaces/finalize}."""

    def test_finalizers(self) -> None:
        """It tells which finalizer is wrong; the creation of a namespace does not."""
        obj = {"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes", "bare"]}}
        text = 'Invalid value: "bare": name is neither a standard finalizer name nor is it fully qualified'
        self.assertEqual([str(one) for one in validate_namespace_finalize(obj)], [f"spec.finalizers[1]: {text}"])
        self.assertEqual([str(one) for one in validate_namespace(obj)], [f"spec.finalizers: {text}"])
