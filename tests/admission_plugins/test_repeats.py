"""Every mutating plugin that is on by default may be asked twice; and what is new in some of them."""

from __future__ import annotations

from typing import Any

from kubetwist.admission_plugins.defaultingressclass import DefaultIngressClass
from kubetwist.admission_plugins.defaultstorageclass import DefaultStorageClass
from kubetwist.admission_plugins.defaulttolerationseconds import DefaultTolerationSeconds
from kubetwist.admission_plugins.limitranger import LimitRanger
from kubetwist.admission_plugins.namespacelifecycle import NamespaceLifecycle
from kubetwist.admission_plugins.persistentvolumeclaimresize import PersistentVolumeClaimResize
from kubetwist.admission_plugins.podtopologylabels import PodTopologyLabels
from kubetwist.admission_plugins.priority import Priority
from kubetwist.admission_plugins.runtimeclass import RuntimeClass
from kubetwist.admission_plugins.serviceaccount import ServiceAccount
from kubetwist.admission_plugins.storageobjectinuseprotection import StorageObjectInUseProtection
from kubetwist.admission_plugins.taintnodesbycondition import TaintNodesByCondition
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.fakes import Context, PluginTestCase, every_container, pod, write

ENFORCED = "kubernetes.io/enforce-mountable-secrets"


def cluster() -> Context:
    """A server with something for every plugin."""
    context = Context()
    context.add("", "namespaces", {"metadata": {"name": "ns"}})
    context.add("", "serviceaccounts", {"metadata": {"name": "default", "namespace": "ns"}})
    limit = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}
    context.add("", "limitranges", {"metadata": {"name": "l", "namespace": "ns"}, "spec": {"limits": [limit]}})
    context.add("", "nodes", {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}}})
    scheduling = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "box", "operator": "Exists"}]}
    context.add(
        "node.k8s.io",
        "runtimeclasses",
        {"metadata": {"name": "box"}, "overhead": {"podFixed": {"cpu": "1"}}, "scheduling": scheduling},
    )
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}, "creationTimestamp": "x"}
    context.add("storage.k8s.io", "storageclasses", {"metadata": {"name": "s", **default}})
    default = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}, "creationTimestamp": "x"}
    context.add("networking.k8s.io", "ingressclasses", {"metadata": {"name": "i", **default}})
    usual = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True, "preemptionPolicy": "Never"}
    context.add("scheduling.k8s.io", "priorityclasses", usual)
    return context


class TwiceTests(PluginTestCase):
    """Mutating plugins, asked twice, as a reinvocation does."""

    def test_pods(self) -> None:
        """What plugins make of a pod they make of it once: nothing is added a second time."""
        for plugin in (
            NamespaceLifecycle(),
            LimitRanger(),
            ServiceAccount(),
            Priority(),
            DefaultTolerationSeconds(),
            RuntimeClass(),
            PodTopologyLabels(),
        ):
            obj = every_container()
            obj["spec"].update(runtimeClassName="box", nodeName="n")
            before = obj["spec"].copy(), obj["metadata"].copy()
            after = self.admit_twice(plugin, write(obj, context=cluster()))
            if plugin.name != "NamespaceLifecycle":
                self.assertNotEqual((after["spec"], after["metadata"]), before, plugin.name)

    def test_others(self) -> None:
        """The same for other resources."""
        plugins: list[tuple[Any, str]] = [
            (TaintNodesByCondition(), "nodes"),
            (StorageObjectInUseProtection(), "persistentvolumes"),
            (StorageObjectInUseProtection(), "persistentvolumeclaims"),
            (StorageObjectInUseProtection(), "volumeattributesclasses.storage.k8s.io"),
            (DefaultStorageClass(), "persistentvolumeclaims"),
            (DefaultIngressClass(), "ingresses.networking.k8s.io"),
            (PodTopologyLabels(), "pods/binding"),
        ]
        for plugin, resource in plugins:
            obj: JSONObject = {"metadata": {"name": "x"}, "spec": {}, "target": {"name": "n"}}
            after = self.admit_twice(plugin, write(obj, resource, context=cluster()))
            self.assertNotEqual(after, {"metadata": {"name": "x"}, "spec": {}, "target": {"name": "n"}}, plugin.name)

    def test_shared(self) -> None:
        """What a plugin puts into a pod is the pod's own: the next plugin can change it."""
        context = cluster()
        obj = pod(runtimeClassName="box")
        self.admit(RuntimeClass(), write(obj, context=context))
        obj["spec"]["tolerations"][0]["effect"] = "NoSchedule"
        obj["spec"]["nodeSelector"]["c"] = "d"
        obj["spec"]["overhead"]["memory"] = "1"
        found = context.objects["node.k8s.io", "runtimeclasses", "", "box"]
        self.assertEqual(found["scheduling"]["tolerations"], [{"key": "box", "operator": "Exists"}])


