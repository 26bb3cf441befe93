"""Tests for L{kubetwist.authorization.node} and L{kubetwist.registry.core.node.graph}."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.interfaces import IAuthorizer, IRuleExplainer, IRuleResolver
from tests.authorization.nodecase import PODS, VOLUMES, NodeServer, NodeTestCase, node_user, pod_on, volume

secret_sets = st.frozensets(st.sampled_from("abc"), max_size=3)


steps = st.lists(
    st.tuples(st.sampled_from(["p", "q", "r"]), st.sampled_from(["one", "two", None]), secret_sets), max_size=12
)


class IdentityTests(NodeTestCase):
    """Tests of the identification of nodes."""

    def test_interfaces(self) -> None:
        """The authorizer decides, and reports that rules are incomplete."""
        verifyObject(IAuthorizer, self.server.node)
        verifyObject(IRuleResolver, self.server.node)

    def test_other_users(self) -> None:
        """The authorizer has no opinion about users that are not nodes by both name and group."""
        for user in (UserInfo("bob", groups=("system:nodes",)), node_user("one", "system:authenticated")):
            attributes = AuthorizerAttributes(user, "get", resource="nodes", name="one")
            self.assertEqual(self.server.node.authorize(attributes), Verdict(Decision.NO_OPINION))
            self.assertFalse(self.server.node.rules_for(user, "default")["incomplete"])

    def test_nameless(self) -> None:
        """A node user without a node name is allowed nothing."""
        verdict = self.server.decide("get", "nodes", "one", node="", namespace="")
        self.assert_reason(verdict, 'unknown node for user "system:node:"')

    def test_rules(self) -> None:
        """The rules of a node cannot be listed."""
        status = self.server.node.rules_for(node_user("one"), "default")
        self.assertTrue(status["incomplete"])
        self.assertEqual(status["evaluationError"], "node authorizer does not support user rule resolution")


class RuleTests(NodeTestCase):
    """Tests of permissions that do not depend on pods."""

    def test_common_rules(self) -> None:
        """Nodes have the rules of the role system:node."""
        for verb, resource, namespace in (
            ("list", "services", ""),
            ("create", "events", "default"),
            ("patch", "events.k8s.io/events", "default"),
            ("create", "certificates.k8s.io/certificatesigningrequests", ""),
            ("watch", "storage.k8s.io/csidrivers", ""),
            ("get", "node.k8s.io/runtimeclasses", ""),
        ):
            self.assertTrue(self.server.allows(verb, resource, namespace=namespace), resource)
        self.assert_reason(self.server.decide("delete", "services"), "")
        self.assert_reason(self.server.decide("get", "", path="/metrics", is_resource_request=False), "")

    def test_nodes(self) -> None:
        """A node reads only its Node; the content of writes is checked by admission."""
        for verb in ("get", "list", "watch"):
            self.assertTrue(self.server.allows(verb, "nodes", "one", namespace=""))
            self.assert_reason(
                self.server.decide(verb, "nodes", "two", namespace=""),
                "node 'one' cannot read 'two', only its own Node object",
            )
            self.assert_reason(
                self.server.decide(verb, "nodes", namespace=""),
                "node 'one' cannot read all nodes, only its own Node object",
            )
        for verb, subresource in (("create", ""), ("update", ""), ("patch", ""), ("update", "status")):
            self.assertTrue(self.server.allows(verb, "nodes", "x", namespace="", subresource=subresource))
        for verb, subresource in (("delete", ""), ("get", "status"), ("get", "proxy"), ("create", "proxy")):
            self.assert_reason(self.server.decide(verb, "nodes", "one", namespace="", subresource=subresource), "")

    def test_leases(self) -> None:
        """A node writes only its lease, in the namespace of node leases."""
        lease = "coordination.k8s.io/leases"
        for verb in ("get", "update", "patch", "delete"):
            self.assertTrue(self.server.allows(verb, lease, "one", namespace="kube-node-lease"))
            self.assert_reason(
                self.server.decide(verb, lease, "two", namespace="kube-node-lease"),
                "can only access node lease with the same name as the requesting node",
            )
        self.assertTrue(self.server.allows("create", lease, namespace="kube-node-lease"))
        self.assert_reason(
            self.server.decide("get", lease, "one"), 'can only access leases in the "kube-node-lease" system namespace'
        )
        self.assert_reason(
            self.server.decide("list", lease, namespace="kube-node-lease"),
            "can only get, create, update, patch, or delete a node lease",
        )

    def test_csi_nodes(self) -> None:
        """A node writes only its CSINode."""
        decide = self.server.decide
        self.assertTrue(self.server.allows("create", "storage.k8s.io/csinodes", namespace=""))
        self.assertTrue(self.server.allows("patch", "storage.k8s.io/csinodes", "one", namespace=""))
        for reason, verb, name, subresource in (
            ("can only access CSINode with the same name as the requesting node", "get", "two", ""),
            ("can only get, create, update, patch, or delete a CSINode", "watch", "one", ""),
            ("cannot authorize CSINode subresources", "get", "one", "status"),
        ):
            verdict = decide(verb, "storage.k8s.io/csinodes", name, namespace="", subresource=subresource)
            self.assert_reason(verdict, reason)


class ExplanationTests(NodeTestCase):
    """Tests of explanations of node permissions."""

    def attributes(self, verb: str, resource: str, name: str, namespace: str = "default") -> AuthorizerAttributes:
        """Return the attributes of a request of the node C{one}."""
        return AuthorizerAttributes(node_user("one"), verb, resource=resource, name=name, namespace=namespace)

    def test_interface(self) -> None:
        """The authorizer implements IRuleExplainer."""
        verifyObject(IRuleExplainer, self.server.node)

    def test_pods(self) -> None:
        """The explanation has the pod that refers to the object, on this node or another, also through volumes."""
        claimed = [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]
        self.server.make(PODS, pod_on("one", volumes=claimed, imagePullSecrets=[{"name": "pull"}]))
        self.server.make(PODS, pod_on("two", "q", imagePullSecrets=[{"name": "theirs"}]))
        reference = {"namespace": "vault", "name": "stage"}
        source = {"driver": "d.example.com", "volumeHandle": "h", "nodeStageSecretRef": reference}
        self.server.make(VOLUMES, volume("v", "data", csi=source))
        self.assertTrue(self.server.allows("get", "secrets", "pull"))
        node = self.server.node
        for attributes in (
            self.attributes("get", "secrets", "pull"),
            self.attributes("get", "persistentvolumeclaims", "data"),
            self.attributes("get", "persistentvolumes", "v", ""),
            self.attributes("get", "secrets", "stage", "vault"),
        ):
            self.assertEqual(node.explain(attributes), {"pod": "default/p", "node": "one"})
        self.assertIsNone(node.explain(self.attributes("get", "secrets", "theirs")))
        self.assertIsNone(node.explain(self.attributes("get", "nodes", "one", "")))
        (miss,) = node.near_misses(self.attributes("get", "secrets", "theirs"))
        assert miss is not None
        self.assertEqual(miss[1]["why"], 'the pod "default/q" refers to it, but is on the node "two"')
        (miss,) = node.near_misses(self.attributes("update", "secrets", "pull"))
        assert miss is not None
        self.assertEqual(
            miss[1]["why"], 'the pod "default/p" on the node refers to it, but that does not let the node update it'
        )
        bob = AuthorizerAttributes(UserInfo("bob"), "get", resource="secrets", name="pull", namespace="default")
        self.assertEqual(list(node.near_misses(bob)), [])


class AgreementTests(SynchronousTestCase):
    """The updated graph equals a newly built one."""

    @settings(max_examples=30, deadline=None)
    @given(steps)
    def test_same(self, steps: list[tuple[str, str | None, frozenset[str]]]) -> None:
        """After any creations and deletions of pods, a node may read exactly the Secrets of its pods."""
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
