"""Tests of L{kubetwist.registry.core.service.ipfamilies}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.registry.core.service.ipfamilies import default_ip_families

BOTH = ("IPv4", "IPv6")


def ip_families(*configured: str, before: dict[str, Any] | None = None, **spec: Any) -> tuple[Any, Any]:
    """Return the policy and the families of a service."""
    obj = {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, **spec}}
    default_ip_families(obj, before or {}, configured or ("IPv4",))
    return obj["spec"].get("ipFamilyPolicy"), obj["spec"].get("ipFamilies")


class FamilyTests(SynchronousTestCase):
    """Tests of L{default_ip_families}."""

    def refused(self, *configured: str, **spec: Any) -> list[str]:
        """Return the fields with errors."""
        error = self.assertRaises(APIStatusError, ip_families, *configured, **spec)
        self.assertEqual(error.code, 422)
        assert error.details is not None
        return [cause["field"] for cause in error.details["causes"]]

    def test_defaults(self) -> None:
        """The default is the first configured family; dual-stack policies have two if they are configured."""
        self.assertEqual(ip_families(*BOTH), ("SingleStack", ["IPv4"]))
        preferred = "PreferDualStack"
        self.assertEqual(ip_families("IPv6", "IPv4", ipFamilyPolicy=preferred), (preferred, ["IPv6", "IPv4"]))
        self.assertEqual(ip_families("IPv4", ipFamilyPolicy=preferred), (preferred, ["IPv4"]))

    def test_external(self) -> None:
        """An ExternalName service has no families."""
        self.assertEqual(ip_families(type="ExternalName"), (None, None))

    def test_without_selector(self) -> None:
        """A headless service without a selector can have both families in any cluster."""
        found = ip_families("IPv4", clusterIP="None", clusterIPs=["None"], selector=None)
        self.assertEqual(found, ("RequireDualStack", ["IPv4", "IPv6"]))

    def test_addresses(self) -> None:
        """The families of a service are those of its addresses; unconfigured ones are rejected."""
        self.assertEqual(ip_families(*BOTH, clusterIPs=["fd00::1"]), ("SingleStack", ["IPv6"]))
        self.assertEqual(self.refused("IPv4", clusterIPs=["fd00::1"]), ["spec.clusterIPs[0]"])

    def test_not_configured(self) -> None:
        """Unconfigured families are rejected."""
        self.assertEqual(self.refused("IPv4", ipFamilyPolicy="RequireDualStack"), ["spec.ipFamilyPolicy"])
        self.assertEqual(self.refused("IPv4", ipFamilies=["IPv6"]), ["spec.ipFamilies[0]"])

    def test_too_many(self) -> None:
        """Two families or addresses require a dual-stack policy."""
        found = self.refused(*BOTH, ipFamilyPolicy="SingleStack", ipFamilies=["IPv4", "IPv6"])
        self.assertEqual(found, ["spec.ipFamilyPolicy"])

    def test_released(self) -> None:
        """The policy SingleStack removes the second family, which stays otherwise."""
        before = {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}
        found = ip_families(*BOTH, before=before, ipFamilyPolicy="SingleStack", ipFamilies=["IPv4", "IPv6"])
        self.assertEqual(found, ("SingleStack", ["IPv4"]))
        wrong = self.refused(*BOTH, before=before, ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4"])
        self.assertEqual(wrong, ["spec.ipFamilyPolicy"])