class SecretTests(PluginTestCase):
    """Tests for L{ServiceAccount} where an account says which secrets its pods may have."""

    def context(self, enforced: str = "true") -> Context:
        """A server with such an account."""
        context = Context()
        meta = {"name": "default", "namespace": "ns", "annotations": {ENFORCED: enforced}}
        context.add("", "serviceaccounts", {"metadata": meta, "secrets": [{"name": "ok"}]})
        return context

    def test_cve_2023_2728(self) -> None:
        """Ephemeral containers can not get at other secrets, either."""
        old = pod(serviceAccountName="default")
        for field, what in (
            ({"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "no"}}}]}, "with envVar X"),
            ({"envFrom": [{"secretRef": {"name": "no"}}]}, "with envFrom"),
        ):
            new = pod(serviceAccountName="default", ephemeralContainers=[{"name": "e", **field}])
            made = write(new, "pods/ephemeralcontainers", "UPDATE", old=old, context=self.context())
            error = self.refusal(ServiceAccount(), made)
            text = (
                f'ephemeral container e {what} referencing secret.secretName="no" is not allowed because service '
                "account default does not reference that secret"
            )
            # The reference has an error without a reason here, other than for a new pod.
            self.assertEqual((error.code, error.reason, error.message), (500, "", text))
        fine = {"name": "e", "envFrom": [{"secretRef": {"name": "ok"}}]}
        new = pod(serviceAccountName="default", ephemeralContainers=[fine])
        self.validate(
            ServiceAccount(), write(new, "pods/ephemeralcontainers", "UPDATE", old=old, context=self.context())
        )

    def test_cve_2024_3177(self) -> None:
        """A whole environment from a secret is a use of it, in containers of every kind."""
        for kind, name in (("initContainers", "init container"), ("containers", "container")):
            obj = every_container()
            obj["spec"]["serviceAccountName"] = "default"
            obj["spec"][kind][0]["envFrom"] = [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "no"}}]
            why = self.why(ServiceAccount(), write(obj, context=self.context()))
            self.assertEqual(
                why,
                f'{name} {obj["spec"][kind][0]["name"]} with envFrom referencing secret.secretName="no" is not allowed '
                "because service account default does not reference that secret",
            )

    def test_changed_later(self) -> None:
        """What another plugin has put in after the first look is found in the second one."""
        obj = pod(serviceAccountName="default")
        made = write(obj, context=self.context())
        self.admit(ServiceAccount(), made)
        obj["spec"]["volumes"].append({"name": "v", "secret": {"secretName": "no"}})
        self.assertIn('volume with secret.secretName="no"', self.why(ServiceAccount(), made))
        obj["spec"]["serviceAccountName"] = ""
        self.assertEqual(self.why(ServiceAccount(), made), "no service account specified for pod ns/x")

    def test_said(self) -> None:
        """The annotation is read as Go reads what is true."""
        obj = pod(serviceAccountName="default", volumes=[{"name": "v", "secret": {"secretName": "no"}}])
        for text in ("1", "t", "T", "TRUE", "true", "True"):
            self.why(ServiceAccount(), write(obj, context=self.context(text)))
        for text in ("", "yes", "tRUE", "0", "false"):
            self.validate(ServiceAccount(), write(obj, context=self.context(text)))

    def test_mirrors(self) -> None:
        """Pods that a kubelet runs by itself use no secrets, wherever they may be named."""
        for spec in (
            {"imagePullSecrets": [{"name": "s"}]},
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]},
            {"volumes": [{"name": "v", "csi": {"nodePublishSecretRef": {"name": "s"}}}]},
            {"ephemeralContainers": [{"name": "e", "envFrom": [{"secretRef": {"name": "s"}}]}]},
        ):
            obj = pod(**spec)
            obj["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
            for admitting in (True, False):
                why = self.why(ServiceAccount(), write(obj), admitting=admitting)
                self.assertEqual(why, "a mirror pod may not reference secrets")


class DefaultPriorityTests(PluginTestCase):
    """Tests for L{Priority} and the class that is the default."""

    def test_default(self) -> None:
        """A pod without a class gets the default one; of several, the lowest."""
        context = cluster()
        low = {"metadata": {"name": "low"}, "value": 3, "globalDefault": True, "preemptionPolicy": "Never"}
        context.add("scheduling.k8s.io", "priorityclasses", low)
        spec = self.admit_twice(Priority(), write(pod(), context=context))["spec"]
        self.assertEqual((spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]), ("low", 3, "Never"))

    def test_one_default(self) -> None:
        """There is no second default class; the one that there is can be changed."""
        context, resource = cluster(), "priorityclasses.scheduling.k8s.io"
        other = {"metadata": {"name": "other"}, "value": 1, "globalDefault": True}
        text = "PriorityClass usual is already marked as default. Only one default can exist"
        self.assertEqual(self.why(Priority(), write(other, resource, context=context)), text)
        was = {**other, "globalDefault": False}
        self.assertEqual(self.why(Priority(), write(other, resource, "UPDATE", old=was, context=context)), text)
        usual = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
        self.validate(Priority(), write(usual, resource, "UPDATE", old=usual, context=context))
        self.validate(Priority(), write(was, resource, context=context))
        self.validate(Priority(), write(other, resource))


