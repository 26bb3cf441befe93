"""Tests of L{kubetwist.registry.core.node.graph}."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock

from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.featuregates import FeatureGates
from kubetwist.authorization.node import NodeAuthorizer
from kubetwist.registry.assembly import ResourceRegistry
from kubetwist.registry.core.node import graph as nodegraph
from kubetwist.registry.core.node.graph import NodeGraph
from kubetwist.registry.core.pod.references import MIRROR_ANNOTATION
from kubetwist.storage.errors import RevisionCompacted, StorageUnavailable
from kubetwist.storage.memory import MemoryStorage
from tests.authorization.nodecase import PODS, VOLUMES, NodeTestCase, node_user, pod_on, volume
from tests.resources.server import all_kinds

UNRELATED = "no relationship found between node 'one' and this object"


class GraphTests(NodeTestCase):
    """Tests of the objects that pods refer to."""

    def test_references(self) -> None:
        """A node can read the secrets and ConfigMaps that its pods refer to in any field."""
        self.server.make(
            PODS,
            pod_on(
                "one",
                imagePullSecrets=[{"name": "pull"}],
                initContainers=[
                    {"name": "init", "image": "i", "envFrom": [{"secretRef": {"name": "init"}}]},
                ],
                container={
                    "env": [
                        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}}},
                        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "k"}}},
                    ],
                    "envFrom": [{"configMapRef": {"name": "from"}}],
                },
                volumes=[
                    {"name": "a", "secret": {"secretName": "volume"}},
                    {"name": "b", "configMap": {"name": "volume"}},
                    {
                        "name": "c",
                        "projected": {
                            "sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "projected"}}]
                        },
                    },
                    {"name": "d", "csi": {"driver": "d.example.com", "nodePublishSecretRef": {"name": "csi"}}},
                ],
            ),
        )
        for verb in ("get", "list", "watch"):
            for name in ("pull", "init", "env", "volume", "projected", "csi"):
                self.assertTrue(self.server.allows(verb, "secrets", name), name)
            for name in ("env", "from", "volume", "projected"):
                self.assertTrue(self.server.allows(verb, "configmaps", name), name)
        self.assert_reason(self.server.decide("get", "secrets", "other"), UNRELATED)
        self.assert_reason(self.server.decide("get", "secrets", "env", namespace="other"), UNRELATED)
        self.assert_reason(
            self.server.decide("get", "secrets", "env", node="two"),
            "no relationship found between node 'two' and this object",
        )
        self.assert_reason(self.server.decide("list", "secrets"), "No Object name found")
        self.assert_reason(
            self.server.decide("list", "secrets", namespace=""), "can only read namespaced object of this type"
        )
        self.assert_reason(self.server.decide("update", "secrets", "env"), "can only read resources of this type")
        self.assert_reason(
            self.server.decide("get", "configmaps", "env", subresource="status"), "cannot read subresource"
        )

    def test_volumes(self) -> None:
        """A node can read the claims of its pods, their volumes, and the secrets of these that kubelets need."""
        server = self.server
        server.make(
            PODS,
            pod_on(
                "one",
                volumes=[
                    {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
                    {
                        "name": "b",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "1Gi"}},
                                }
                            }
                        },
                    },
                ],
            ),
        )
        secrets = {
            f"{use}SecretRef": {"namespace": "vault", "name": use.lower()}
            for use in ("nodePublish", "nodeStage", "nodeExpand", "controllerPublish")
        }
        server.make(VOLUMES, volume("v", "data", csi={"driver": "d.example.com", "volumeHandle": "h", **secrets}))
        server.make(VOLUMES, volume("w"))
        for claim in ("data", "p-b"):
            self.assertTrue(server.allows("get", "persistentvolumeclaims", claim))
            for verb in ("update", "patch"):
                self.assertTrue(server.allows(verb, "persistentvolumeclaims", claim, subresource="status"))
        self.assertTrue(server.allows("get", "persistentvolumes", "v", namespace=""))
        self.assert_reason(server.decide("get", "persistentvolumes", "w", namespace=""), UNRELATED)
        for name in ("nodepublish", "nodestage", "nodeexpand"):
            self.assertTrue(server.allows("get", "secrets", name, namespace="vault"))
        self.assert_reason(server.decide("get", "secrets", "controllerpublish", namespace="vault"), UNRELATED)
        self.assert_reason(
            server.decide("list", "persistentvolumes", namespace=""), "can only get individual resources of this type"
        )
        self.assert_reason(
            server.decide("get", "persistentvolumeclaims", "data", subresource="status"),
            "can only get/update/patch this type",
        )
        server.client().ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        self.assert_reason(server.decide("get", "secrets", "nodePublish", namespace="vault"), UNRELATED)
        self.assert_reason(server.decide("get", "persistentvolumes", "v", namespace=""), UNRELATED)

    def test_resource_claims(self) -> None:
        """A node can read the resource claims of its pods, including generated ones in their status."""
        server = self.server
        server.make(
            PODS,
            pod_on(
                "one",
                resourceClaims=[
                    {"name": "a", "resourceClaimName": "named"},
                    {"name": "b", "resourceClaimTemplateName": "template"},
                ],
                containers=[{"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "1"}}}],
            ),
        )
        mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
        claim = "resource.k8s.io/resourceclaims"
        self.assertTrue(server.allows("get", claim, "named"))
        self.assertFalse(server.allows("get", claim, "made"))
        status = {
            "resourceClaimStatuses": [{"name": "b", "resourceClaimName": "made"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "extended", "requestMappings": [mapping]},
        }
        code, answer = server.client().ask(
            "PATCH", f"{PODS}/p/status", {"status": status}, Content_Type="application/merge-patch+json"
        )
        self.assertEqual(code, 200, answer)
        self.assertTrue(server.allows("get", claim, "made"))
        self.assertTrue(server.allows("get", claim, "extended"))
        self.assertFalse(server.allows("get", claim, "template"))

    def test_accounts(self) -> None:
        """A node can read the service accounts of its pods, and create their tokens."""
        server = self.server
        server.make(PODS, pod_on("one", serviceAccountName="robot"))
        self.assertTrue(server.allows("get", "serviceaccounts", "robot"))
        self.assertTrue(server.allows("create", "serviceaccounts", "robot", subresource="token"))
        for reason, verb, name, subresource in (
            (UNRELATED, "create", "other", "token"),
            (UNRELATED, "get", "other", ""),
            ("can only create tokens for individual service accounts", "list", "", ""),
            ("can only create tokens for individual service accounts", "create", "", "token"),
            ("can only create token subresource of serviceaccount", "create", "robot", "x"),
        ):
            self.assert_reason(server.decide(verb, "serviceaccounts", name, subresource=subresource), reason)

    def test_pods(self) -> None:
        """A node can read its pods by name, or list them with a field selector for the node."""
        server = self.server
        server.make(PODS, pod_on("one"))
        server.make(PODS, pod_on("two", "q"))
        self.assertTrue(server.allows("get", "pods", "p"))
        self.assert_reason(server.decide("get", "pods", "q"), UNRELATED)
        selected = (("spec.nodeName", "one", True),)
        for verb in ("list", "watch"):
            self.assertTrue(server.allows(verb, "pods", namespace="", field_terms=selected))
            self.assertTrue(server.allows(verb, "pods", "p"))
            self.assert_reason(server.decide(verb, "pods", "q"), UNRELATED)
            for terms in ((), (("spec.nodeName", "two", True),), (("spec.nodeName", "one", False),)):
                self.assert_reason(
                    server.decide(verb, "pods", namespace="", field_terms=terms),
                    "can only list/watch pods with spec.nodeName field selector",
                )
        for verb, subresource in (
            ("create", ""),
            ("delete", ""),
            ("update", "status"),
            ("patch", "status"),
            ("create", "eviction"),
        ):
            self.assertTrue(server.allows(verb, "pods", "q", subresource=subresource))
        for verb, subresource in (("update", ""), ("get", "status"), ("create", "exec"), ("get", "log")):
            self.assert_reason(server.decide(verb, "pods", "p", subresource=subresource), "")

    def test_mirror_pods(self) -> None:
        """A mirror pod grants access to no other object."""
        self.server.make(
            PODS, pod_on("one", serviceAccountName="robot", meta={"annotations": {MIRROR_ANNOTATION: "x"}})
        )
        self.assertTrue(self.server.allows("get", "pods", "p"))
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot"))

    def test_attachments(self) -> None:
        """A node can read its volume attachments."""
        path = "/apis/storage.k8s.io/v1/volumeattachments"
        for name, node in (("a", "one"), ("b", "two")):
            spec = {"attacher": "a.example.com", "nodeName": node, "source": {"persistentVolumeName": "v"}}
            self.server.make(path, {"metadata": {"name": name}, "spec": spec})
        kind = "storage.k8s.io/volumeattachments"
        self.assertTrue(self.server.allows("get", kind, "a", namespace=""))
        self.assert_reason(self.server.decide("get", kind, "b", namespace=""), UNRELATED)
        self.server.client().ask("DELETE", f"{path}/a")
        self.assert_reason(self.server.decide("get", kind, "a", namespace=""), UNRELATED)

    def test_slices(self) -> None:
        """A node can write its resource slices, and list them with a field selector for the node."""
        spec = {"driver": "d.example.com", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "one"}
        self.server.make("/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": "s"}, "spec": spec})
        kind = "resource.k8s.io/resourceslices"
        for verb in ("get", "update", "patch", "delete"):
            self.assertTrue(self.server.allows(verb, kind, "s", namespace=""))
            self.assertFalse(self.server.allows(verb, kind, "s", namespace="", node="two"))
        self.assertTrue(self.server.allows("create", kind, namespace=""))
        selected = (("spec.nodeName", "one", True),)
        for verb in ("list", "watch", "deletecollection"):
            self.assertTrue(self.server.allows(verb, kind, namespace="", field_terms=selected))
            self.assert_reason(
                self.server.decide(verb, kind, namespace=""),
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            )
        self.assert_reason(
            self.server.decide("get", kind, "s", namespace="", subresource="x"),
            "cannot authorize ResourceSlice subresources",
        )
        self.assertIn("only the following verbs", self.server.decide("bind", kind, "s", namespace="").reason)

    def test_pod_certificates(self) -> None:
        """PodCertificateRequests are only in the graph if the feature is enabled."""
        kind = "certificates.k8s.io/podcertificaterequests"
        self.assert_reason(self.server.decide("create", kind), "")
        self.server.node = NodeAuthorizer(self.server.graph, FeatureGates(settings={"PodCertificateRequest": True}))
        self.assertTrue(self.server.allows("create", kind))
        self.assert_reason(self.server.decide("get", kind, "x"), UNRELATED)
        self.assertTrue(self.server.allows("list", kind, field_terms=(("spec.nodeName", "one", True),)))
        self.assertFalse(self.server.allows("list", kind))
        self.assertFalse(self.server.allows("update", kind, "x", subresource="status"))
        self.assertFalse(self.server.allows("delete", kind, "x"))


class GateTests(NodeTestCase):
    """Tests of requests that feature gates and releases decide."""

    def configure(self, release: tuple[int, int], **gates: bool) -> None:
        """Create the authorizer of a server with a release and gates."""
        self.server.node = NodeAuthorizer(self.server.graph, FeatureGates(release, gates))

    def test_selectors(self) -> None:
        """Without AuthorizeNodeWithSelectors, kubelets read all nodes, pods and resource slices."""
        kinds = ("nodes", "pods", "resource.k8s.io/resourceslices")
        for gates, allowed in (({}, False), ({"AuthorizeNodeWithSelectors": False}, True)):
            self.configure((1, 33), **gates)
            self.assertEqual([self.server.allows("list", kind, namespace="") for kind in kinds], [allowed] * 3)
        self.assertFalse(self.server.allows("delete", "nodes", "one", namespace=""))
        self.configure((1, 31))
        self.assertTrue(self.server.allows("list", "pods", namespace=""))

    def test_service_accounts(self) -> None:
        """Reads of service accounts need a gate since 1.33; before, kubelets only create tokens."""
        for release, gates, reason in (
            ((1, 32), {}, "can only create tokens for individual service accounts"),
            ((1, 33), {}, "not allowed to get service accounts"),
            ((1, 33), {"KubeletServiceAccountTokenForCredentialProviders": True}, UNRELATED),
            ((1, 34), {}, UNRELATED),
        ):
            self.configure(release, **gates)
            self.assert_reason(self.server.decide("get", "serviceaccounts", "robot"), reason)


class ChangeTests(NodeTestCase):
    """Tests of updates of the graph by watches."""

    def test_binding(self) -> None:
        """A pod is in the graph from its binding until its deletion."""
        pod = pod_on("", serviceAccountName="robot")
        del pod["spec"]["nodeName"]
        self.server.make(PODS, pod)
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot"))
        self.server.make(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "one"}})
        self.assertTrue(self.server.allows("get", "serviceaccounts", "robot"))
        self.server.client().ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot"))

    def test_claim_of_volume(self) -> None:
        """A volume is in the graph while it is bound."""
        claimed = [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]
        self.server.make(PODS, pod_on("one", volumes=claimed))
        self.server.make(VOLUMES, volume("v"))
        self.assertFalse(self.server.allows("get", "persistentvolumes", "v", namespace=""))
        reference = {"namespace": "default", "name": "data", "kind": "PersistentVolumeClaim"}
        code, answer = self.server.client().ask(
            "PATCH", f"{VOLUMES}/v", {"spec": {"claimRef": reference}}, Content_Type="application/merge-patch+json"
        )
        self.assertEqual(code, 200, answer)
        self.assertTrue(self.server.allows("get", "persistentvolumes", "v", namespace=""))

    def test_several_pods(self) -> None:
        """An object that several pods need is in the graph until the last of them is deleted."""
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot"))
        for name in ("p", "q"):
            self.server.make(PODS, pod_on("one", name, serviceAccountName="robot", imagePullSecrets=[{"name": "s"}]))
        for name, expected in (("p", True), ("q", False)):
            self.server.client().ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
            self.assertEqual(self.server.allows("get", "serviceaccounts", "robot"), expected)
        self.assertEqual(len(self.server.graph), 0)
        self.assertEqual(self.server.graph._pods, {})

    def test_slices_of_the_loop(self) -> None:
        """Pods are read in slices; requests wait until all are read, and concurrent changes are included."""
        self.patch(nodegraph, "BATCH_SIZE", 2)
        for number in range(7):
            self.server.make(PODS, pod_on("one", f"p{number}", serviceAccountName=f"robot{number}"))
        question = AuthorizerAttributes(
            node_user("one"), "get", resource="serviceaccounts", namespace="default", name="robot6"
        )
        waiting: Any = self.server.node.authorize(question)
        self.assertNoResult(waiting)
        self.server.client().ask("DELETE", f"{PODS}/p5?gracePeriodSeconds=0")
        self.server.make(PODS, pod_on("one", "late", serviceAccountName="late"))
        while not waiting.called:
            self.server.clock.advance(0)
        self.assertIs(self.successResultOf(waiting).decision, Decision.ALLOW)
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot5"))
        self.assertTrue(self.server.allows("get", "serviceaccounts", "late"))

    def test_lost_place(self) -> None:
        """While a cache reloads the old graph is used, and then the new state."""
        self.server.make(PODS, pod_on("one", serviceAccountName="robot"))
        self.assertTrue(self.server.allows("get", "serviceaccounts", "robot"))
        cache = self.server.stores.get("", "pods").cache
        cache.ended(RevisionCompacted(1, 2))
        self.assertTrue(self.server.allows("get", "serviceaccounts", "robot"))
        self.server.clock.advance(60)
        self.assertTrue(self.server.allows("get", "serviceaccounts", "robot"))
        self.server.client().ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot"))

    def test_caches_not_filled(self) -> None:
        """Requests fail until the caches are filled."""
        clock = Clock()
        registry = ResourceRegistry(
            MemoryStorage(clock), clock, [info for info in all_kinds() if info.resource == "pods"]
        )
        self.assertRaises(StorageUnavailable, NodeGraph(registry.stores, clock).ready)
