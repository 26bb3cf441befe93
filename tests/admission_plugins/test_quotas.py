"""Tests for L{LimitRanger} and L{ResourceQuota}: what a namespace lets its pods and claims have."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.admission.chain import AdmissionChain
from kubetwist.admission_plugins.limitranger import ANNOTATION, LimitRanger
from kubetwist.admission_plugins.resourcequota import ResourceQuota
from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions, UpdateOptions
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from kubetwist.registry.generic.parts import status_rules
from tests.registry.storetools import StoreTestCase
from tests.resources.server import pod


def sized(name: str, **resources: Any) -> dict[str, Any]:
    """A pod whose container asks for something."""
    obj = pod(name)
    obj["spec"]["containers"][0]["resources"] = resources
    return obj


def claim(name: str, storage: str) -> dict[str, Any]:
    """A claim of storage."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": name}, "spec": spec}


class PluginTestCase(StoreTestCase):
    """A test of plugins in front of stores."""

    resources = ("pods", "persistentvolumeclaims", "limitranges", "resourcequotas", "configmaps", "services")

    def use(self, *plugins: Any) -> None:
        """Put them in front of all writes."""
        self.stores.use(AdmissionChain(plugins))

    def why(self, resource: str, obj: dict[str, Any], **options: Any) -> str:
        """Why an object is refused."""
        store = self.store(resource)
        store.strategy.default(obj)
        error: APIStatusError = self.refused(store.create(self.scope, obj, CreateOptions(**options)))
        self.assertEqual((error.code, error.reason), (403, "Forbidden"))
        return error.message.partition("is forbidden: ")[2]


