"""Tests for L{NamespaceExists}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.namespaceexists import NamespaceExists
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, pod, write


class ExistsTests(PluginTestCase):
    """Tests for L{NamespaceExists}."""

    def test_missing(self) -> None:
        """Writes and deletes in a missing namespace are rejected."""
        plugin = NamespaceExists()
        verifyObject(IValidatingAdmission, plugin)
        for operation in ("CREATE", "UPDATE", "DELETE"):
            error = self.rejection(plugin, write(pod(), "configmaps", operation))
            self.assertEqual((error.code, error.message), (404, 'namespaces "ns" not found'))

    def test_existing(self) -> None:
        """Writes in existing namespaces, of cluster-scoped objects and of namespaces are admitted."""
        context = Context()
        context.add("", "namespaces", {"metadata": {"name": "ns"}})
        plugin = NamespaceExists()
        self.validate(plugin, write(pod(), context=context))
        self.validate(plugin, write({"metadata": {"name": "n"}}, "nodes", namespace=""))
        self.validate(plugin, write({"metadata": {"name": "new"}}, "namespaces"))
