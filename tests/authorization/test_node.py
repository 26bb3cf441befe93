"""Tests for L{kubetwist.authorization.node} and L{kubetwist.registry.core.node.graph}."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.authorization.node import NodeAuthorizer
from kubetwist.interfaces import IAuthorizer, IRuleExplainer, IRuleResolver
from kubetwist.registry.assembly import ResourceRegistry
from kubetwist.registry.core.node import graph as nodegraph
from kubetwist.registry.core.node.graph import NodeGraph
from kubetwist.registry.core.pod.references import MIRROR_ANNOTATION
from kubetwist.storage.errors import RevisionCompacted, StorageUnavailable
from kubetwist.storage.memory import MemoryStorage
from tests.resources.server import Server, all_kinds

PODS = "/api/v1/namespaces/default/pods"
VOLUMES = "/api/v1/persistentvolumes"
UNRELATED = "no relationship found between node 'one' and this object"


def node_user(name: str, *groups: str) -> UserInfo:
    """A kubelet."""
    return UserInfo(f"system:node:{name}", groups=groups or ("system:nodes", "system:authenticated"))


def pod_on(node: str, name: str = "p", **spec: Any) -> JSONObject:
    """A pod that runs somewhere; C{meta} is part of its metadata."""
    meta = spec.pop("meta", {})
    container = {"name": "main", "image": "example.org/main:1", **spec.pop("container", {})}
    return {
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": {"nodeName": node, "containers": [container], **spec},
    }


def volume(name: str, claim: str = "", **source: Any) -> JSONObject:
    """A persistent volume, perhaps bound to a claim of the namespace default."""
    spec: JSONObject = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        **(source or {"hostPath": {"path": "/x"}}),
    }
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim, "kind": "PersistentVolumeClaim"}
    return {"metadata": {"name": name}, "spec": spec}


class NodeServer(Server):
    """A server with what pods refer to, and the authorizer over its stores."""

    def __init__(self) -> None:
        super().__init__("pods", "persistentvolumes", "volumeattachments", "resourceslices", "podcertificaterequests")
        self.graph = NodeGraph(self.stores, self.clock)
        self.node = NodeAuthorizer(self.graph)

    def make(self, path: str, obj: JSONObject) -> JSONObject:
        """Create an object."""
        code, answer = self.client().ask("POST", path, obj)
        assert code == 201, answer
        return answer  # type: ignore[no-any-return]

    def ask(self, verb: str, resource: str, name: str = "", *, node: str = "one", **more: Any) -> Verdict:
        """What the authorizer says to a kubelet, about the namespace default unless told otherwise."""
        group, _slash, resource = resource.rpartition("/")
        more.setdefault("namespace", "default")
        verdict = self.node.authorize(
            AuthorizerAttributes(node_user(node), verb, group=group, resource=resource, name=name, **more)
        )
        if isinstance(verdict, Deferred):
            found: list[Verdict] = []
            verdict.addBoth(found.append)
            while not found:
                self.clock.advance(0)
            (verdict,) = found
        return verdict

    def allows(self, *question: Any, **more: Any) -> bool:
        """Whether it allows something."""
        return self.ask(*question, **more).decision is Decision.ALLOW


class NodeTestCase(SynchronousTestCase):
    """A test on such a server."""

    def setUp(self) -> None:
        """Without any pod."""
        self.server = NodeServer()

    def assert_reason(self, verdict: Verdict, reason: str) -> None:
        """It holds no opinion, for this reason."""
        self.assertEqual(verdict, Verdict(Decision.NO_OPINION, reason))


class IdentityTests(NodeTestCase):
    """Who is a node."""

    def test_interfaces(self) -> None:
        """It decides, and tells what it can not list."""
        verifyObject(IAuthorizer, self.server.node)
        verifyObject(IRuleResolver, self.server.node)

    def test_others(self) -> None:
        """About those who are no nodes by both name and group it says nothing."""
        for user in (UserInfo("bob", groups=("system:nodes",)), node_user("one", "system:authenticated")):
            question = AuthorizerAttributes(user, "get", resource="nodes", name="one")
            self.assertEqual(self.server.node.authorize(question), Verdict(Decision.NO_OPINION))
            self.assertFalse(self.server.node.rules_for(user, "default")["incomplete"])

    def test_nameless(self) -> None:
        """A node that does not say which one it is may do nothing."""
        verdict = self.server.ask("get", "nodes", "one", node="", namespace="")
        self.assert_reason(verdict, 'unknown node for user "system:node:"')

    def test_rules(self) -> None:
        """What a node may do can not be listed."""
        status = self.server.node.rules_for(node_user("one"), "default")
        self.assertTrue(status["incomplete"])
        self.assertEqual(status["evaluationError"], "node authorizer does not support user rule resolution")


class RuleTests(NodeTestCase):
    """What does not depend on pods."""

    def test_uniform(self) -> None:
        """What all nodes need alike the rules of the role system:node allow."""
        for verb, resource, namespace in (
            ("list", "services", ""),
            ("create", "events", "default"),
            ("patch", "events.k8s.io/events", "default"),
            ("create", "certificates.k8s.io/certificatesigningrequests", ""),
            ("watch", "storage.k8s.io/csidrivers", ""),
            ("get", "node.k8s.io/runtimeclasses", ""),
        ):
            self.assertTrue(self.server.allows(verb, resource, namespace=namespace), resource)
        self.assert_reason(self.server.ask("delete", "services"), "")
        self.assert_reason(self.server.ask("get", "", path="/metrics", is_resource_request=False), "")

    def test_nodes(self) -> None:
        """A node reads itself alone; what it may write of itself admission looks after."""
        for verb in ("get", "list", "watch"):
            self.assertTrue(self.server.allows(verb, "nodes", "one", namespace=""))
            self.assert_reason(
                self.server.ask(verb, "nodes", "two", namespace=""),
                "node 'one' cannot read 'two', only its own Node object",
            )
            self.assert_reason(
                self.server.ask(verb, "nodes", namespace=""),
                "node 'one' cannot read all nodes, only its own Node object",
            )
        for verb, subresource in (("create", ""), ("update", ""), ("patch", ""), ("update", "status")):
            self.assertTrue(self.server.allows(verb, "nodes", "x", namespace="", subresource=subresource))
        for verb, subresource in (("delete", ""), ("get", "status"), ("get", "proxy"), ("create", "proxy")):
            self.assert_reason(self.server.ask(verb, "nodes", "one", namespace="", subresource=subresource), "")

    def test_leases(self) -> None:
        """A node keeps its own lease, among those of nodes."""
        lease = "coordination.k8s.io/leases"
        for verb in ("get", "update", "patch", "delete"):
            self.assertTrue(self.server.allows(verb, lease, "one", namespace="kube-node-lease"))
            self.assert_reason(
                self.server.ask(verb, lease, "two", namespace="kube-node-lease"),
                "can only access node lease with the same name as the requesting node",
            )
        self.assertTrue(self.server.allows("create", lease, namespace="kube-node-lease"))
        self.assert_reason(
            self.server.ask("get", lease, "one"), 'can only access leases in the "kube-node-lease" system namespace'
        )
        self.assert_reason(
            self.server.ask("list", lease, namespace="kube-node-lease"),
            "can only get, create, update, patch, or delete a node lease",
        )

    def test_csi_nodes(self) -> None:
        """A node keeps its own CSINode."""
        ask = self.server.ask
        self.assertTrue(self.server.allows("create", "storage.k8s.io/csinodes", namespace=""))
        self.assertTrue(self.server.allows("patch", "storage.k8s.io/csinodes", "one", namespace=""))
        for reason, verb, name, subresource in (
            ("can only access CSINode with the same name as the requesting node", "get", "two", ""),
            ("can only get, create, update, patch, or delete a CSINode", "watch", "one", ""),
            ("cannot authorize CSINode subresources", "get", "one", "status"),
        ):
            verdict = ask(verb, "storage.k8s.io/csinodes", name, namespace="", subresource=subresource)
            self.assert_reason(verdict, reason)


class GraphTests(NodeTestCase):
    """What pods lead to."""

    def test_references(self) -> None:
        """A node reads the secrets and config maps that its pods name, wherever in the pod they stand."""
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
        self.assert_reason(self.server.ask("get", "secrets", "other"), UNRELATED)
        self.assert_reason(self.server.ask("get", "secrets", "env", namespace="other"), UNRELATED)
        self.assert_reason(
            self.server.ask("get", "secrets", "env", node="two"),
            "no relationship found between node 'two' and this object",
        )
        self.assert_reason(self.server.ask("list", "secrets"), "No Object name found")
        self.assert_reason(
            self.server.ask("list", "secrets", namespace=""), "can only read namespaced object of this type"
        )
        self.assert_reason(self.server.ask("update", "secrets", "env"), "can only read resources of this type")
        self.assert_reason(self.server.ask("get", "configmaps", "env", subresource="status"), "cannot read subresource")

    def test_volumes(self) -> None:
        """A pod leads to its claims, these to their volumes, these to the secrets that kubelets need for them."""
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
        self.assert_reason(server.ask("get", "persistentvolumes", "w", namespace=""), UNRELATED)
        for name in ("nodepublish", "nodestage", "nodeexpand"):
            self.assertTrue(server.allows("get", "secrets", name, namespace="vault"))
        self.assert_reason(server.ask("get", "secrets", "controllerpublish", namespace="vault"), UNRELATED)
        self.assert_reason(
            server.ask("list", "persistentvolumes", namespace=""), "can only get individual resources of this type"
        )
        self.assert_reason(
            server.ask("get", "persistentvolumeclaims", "data", subresource="status"),
            "can only get/update/patch this type",
        )
        server.client().ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        self.assert_reason(server.ask("get", "secrets", "nodePublish", namespace="vault"), UNRELATED)
        self.assert_reason(server.ask("get", "persistentvolumes", "v", namespace=""), UNRELATED)

    def test_resource_claims(self) -> None:
        """A pod leads to its resource claims, once those made for it are known from its status."""
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
        """A node reads the service accounts of its pods, and asks for their tokens."""
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
            self.assert_reason(server.ask(verb, "serviceaccounts", name, subresource=subresource), reason)

    def test_pods(self) -> None:
        """A node reads its own pods: by name, or all with a field selector that leaves no others."""
        server = self.server
        server.make(PODS, pod_on("one"))
        server.make(PODS, pod_on("two", "q"))
        self.assertTrue(server.allows("get", "pods", "p"))
        self.assert_reason(server.ask("get", "pods", "q"), UNRELATED)
        selected = (("spec.nodeName", "one", True),)
        for verb in ("list", "watch"):
            self.assertTrue(server.allows(verb, "pods", namespace="", field_terms=selected))
            self.assertTrue(server.allows(verb, "pods", "p"))
            self.assert_reason(server.ask(verb, "pods", "q"), UNRELATED)
            for terms in ((), (("spec.nodeName", "two", True),), (("spec.nodeName", "one", False),)):
                self.assert_reason(
                    server.ask(verb, "pods", namespace="", field_terms=terms),
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
            self.assert_reason(server.ask(verb, "pods", "p", subresource=subresource), "")

    def test_mirror_pods(self) -> None:
        """A pod that a node made itself leads to nothing but itself."""
        self.server.make(
            PODS, pod_on("one", serviceAccountName="robot", meta={"annotations": {MIRROR_ANNOTATION: "x"}})
        )
        self.assertTrue(self.server.allows("get", "pods", "p"))
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot"))

    def test_attachments(self) -> None:
        """A node reads what is attached to it."""
        path = "/apis/storage.k8s.io/v1/volumeattachments"
        for name, node in (("a", "one"), ("b", "two")):
            spec = {"attacher": "a.example.com", "nodeName": node, "source": {"persistentVolumeName": "v"}}
            self.server.make(path, {"metadata": {"name": name}, "spec": spec})
        kind = "storage.k8s.io/volumeattachments"
        self.assertTrue(self.server.allows("get", kind, "a", namespace=""))
        self.assert_reason(self.server.ask("get", kind, "b", namespace=""), UNRELATED)
        self.server.client().ask("DELETE", f"{path}/a")
        self.assert_reason(self.server.ask("get", kind, "a", namespace=""), UNRELATED)

    def test_slices(self) -> None:
        """A node keeps its own resource slices, and lists them by their node."""
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
                self.server.ask(verb, kind, namespace=""),
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            )
        self.assert_reason(
            self.server.ask("get", kind, "s", namespace="", subresource="x"),
            "cannot authorize ResourceSlice subresources",
        )
        self.assertIn("only the following verbs", self.server.ask("bind", kind, "s", namespace="").reason)

    def test_pod_certificates(self) -> None:
        """Requests for the certificates of pods are looked at only where that feature is on."""
        kind = "certificates.k8s.io/podcertificaterequests"
        self.assert_reason(self.server.ask("create", kind), "")
        self.server.node = NodeAuthorizer(self.server.graph, True)
        self.assertTrue(self.server.allows("create", kind))
        self.assert_reason(self.server.ask("get", kind, "x"), UNRELATED)
        self.assertTrue(self.server.allows("list", kind, field_terms=(("spec.nodeName", "one", True),)))
        self.assertFalse(self.server.allows("list", kind))
        self.assertFalse(self.server.allows("update", kind, "x", subresource="status"))
        self.assertFalse(self.server.allows("delete", kind, "x"))


class ExplanationTests(NodeTestCase):
    """Why a node may, or may not."""

    def question(self, verb: str, resource: str, name: str, namespace: str = "default") -> AuthorizerAttributes:
        """About the node one."""
        return AuthorizerAttributes(node_user("one"), verb, resource=resource, name=name, namespace=namespace)

    def test_interface(self) -> None:
        """It can say what it goes by."""
        verifyObject(IRuleExplainer, self.server.node)

    def test_pods(self) -> None:
        """The pod that leads to an object is named, on this node or on another, through volumes, too."""
        claimed = [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]
        self.server.make(PODS, pod_on("one", volumes=claimed, imagePullSecrets=[{"name": "pull"}]))
        self.server.make(PODS, pod_on("two", "q", imagePullSecrets=[{"name": "theirs"}]))
        reference = {"namespace": "vault", "name": "stage"}
        source = {"driver": "d.example.com", "volumeHandle": "h", "nodeStageSecretRef": reference}
        self.server.make(VOLUMES, volume("v", "data", csi=source))
        self.assertTrue(self.server.allows("get", "secrets", "pull"))
        node = self.server.node
        for question in (
            self.question("get", "secrets", "pull"),
            self.question("get", "persistentvolumeclaims", "data"),
            self.question("get", "persistentvolumes", "v", ""),
            self.question("get", "secrets", "stage", "vault"),
        ):
            self.assertEqual(node.explain(question), {"pod": "default/p", "node": "one"})
        self.assertIsNone(node.explain(self.question("get", "secrets", "theirs")))
        self.assertIsNone(node.explain(self.question("get", "nodes", "one", "")))
        (miss,) = node.near_misses(self.question("get", "secrets", "theirs"))
        assert miss is not None
        self.assertEqual(miss[1]["why"], 'the pod "default/q" refers to it, but is on the node "two"')
        (miss,) = node.near_misses(self.question("update", "secrets", "pull"))
        assert miss is not None
        self.assertEqual(
            miss[1]["why"], 'the pod "default/p" on the node refers to it, but that does not let the node update it'
        )
        bob = AuthorizerAttributes(UserInfo("bob"), "get", resource="secrets", name="pull", namespace="default")
        self.assertEqual(list(node.near_misses(bob)), [])


class ChangeTests(NodeTestCase):
    """The graph follows the objects at once."""

    def test_binding(self) -> None:
        """A pod counts from the moment that it is bound to a node until it is gone."""
        pod = pod_on("", serviceAccountName="robot")
        del pod["spec"]["nodeName"]
        self.server.make(PODS, pod)
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot"))
        self.server.make(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "one"}})
        self.assertTrue(self.server.allows("get", "serviceaccounts", "robot"))
        self.server.client().ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot"))

    def test_claim_of_volume(self) -> None:
        """A volume counts while it is bound."""
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
        """What several pods need stays needed until the last of them is gone; then nothing of it is kept."""
        self.assertFalse(self.server.allows("get", "serviceaccounts", "robot"))
        for name in ("p", "q"):
            self.server.make(PODS, pod_on("one", name, serviceAccountName="robot", imagePullSecrets=[{"name": "s"}]))
        for name, expected in (("p", True), ("q", False)):
            self.server.client().ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
            self.assertEqual(self.server.allows("get", "serviceaccounts", "robot"), expected)
        self.assertEqual(len(self.server.graph), 0)
        self.assertEqual(self.server.graph._pods, {})

    def test_slices_of_the_loop(self) -> None:
        """Many pods are read a few at a time; who asks meanwhile waits, and changes meanwhile are not lost."""
        self.patch(nodegraph, "SLICE", 2)
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
        """While a cache starts over, what was known goes on to hold; then what it has become does."""
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
        """Before the caches are filled for the first time nothing is decided."""
        clock = Clock()
        registry = ResourceRegistry(
            MemoryStorage(clock), clock, [info for info in all_kinds() if info.resource == "pods"]
        )
        self.assertRaises(StorageUnavailable, NodeGraph(registry.stores, clock).ready)


secret_sets = st.frozensets(st.sampled_from("abc"), max_size=3)
steps = st.lists(
    st.tuples(st.sampled_from(["p", "q", "r"]), st.sampled_from(["one", "two", None]), secret_sets), max_size=12
)


class AgreementTests(SynchronousTestCase):
    """The graph that follows changes is the graph that is read anew."""

    @settings(max_examples=30, deadline=None)
    @given(steps)
    def test_same(self, steps: list[tuple[str, str | None, frozenset[str]]]) -> None:
        """Whatever pods come and go, a node needs exactly the secrets of those that are on it."""
        server = NodeServer()
        server.allows("get", "secrets", "a")
        there: dict[str, tuple[str, frozenset[str]]] = {}
        for name, node, secrets in steps:
            if there.pop(name, None) is not None:
                server.client().ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
            if node is not None:
                pulled = [{"name": secret} for secret in sorted(secrets)]
                server.make(PODS, pod_on(node, name, imagePullSecrets=pulled))
                there[name] = node, secrets
        for node in ("one", "two"):
            for secret in "abc":
                expected = any(where == node and secret in wanted for where, wanted in there.values())
                self.assertEqual(server.allows("get", "secrets", secret, node=node), expected)
