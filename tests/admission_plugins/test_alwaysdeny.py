"""Tests for L{AlwaysDeny}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.alwaysdeny import AlwaysDeny
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import PluginTestCase, pod, write


class AlwaysDenyTests(PluginTestCase):
    """Tests for L{AlwaysDeny}."""

    def test_deny(self) -> None:
        """AlwaysDeny rejects every request, also DELETE and CONNECT."""
        plugin = AlwaysDeny()
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        for resource, operation in (
            ("pods", "CREATE"),
            ("configmaps", "UPDATE"),
            ("namespaces", "DELETE"),
            ("pods/exec", "CONNECT"),
        ):
            for admitting in (True, False):
                message = self.error_text(plugin, write(pod(), resource, operation), admitting=admitting)
                self.assertEqual(message, "admission control is denying all modifications")
