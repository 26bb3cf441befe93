"""Tests for plugins that look at classes and nodes, and for L{CertificateSubjectRestriction}."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.admission.attributes import AdmissionAttributes
from kubetwist.admission_plugins.certificatesubjectrestriction import CertificateSubjectRestriction
from kubetwist.admission_plugins.defaultingressclass import DefaultIngressClass
from kubetwist.admission_plugins.defaultstorageclass import DefaultStorageClass
from kubetwist.admission_plugins.persistentvolumeclaimresize import PersistentVolumeClaimResize
from kubetwist.admission_plugins.podtopologylabels import PodTopologyLabels
from kubetwist.admission_plugins.runtimeclass import RuntimeClass
from kubetwist.admission_plugins.tolerations import merge_tolerations
from kubetwist.api.errors import APIStatusError
from kubetwist.api.frozen import frozen
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import Context


class Objects(Context):
    """What plugins look up: objects by their resource."""

    def __init__(self, **found: list[JSONObject]) -> None:
        super().__init__()
        self._found = found

    def view(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{Context.view}."""
        return next((one for one in self.views(group, resource) if one["metadata"]["name"] == name), None)

    def views(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{Context.views}."""
        return [frozen(one) for one in self._found.get(resource, [])]


def named(name: str, created: str = "2026-01-01T00:00:00Z", **fields: Any) -> JSONObject:
    """An object."""
    meta = {"name": name, "creationTimestamp": created, **fields.pop("metadata", {})}
    return {"metadata": meta, **fields}


class PluginTestCase(SynchronousTestCase):
    """A test of single plugins."""

    def call(
        self,
        method: Any,
        resource: str,
        obj: JSONObject,
        old: JSONObject | None = None,
        group: str = "",
        subresource: str = "",
        **found: list[JSONObject],
    ) -> Deferred[None]:
        """Ask a plugin for its opinion."""
        operation = "UPDATE" if old else "CREATE"
        context = Objects(**found)
        attributes = AdmissionAttributes(
            operation, group, "v1", resource, subresource, "", "ns", "x", obj, old, UserInfo("u"), False, context
        )
        return maybeDeferred(method, attributes)

    def ask(self, *arguments: Any, **named: Any) -> None:
        """Ask one that has nothing against it."""
        self.successResultOf(self.call(*arguments, **named))

    def why(self, *arguments: Any, **named: Any) -> str:
        """Why a plugin refuses."""
        error = self.failureResultOf(self.call(*arguments, **named), APIStatusError).value
        assert isinstance(error, APIStatusError)
        self.assertEqual(error.code, 403)
        return error.message.partition("is forbidden: ")[2]


class RuntimeClassTests(PluginTestCase):
    """Tests for L{RuntimeClass}."""

    boxed = named(
        "boxed",
        overhead={"podFixed": {"cpu": "250m"}},
        scheduling={"nodeSelector": {"box": "yes"}, "tolerations": [{"key": "box", "operator": "Exists"}]},
    )

    def admitted(self, **spec: Any) -> JSONObject:
        """The spec that a pod of that class has then."""
        obj = {"metadata": {}, "spec": {"runtimeClassName": "boxed", **spec}}
        plugin = RuntimeClass()
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        self.ask(plugin.admit, "pods", obj, runtimeclasses=[self.boxed])
        self.ask(plugin.validate, "pods", obj, runtimeclasses=[self.boxed])
        found: JSONObject = obj["spec"]  # type: ignore[assignment]
        return found

    def test_fills_in(self) -> None:
        """A pod gets the overhead, the node selector and the tolerations of its class."""
        spec = self.admitted(nodeSelector={"disk": "ssd"}, overhead={"cpu": "0.25"})
        self.assertEqual(spec["overhead"], {"cpu": "250m"})
        self.assertEqual(spec["nodeSelector"], {"disk": "ssd", "box": "yes"})
        self.assertEqual(spec["tolerations"], [{"key": "box", "operator": "Exists"}])

    def test_refuses(self) -> None:
        """A pod that contradicts its class is refused, and one whose class is not there."""
        plugin = RuntimeClass()

        def why(**spec: Any) -> str:
            obj = {"metadata": {}, "spec": {"runtimeClassName": "boxed", **spec}}
            return self.why(plugin.admit, "pods", obj, runtimeclasses=[self.boxed])

        self.assertEqual(
            why(nodeSelector={"box": "no"}),
            "conflict: runtimeClass.scheduling.nodeSelector[box] = yes; pod.spec.nodeSelector[box] = no",
        )
        self.assertIn("Overhead doesn't match", why(overhead={"cpu": "1"}))
        self.assertEqual(why(runtimeClassName="gone"), 'pod rejected: RuntimeClass "gone" not found')

    def test_no_name(self) -> None:
        """A class without a name can not be looked up."""
        asked = self.call(RuntimeClass().admit, "pods", {"metadata": {}, "spec": {"runtimeClassName": ""}})
        error = self.failureResultOf(asked, APIStatusError).value
        self.assertEqual((error.code, error.message), (500, "resource name may not be empty"))

    def test_overhead_without_class(self) -> None:
        """Only classes give overhead."""
        obj = {"metadata": {}, "spec": {"overhead": {"cpu": "1"}}}
        self.assertIn("without corresponding RuntimeClass", self.why(RuntimeClass().validate, "pods", obj))

    def test_tolerations(self) -> None:
        """What another toleration implies is left out."""
        narrow = {"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"}
        wide = {"key": "a", "operator": "Exists"}
        self.assertEqual(merge_tolerations([narrow], [wide]), [wide])
        other = {"key": "b", "operator": "Exists"}
        self.assertEqual(merge_tolerations([other, narrow], [narrow]), [other, narrow])


class DefaultClassTests(PluginTestCase):
    """Tests for L{DefaultStorageClass} and L{DefaultIngressClass}."""

    def test_storage(self) -> None:
        """The newest default class is taken where a claim names none; naming the empty one is naming one."""
        mark = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        classes = [
            named("old", "2026-01-01T00:00:00Z", metadata=mark),
            named("new", "2026-02-01T00:00:00Z", metadata=mark),
            named("newer", "2026-03-01T00:00:00Z"),
        ]
        plugin = DefaultStorageClass()
        verifyObject(IMutatingAdmission, plugin)
        for spec, wanted in (({}, "new"), ({"storageClassName": ""}, ""), ({"storageClassName": "x"}, "x")):
            obj: JSONObject = {"metadata": {}, "spec": dict(spec)}
            self.ask(plugin.admit, "persistentvolumeclaims", obj, storageclasses=classes)
            self.assertEqual(obj["spec"]["storageClassName"], wanted)
        bare: JSONObject = {"metadata": {}, "spec": {}}
        self.ask(plugin.admit, "persistentvolumeclaims", bare)
        self.assertEqual(bare["spec"], {})

    def test_ingress(self) -> None:
        """Ingresses likewise; the annotation of old names a class, too."""
        mark = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
        classes = [named("b", metadata=mark), named("a", metadata=mark)]
        plugin = DefaultIngressClass()
        verifyObject(IMutatingAdmission, plugin)
        group = "networking.k8s.io"
        obj: JSONObject = {"metadata": {}, "spec": {}}
        self.ask(plugin.admit, "ingresses", obj, group=group, ingressclasses=classes)
        self.assertEqual(obj["spec"], {"ingressClassName": "a"})
        old: JSONObject = {"metadata": {"annotations": {"kubernetes.io/ingress.class": "x"}}, "spec": {}}
        self.ask(plugin.admit, "ingresses", old, group=group, ingressclasses=classes)
        self.assertEqual(old["spec"], {})


class OtherTests(PluginTestCase):
    """Tests for L{PersistentVolumeClaimResize}, L{PodTopologyLabels} and L{CertificateSubjectRestriction}."""

    def test_resize(self) -> None:
        """Bound claims grow where their class says so; to shrink is not for this plugin to refuse."""
        plugin = PersistentVolumeClaimResize()
        verifyObject(IValidatingAdmission, plugin)

        def grown(size: str, storage_class: str, phase: str = "Bound") -> tuple[JSONObject, JSONObject]:
            def claim(storage: str) -> JSONObject:
                spec = {"storageClassName": storage_class, "resources": {"requests": {"storage": storage}}}
                return {"metadata": {}, "spec": spec, "status": {"phase": phase}}

            return claim(size), claim("1Gi")

        classes = [named("grows", allowVolumeExpansion=True), named("stays")]
        resource = "persistentvolumeclaims"
        self.ask(plugin.validate, resource, *grown("2Gi", "grows"), storageclasses=classes)
        self.ask(plugin.validate, resource, *grown("1Mi", "stays"), storageclasses=classes)
        why = self.why(plugin.validate, resource, *grown("2Gi", "stays"), storageclasses=classes)
        self.assertIn("must support resize", why)
        why = self.why(plugin.validate, resource, *grown("2Gi", "grows", "Pending"), storageclasses=classes)
        self.assertIn("Only bound", why)

    def test_topology(self) -> None:
        """A binding, and a pod that names its node, get the labels of the node's place and no others."""
        labels = {"topology.kubernetes.io/zone": "z", "other": "x"}
        node = named("n", metadata={"labels": labels})
        plugin = PodTopologyLabels()
        verifyObject(IMutatingAdmission, plugin)
        binding: JSONObject = {"metadata": {"name": "p"}, "target": {"name": "n"}}
        self.ask(plugin.admit, "pods", binding, subresource="binding", nodes=[node])
        self.assertEqual(binding["metadata"]["labels"], {"topology.kubernetes.io/zone": "z"})
        placed: JSONObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n"}}
        self.ask(plugin.admit, "pods", placed, nodes=[node])
        self.assertEqual(placed["metadata"]["labels"], {"a": "b", "topology.kubernetes.io/zone": "z"})

    def test_masters(self) -> None:
        """Nobody gets a client certificate of the group that may do everything; other signers may decide."""
        key = ec.generate_private_key(ec.SECP256R1())

        def request(organization: str, signer: str = "kubernetes.io/kube-apiserver-client") -> JSONObject:
            name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
            made = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
            encoded = b64encode(made.public_bytes(Encoding.PEM)).decode()
            return {"metadata": {}, "spec": {"signerName": signer, "request": encoded}}

        plugin = CertificateSubjectRestriction()
        verifyObject(IValidatingAdmission, plugin)
        resource = "certificatesigningrequests"
        self.ask(plugin.validate, resource, request("devs"))
        self.ask(plugin.validate, resource, request("system:masters", "example.com/signer"))
        why = self.why(plugin.validate, resource, request("system:masters"))
        self.assertIn("system:masters group is not allowed", why)
