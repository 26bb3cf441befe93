"""Tests for L{kubetwist.registry.core.service.ipfamilies}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.registry.core.service.ipfamilies import default_ip_families

BOTH = ("IPv4", "IPv6")


def settled(*configured: str, before: dict[str, Any] | None = None, **spec: Any) -> tuple[Any, Any]:
    """Policy and families of a service."""
    obj = {"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, **spec}}
    default_ip_families(obj, before or {}, configured or ("IPv4",))
    return obj["spec"].get("ipFamilyPolicy"), obj["spec"].get("ipFamilies")


class FamilyTests(SynchronousTestCase):
    """Tests for L{default_ip_families}."""

    def refused(self, *configured: str, **spec: Any) -> list[str]:
        """The fields for which a service is refused."""
        error = self.assertRaises(APIStatusError, settled, *configured, **spec)
        self.assertEqual(error.code, 422)
        assert error.details is not None
        return [cause["field"] for cause in error.details["causes"]]

    def test_defaults(self) -> None:
        """A service has the first family that is configured; the policies for two have two, where there are two."""
        self.assertEqual(settled(*BOTH), ("SingleStack", ["IPv4"]))
        preferred = "PreferDualStack"
        self.assertEqual(settled("IPv6", "IPv4", ipFamilyPolicy=preferred), (preferred, ["IPv6", "IPv4"]))
        self.assertEqual(settled("IPv4", ipFamilyPolicy=preferred), (preferred, ["IPv4"]))

    def test_external(self) -> None:
        """A service that is a name has no families."""
        self.assertEqual(settled(type="ExternalName"), (None, None))

    def test_without_selector(self) -> None:
        """Whoever makes the endpoints of a headless service may use both families, whatever is configured."""
        found = settled("IPv4", clusterIP="None", clusterIPs=["None"], selector=None)
        self.assertEqual(found, ("RequireDualStack", ["IPv4", "IPv6"]))

    def test_addresses(self) -> None:
        """The families of addresses are those of the service; one that is not configured is refused."""
        self.assertEqual(settled(*BOTH, clusterIPs=["fd00::1"]), ("SingleStack", ["IPv6"]))
        self.assertEqual(self.refused("IPv4", clusterIPs=["fd00::1"]), ["spec.clusterIPs[0]"])

    def test_not_configured(self) -> None:
        """Two families cannot be had where there is one, nor a family that there is not."""
        self.assertEqual(self.refused("IPv4", ipFamilyPolicy="RequireDualStack"), ["spec.ipFamilyPolicy"])
        self.assertEqual(self.refused("IPv4", ipFamilies=["IPv6"]), ["spec.ipFamilies[0]"])

    def test_too_many(self) -> None:
        """Two families or addresses need a policy that says so."""
        found = self.refused(*BOTH, ipFamilyPolicy="SingleStack", ipFamilies=["IPv4", "IPv6"])
        self.assertEqual(found, ["spec.ipFamilyPolicy"])

    def test_released(self) -> None:
        """The second family goes with the policy alone, and is not let go without it."""
        before = {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}
        found = settled(*BOTH, before=before, ipFamilyPolicy="SingleStack", ipFamilies=["IPv4", "IPv6"])
        self.assertEqual(found, ("SingleStack", ["IPv4"]))
        wrong = self.refused(*BOTH, before=before, ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4"])
        self.assertEqual(wrong, ["spec.ipFamilyPolicy"])