class LimitRangerTests(PluginTestCase):
    """Tests for L{LimitRanger}."""

    def limit(self, **limit: Any) -> None:
        """Have a limit range with one limit, and the plugin look at it."""
        self.made(self.store("limitranges"), {"metadata": {"name": "lr"}, "spec": {"limits": [limit]}})
        plugin = LimitRanger()
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        self.use(plugin)

    def test_defaults(self) -> None:
        """Containers get what they do not say, and an annotation tells what that was."""
        self.limit(type="Container", default={"cpu": "500m"}, defaultRequest={"cpu": "100m", "memory": "1Gi"})
        made = self.made(self.store("pods"), sized("p", requests={"cpu": "200m"}))
        resources = made["spec"]["containers"][0]["resources"]
        self.assertEqual(resources, {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "500m"}})
        name = made["spec"]["containers"][0]["name"]
        self.assertEqual(
            made["metadata"]["annotations"][ANNOTATION],
            f"LimitRanger plugin set: memory request for container {name}; cpu limit for container {name}",
        )

    def test_nothing_to_say(self) -> None:
        """Where nothing is missing there is no annotation."""
        self.limit(type="Container", max={"cpu": "2"})
        made = self.made(self.store("pods"), sized("p", requests={"cpu": "1"}, limits={"cpu": "1"}))
        self.assertNotIn("annotations", made["metadata"])

    def test_bounds(self) -> None:
        """A container keeps between minimum and maximum, and its limit near its request; all that is wrong is told."""
        self.limit(type="Container", min={"cpu": "50m"}, max={"cpu": "2"}, maxLimitRequestRatio={"cpu": "10"})
        over = sized("p", requests={"cpu": "1"}, limits={"cpu": "3"})
        self.assertEqual(self.why("pods", over), "maximum cpu usage per Container is 2, but limit is 3")
        under = sized("p", requests={"cpu": "10m"}, limits={"cpu": "1"})
        self.assertEqual(
            self.why("pods", under),
            "[minimum cpu usage per Container is 50m, but request is 10m, "
            "cpu max limit to request ratio per Container is 10, but provided ratio is 100.000000]",
        )

    def test_pods(self) -> None:
        """Limits of pods are about the sum of their containers."""
        self.limit(type="Pod", max={"memory": "1Gi"})
        obj = sized("p", limits={"memory": "600Mi"})
        obj["spec"]["containers"].append({**obj["spec"]["containers"][0], "name": "other"})
        self.assertEqual(self.why("pods", obj), "maximum memory usage per Pod is 1Gi, but limit is 1200Mi")
        self.assertIn("No limit is specified", self.why("pods", sized("p")))

    def test_whole_pods(self) -> None:
        """Of what is said for a pod as a whole processors and memory count; what it takes to run it does not."""
        self.limit(type="Pod", max={"cpu": "1"}, min={"memory": "1Gi"})
        obj = sized("p", requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"})
        obj["spec"]["overhead"] = {"cpu": "1"}
        self.made(self.store("pods"), obj)
        whole = pod("q")
        whole["spec"]["resources"] = {"requests": {"memory": "1Gi"}, "limits": {"cpu": "2"}}
        self.assertEqual(self.why("pods", whole), "maximum cpu usage per Pod is 1, but limit is 2")

    def test_claims(self) -> None:
        """Claims of storage keep within their limits, too."""
        self.limit(type="PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "5Gi"})
        said = "storage usage per PersistentVolumeClaim is"
        self.assertEqual(
            self.why("persistentvolumeclaims", claim("c", "1Mi")), f"minimum {said} 1Gi, but request is 1Mi"
        )
        self.assertEqual(
            self.why("persistentvolumeclaims", claim("c", "6Gi")), f"maximum {said} 5Gi, but request is 6Gi"
        )
        self.made(self.store("persistentvolumeclaims"), claim("c", "2Gi"))


class ResourceQuotaTests(PluginTestCase):
    """Tests for L{ResourceQuota}."""

    def quota(self, used: dict[str, str] | None = None, spec: Any = None, **hard: str) -> None:
        """Have a quota that is in force, and the plugin look at it; C{_} in a name stands for a dot."""
        hard = {name.replace("_", "."): amount for name, amount in hard.items()}
        quotas = self.store("resourcequotas")
        self.made(quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard, **(spec or {})}})
        status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
        self.changed(quotas, "q", lambda obj: obj.update(status=status), rules=status_rules(quotas))
        plugin = ResourceQuota()
        verifyObject(IValidatingAdmission, plugin)
        self.use(plugin)

    def used(self) -> dict[str, str]:
        """What is counted as used."""
        used: dict[str, str] = self.stored(self.store("resourcequotas"), "q")["status"]["used"]
        return used

    def test_counts(self) -> None:
        """Objects are counted as they are made, and refused when there are too many."""
        self.quota(configmaps="2")
        for name in ("a", "b"):
            self.made(self.store("configmaps"), {"metadata": {"name": name}})
        self.assertEqual(self.used(), {"configmaps": "2"})
        why = self.why("configmaps", {"metadata": {"name": "c"}})
        self.assertEqual(why, "exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2")
        self.assertIsNone(self.stored(self.store("configmaps"), "c"))
        self.assertEqual(self.used(), {"configmaps": "2"})

    def test_dry_run(self) -> None:
        """A dry run is refused like any other write, but counts nothing."""
        self.quota(configmaps="1")
        self.made(self.store("configmaps"), {"metadata": {"name": "a"}}, dry_run=True)
        self.assertEqual(self.used(), {"configmaps": "0"})
        self.made(self.store("configmaps"), {"metadata": {"name": "a"}})
        self.assertIn("exceeded quota", self.why("configmaps", {"metadata": {"name": "b"}}, dry_run=True))

    def test_pods(self) -> None:
        """Pods use what their containers ask for, which these then have to say."""
        self.quota(pods="2", requests_cpu="1", limits_memory="1Gi")
        name = pod("p")["spec"]["containers"][0]["name"]
        self.assertEqual(
            self.why("pods", pod("p")),
            f"failed quota: q: must specify limits.memory for: {name}; requests.cpu for: {name}",
        )
        self.made(self.store("pods"), sized("p", requests={"cpu": "600m"}, limits={"memory": "512Mi"}))
        self.assertEqual(self.used(), {"pods": "1", "requests.cpu": "600m", "limits.memory": "512Mi"})
        much = sized("m", requests={"cpu": "500m"}, limits={"memory": "600Mi"})
        self.assertEqual(
            self.why("pods", much),
            "exceeded quota: q, requested: limits.memory=600Mi,requests.cpu=500m, "
            "used: limits.memory=512Mi,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1",
        )

    def test_services(self) -> None:
        """A service that comes to need node ports is charged for them."""
        self.quota(services="1", services_nodeports="0")
        spec = {"ports": [{"port": 80}]}
        made = self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": dict(spec)})
        self.assertEqual(self.used()["services"], "1")
        made["spec"]["type"] = "NodePort"
        store = self.store("services")
        store.strategy.default(made)
        error = self.refused(store.update(self.scope, "s", lambda stored: made, UpdateOptions()))
        self.assertIn("requested: services.nodeports=1", error.message)

    def test_not_in_force(self) -> None:
        """A quota whose controller has said nothing yet refuses nothing, and one that is half known refuses all."""
        quotas = self.store("resourcequotas")
        self.made(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "0"}}})
        self.use(ResourceQuota())
        self.made(self.store("configmaps"), {"metadata": {"name": "a"}})
        status = {"hard": {"configmaps": "9"}}
        self.changed(quotas, "q", lambda obj: obj.update(status=status), rules=status_rules(quotas))
        why = self.why("configmaps", {"metadata": {"name": "b"}})
        self.assertEqual(why, "status unknown for quota: q, resources: configmaps")

    def test_scopes(self) -> None:
        """A quota for pods of one quality leaves others alone."""
        self.quota(spec={"scopes": ["BestEffort"]}, pods="0")
        self.made(self.store("pods"), sized("p", requests={"cpu": "1"}))
        self.assertIn("exceeded quota", self.why("pods", pod("q")))

    def test_pod_that_ends(self) -> None:
        """A pod that is given a deadline is charged to quotas for such pods; other updates charge nothing."""
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

    def test_storage_given(self) -> None:
        """A claim is charged for what it has been given, if that is more than it wants, whatever the quota."""
        self.quota(requests_storage="2Gi")
        store = self.store("persistentvolumeclaims")
        self.made(store, claim("c", "1073741823500m"))
        self.assertEqual(self.used(), {"requests.storage": "1073741824"})
        given = {"allocatedResources": {"storage": "3Gi"}}
        self.changed(store, "c", lambda obj: obj.update(status=given), rules=status_rules(store))
        self.assertEqual(self.used(), {"requests.storage": "3221225472"})
