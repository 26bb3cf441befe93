"""Tests for L{AlwaysAdmit}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.alwaysadmit import AlwaysAdmit
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import PluginTestCase, pod, write


class AlwaysAdmitTests(PluginTestCase):
    """Tests for L{AlwaysAdmit}."""

    def test_admit(self) -> None:
        """AlwaysAdmit admits every request and is not called."""
        plugin = AlwaysAdmit()
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        request = write(pod())
        self.admit_twice(plugin, request)
        self.validate(plugin, request)
        self.assertEqual(request.attributes.object, pod())
