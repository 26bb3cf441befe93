"""Tests for L{DenyServiceExternalIPs}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.denyserviceexternalips import DenyServiceExternalIPs
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import PluginTestCase, write


class ExternalIPTests(PluginTestCase):
    """Tests for L{DenyServiceExternalIPs}."""

    def test_cve_2020_8554(self) -> None:
        """New external IPs are rejected; existing ones can be kept or removed."""
        plugin = DenyServiceExternalIPs()
        verifyObject(IValidatingAdmission, plugin)

        def service(*addresses: str) -> JSONObject:
            return {"metadata": {"name": "s"}, "spec": {"externalIPs": list(addresses)} if addresses else {}}

        message = self.error_text(plugin, write(service("1.2.3.4"), "services"))
        self.assertEqual(message, "Use of external IPs is denied by admission control")
        self.validate(plugin, write(service(), "services"))
        old = service("1.2.3.4", "1.2.3.5")
        self.validate(plugin, write(service("1.2.3.5"), "services", "UPDATE", old=old))
        self.validate(plugin, write(service(), "services", "UPDATE", old=old))
        self.assertEqual(self.rejection(plugin, write(service("1.2.3.6"), "services", "UPDATE", old=old)).code, 403)