class ConfiguredTests(PluginTestCase):
    """Plugins that are told something when the server starts."""

    def test_toleration_seconds(self) -> None:
        """How long pods stay on a node that fails is a flag's affair."""
        plugin = DefaultTolerationSeconds.configured(Context(toleration_seconds=(10, 0)), None)
        spec = self.admit_twice(plugin, write(pod()))["spec"]
        self.assertEqual([one["tolerationSeconds"] for one in spec["tolerations"]], [10, 0])


class ResizeTests(PluginTestCase):
    """Tests for L{PersistentVolumeClaimResize} and the annotation that named classes before there was a field."""

    def test_annotation(self) -> None:
        """The annotation counts more than the field, and a claim that changes its class does not grow."""
        context = Context()
        context.add("storage.k8s.io", "storageclasses", {"metadata": {"name": "grows"}, "allowVolumeExpansion": True})

        def claim(size: str, said: str) -> JSONObject:
            spec = {"storageClassName": "stays", "resources": {"requests": {"storage": size}}}
            meta = {"name": "c", "annotations": {"volume.beta.kubernetes.io/storage-class": said}}
            return {"metadata": meta, "spec": spec, "status": {"phase": "Bound"}}

        plugin, resource = PersistentVolumeClaimResize(), "persistentvolumeclaims"
        grown = write(claim("2Gi", "grows"), resource, "UPDATE", old=claim("1Gi", "grows"), context=context)
        self.validate(plugin, grown)
        other = write(claim("2Gi", "grows"), resource, "UPDATE", old=claim("1Gi", "other"), context=context)
        self.assertIn("must support resize", self.why(plugin, other))
