"""Tests of L{kubetwist.registry.core.namespace.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.namespace.validation import validate_namespace, validate_namespace_finalize
from tests.registry.strategytools import problems


class NamespaceTests(SynchronousTestCase):
    """Tests of Namespaces."""

    def test_finalizer_of_namespace(self) -> None:
        """A finalizer of a namespace has a domain, except for kubernetes."""
        self.assertEqual(problems("", "Namespace", spec={"finalizers": ["example.com/a"]}), [])
        self.assertEqual(
            problems("", "Namespace", spec={"finalizers": ["bare"]}),
            [
                'spec.finalizers: Invalid value: "bare": '
                "name is neither a standard finalizer name nor is it fully qualified"
            ],
        )


class FinalizeTests(SynchronousTestCase):
    """Tests of C{namespaces/finalize}."""

    def test_finalizers(self) -> None:
        """Errors of finalize have the index of the finalizer, unlike those of creation."""
        obj = {"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes", "bare"]}}
        text = 'Invalid value: "bare": name is neither a standard finalizer name nor is it fully qualified'
        self.assertEqual([str(one) for one in validate_namespace_finalize(obj)], [f"spec.finalizers[1]: {text}"])
        self.assertEqual([str(one) for one in validate_namespace(obj)], [f"spec.finalizers: {text}"])
