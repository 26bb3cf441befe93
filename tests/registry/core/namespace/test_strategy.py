"""Tests for L{kubetwist.registry.core.namespace.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests for the defaults of namespaces."""

    def test_namespace_label(self) -> None:
        """A namespace can be selected by its name."""
        self.assertEqual(defaulted("", "Namespace")["metadata"]["labels"], {"kubernetes.io/metadata.name": "x"})


class CreationTests(SynchronousTestCase):
    """Tests for C{prepare_for_create} of namespaces."""

    def test_namespace_finalizer(self) -> None:
        """A namespace waits for its contents when it is deleted."""
        namespace = defaulted("", "Namespace")
        strategy_for("", "Namespace").prepare_for_create(namespace)
        self.assertEqual(namespace["spec"]["finalizers"], ["kubernetes"])
