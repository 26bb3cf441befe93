"""Tests of L{kubetwist.registry.core.namespace.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests of the defaults of Namespaces."""

    def test_namespace_label(self) -> None:
        """A namespace has a label with its name."""
        self.assertEqual(defaulted("", "Namespace")["metadata"]["labels"], {"kubernetes.io/metadata.name": "x"})


class CreationTests(SynchronousTestCase):
    """Tests of C{prepare_for_create} of Namespaces."""

    def test_namespace_finalizer(self) -> None:
        """A new namespace has the finalizer kubernetes."""
        namespace = defaulted("", "Namespace")
        strategy_for("", "Namespace").prepare_for_create(namespace)
        self.assertEqual(namespace["spec"]["finalizers"], ["kubernetes"])
