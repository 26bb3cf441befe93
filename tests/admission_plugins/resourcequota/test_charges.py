"""Tests for L{ResourceQuota}."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.resourcequota import ResourceQuota
from kubetwist.api.options import UpdateOptions
from kubetwist.interfaces import IValidatingAdmission
from kubetwist.registry.generic.parts import status_rules
from tests.admission_plugins.quotatools import PluginTestCase, claim, sized
from tests.resources.server import pod


class ResourceQuotaTests(PluginTestCase):
    """Tests for L{ResourceQuota}."""

    def quota(self, used: dict[str, str] | None = None, spec: Any = None, **hard: str) -> None:
        """Create an enforced quota and enable the plugin; C{_} in a name stands for a dot."""
        hard = {name.replace("_", "."): amount for name, amount in hard.items()}
        quotas = self.store("resourcequotas")
        self.made(quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard, **(spec or {})}})
        status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
        self.changed(quotas, "q", lambda obj: obj.update(status=status), rules=status_rules(quotas))
        plugin = ResourceQuota()
        verifyObject(IValidatingAdmission, plugin)
        self.use(plugin)

    def used(self) -> dict[str, str]:
        """Return the used amounts of a quota."""
        used: dict[str, str] = self.stored(self.store("resourcequotas"), "q")["status"]["used"]
        return used

    def test_counts(self) -> None:
        """Objects are counted when they are created, and rejected if they exceed the quota."""
        self.quota(configmaps="2")
        for name in ("a", "b"):
            self.made(self.store("configmaps"), {"metadata": {"name": name}})
        self.assertEqual(self.used(), {"configmaps": "2"})
        reason = self.error_text("configmaps", {"metadata": {"name": "c"}})
        self.assertEqual(
            reason, "exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2"
        )
        self.assertIsNone(self.stored(self.store("configmaps"), "c"))
        self.assertEqual(self.used(), {"configmaps": "2"})

    def test_dry_run(self) -> None:
        """A dry run is rejected like another write, but counts nothing."""
        self.quota(configmaps="1")
        self.made(self.store("configmaps"), {"metadata": {"name": "a"}}, dry_run=True)
        self.assertEqual(self.used(), {"configmaps": "0"})
        self.made(self.store("configmaps"), {"metadata": {"name": "a"}})
        self.assertIn("exceeded quota", self.error_text("configmaps", {"metadata": {"name": "b"}}, dry_run=True))

    def test_pods(self) -> None:
        """Pods use the resources that their containers request, which are then required."""
        self.quota(pods="2", requests_cpu="1", limits_memory="1Gi")
        name = pod("p")["spec"]["containers"][0]["name"]
        self.assertEqual(
            self.error_text("pods", pod("p")),
            f"failed quota: q: must specify limits.memory for: {name}; requests.cpu for: {name}",
        )
        self.made(self.store("pods"), sized("p", requests={"cpu": "600m"}, limits={"memory": "512Mi"}))
        self.assertEqual(self.used(), {"pods": "1", "requests.cpu": "600m", "limits.memory": "512Mi"})
        much = sized("m", requests={"cpu": "500m"}, limits={"memory": "600Mi"})
        self.assertEqual(
            self.error_text("pods", much),
            "exceeded quota: q, requested: limits.memory=600Mi,requests.cpu=500m, "
            "used: limits.memory=512Mi,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1",
        )

    def test_services(self) -> None:
        """A Service that is changed to need node ports uses the quota for them."""
        self.quota(services="1", services_nodeports="0")
        spec = {"ports": [{"port": 80}]}
        made = self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": dict(spec)})
        self.assertEqual(self.used()["services"], "1")
        made["spec"]["type"] = "NodePort"
        store = self.store("services")
        store.strategy.default(made)
        error = self.refused(store.update(self.scope, "s", lambda stored: made, UpdateOptions()))
        self.assertIn("requested: services.nodeports=1", error.message)

    def test_not_enforced(self) -> None:
        """A quota without status rejects nothing; a quota with an incomplete status rejects everything."""
        quotas = self.store("resourcequotas")
        self.made(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}})
        self.use(ResourceQuota())
        self.made(self.store("configmaps"), {"metadata": {"name": "a"}})
        status = {"hard": {"configmaps": "9"}}
        self.changed(quotas, "q", lambda obj: obj.update(status=status), rules=status_rules(quotas))
        reason = self.error_text("configmaps", {"metadata": {"name": "b"}})
        self.assertEqual(reason, "status unknown for quota: q, resources: configmaps")

    def test_scopes(self) -> None:
        """A quota with a scope counts only matching pods."""
        self.quota(spec={"scopes": ["BestEffort"]}, pods="0")
        self.made(self.store("pods"), sized("p", requests={"cpu": "1"}))
        self.assertIn("exceeded quota", self.error_text("pods", pod("q")))

    def test_changed_scope(self) -> None:
        """A pod that gets a deadline uses quotas for terminating pods; other updates use nothing."""
        self.quota(spec={"scopes": ["Terminating"]}, pods="1")
        store = self.store("pods")
        for name in ("a", "b"):
            self.made(store, pod(name))
        self.changed(store, "a", lambda obj: obj["metadata"].update(labels={"a": "b"}))
        self.assertEqual(self.used(), {"pods": "0"})
        self.changed(store, "a", lambda obj: obj["spec"].update(activeDeadlineSeconds=9))
        self.assertEqual(self.used(), {"pods": "1"})
        late = self.stored(store, "b")
        late["spec"]["activeDeadlineSeconds"] = 9
        error = self.refused(store.update(self.scope, "b", lambda stored: late, UpdateOptions()))
        self.assertIn("exceeded quota: q, requested: pods=1, used: pods=1", error.message)

    def test_capacity(self) -> None:
        """A claim uses its capacity if that exceeds its request, also beyond the quota."""
        self.quota(requests_storage="2Gi")
        store = self.store("persistentvolumeclaims")
        self.made(store, claim("c", "1073741823500m"))
        self.assertEqual(self.used(), {"requests.storage": "1073741824"})
        given = {"allocatedResources": {"storage": "3Gi"}}
        self.changed(store, "c", lambda obj: obj.update(status=given), rules=status_rules(store))
        self.assertEqual(self.used(), {"requests.storage": "3221225472"})
